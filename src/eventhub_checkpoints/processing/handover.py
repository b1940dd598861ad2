"""Rule of the graceful hand-over: who asks, who answers, and when a wish is over.

A consumer that wants a partition of a live owner leaves a *wish* instead of taking it. The owner
that finds the wish stops receiving, drains, saves and releases; then the consumer that asked claims
the released partition. A wish is a row like an ownership, in a scope of its own; its owner id names
who asks whom. No I/O, no clock: times are numbers, in seconds since the epoch.

A wish is *open* for `expires_after` seconds. Meanwhile nobody but the client that asked claims the
partition, if its owner has released it or has gone. After that, for as long again, the wish is
*overdue*: who asked may take the partition from an owner that has not answered. Then it is *void*.
It is *spent* once a list has shown the partition with an owner other than the one that was asked.
Wishes that are spent or void are withdrawn: their rows are released, as those of ownerships are.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from eventhub_checkpoints.records import RELEASED, Scope

LATENESS = 2
"""Times its own delay between two rounds that a client grants the others."""
REMEMBERED = 10
"""Times `expires_after` for which it does so after it was late."""
MOST_PATIENT = 3
"""Times `expires_after` that it grants later at most; the round that is late has no limit."""
ARROW = ">"
"""Separates who asks from whom it asks. The ids of clients are UUIDs, and do not contain it."""


class Answer(Enum):
    """What becomes of the claim of one partition.

    Attributes:
        CLAIM: it is claimed, as it would be without this rule.
        KEEP: it is renewed, and the client is not told, so that it closes the partition.
        RELEASE: it is released: the client has closed it, but its release did not reach the store.
        ASK: a wish is left for its owner; it is not claimed.
        WAIT: nothing is written; it is not claimed.
    """

    CLAIM = auto()
    KEEP = auto()
    RELEASE = auto()
    ASK = auto()
    WAIT = auto()


class Wish(NamedTuple):
    """Request of one client for a partition of another."""

    asker: str
    owner: str
    made_at: float
    etag: str | None = None

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> "Wish | None":
        """Read the row of a wish; None if it is not one."""
        asker, arrow, owner = str(row.get("owner_id") or "").partition(ARROW)
        if not arrow or not asker or not owner:
            return None
        return Wish(asker, owner, float(row["last_modified_time"]), row.get("etag"))

    @staticmethod
    def withdrawal(scope: Scope, partition_id: str, etag: str | None) -> dict[str, Any]:
        """Return the row to claim for the end of a wish: the release of it.

        Args:
            scope: of wishes.
            partition_id: which partition was asked for.
            etag: of the row that it replaces.
        """
        row = {**scope.as_dict(), "partition_id": partition_id, "owner_id": RELEASED}
        return row if etag is None else {**row, "etag": etag}

    @staticmethod
    def row(
        claim: Mapping[str, Any], consumer_group: str, owner: str, etag: str | None
    ) -> dict[str, Any]:
        """Return the row to claim for a wish: the claim of a partition, put as a request.

        Args:
            claim: the claim that the client has proposed.
            consumer_group: of wishes.
            owner: who is asked.
            etag: of the row that it replaces; None: there is none.
        """
        wish = dict(claim)
        wish |= {"consumer_group": consumer_group, "owner_id": f"{claim['owner_id']}{ARROW}{owner}"}
        wish.pop("etag", None)
        return wish if etag is None else {**wish, "etag": etag}


@dataclass
class Departure:
    """Partition that this client hands over.

    Attributes:
        asker: the client that has asked for it.
        until: end of the wish.
        is_closed: whether the client has closed the partition and asked for its release.
    """

    asker: str
    until: float
    is_closed: bool = False


@dataclass
class GroupHandover:
    """What one client knows of the wishes in its consumer group.

    Args:
        expires_after: seconds after which the client takes an ownership that was not renewed; also
            the time that an owner has to answer a wish.

    Attributes:
        me: owner id of this client; empty before its first claim.
        departures: partitions that it hands over.
        released: partitions that the client has released since it last proposed to claim them.
        asking: partitions of whose wishes this client is the last writer, as far as it knows.
        over: wishes that the last list has shown and nobody needs any more, for this client to
            withdraw: its own that are spent or void, and void ones for what it owns. The etag of
            each, by partition.
        left: the owner id under which this client asks for nothing any more; None: there is none.
    """

    expires_after: float
    me: str = RELEASED
    departures: dict[str, Departure] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    asking: set[str] = field(default_factory=set)
    over: dict[str, str | None] = field(default_factory=dict)
    left: str | None = None
    _owners: dict[str, tuple[str, float]] = field(default_factory=dict)
    _wishes: dict[str, Wish] | None = field(default_factory=dict)
    _etags: dict[str, str | None] = field(default_factory=dict)
    _spent: dict[str, str | None] = field(default_factory=dict)
    _listed_at: float = math.inf
    _longest_delay: float = 0.0
    _late_until: float = -math.inf
    _patience: float = 0.0

    def listed(
        self,
        rows: Iterable[Mapping[str, Any]],
        wishes: Iterable[Mapping[str, Any]] | None,
        now: float,
    ) -> list[dict[str, Any]]:
        """Record lists of ownerships and wishes; return the ownerships that the client is to see.

        A partition that is asked for counts as that of the client that asked, for all but its live
        owner, also after it was released or has expired. So each client asks for as many as it
        would take, no two ask for the same, who asked gets what was released for it, and whoever
        finds an owner gone shares its partitions with the others that have asked.

        What is the client's own by the store counts as its own, also if it has expired.

        Args:
            rows: the ownerships.
            wishes: the rows of wishes; None: they could not be read. Nobody is asked then, and
                nothing is handed over that is not being handed over already.
            now: the time.
        """
        known = [dict(row) for row in rows]
        self._be_patient(now)
        self._owners = {
            row["partition_id"]: (row.get("owner_id") or RELEASED, float(row["last_modified_time"]))
            for row in known
        }
        self._wishes, self.over = None, {}
        if wishes is not None:
            self._read_wishes([dict(row) for row in wishes], now)
        self._follow_departures(now)
        for row in known:
            owner = self._shown_owner(row["partition_id"], now)
            if owner == RELEASED:
                continue  # released, or expired by the client's own rule as well
            row["owner_id"] = owner
            if row["last_modified_time"] + self.expires_after < now:
                row["last_modified_time"] = now  # otherwise the client claims it as expired
        return known

    def _be_patient(self, now: float) -> None:
        """Set the age from which an ownership or a wish of others has expired.

        A client that is late itself, as on a machine that is overloaded or was suspended, cannot
        tell who is late from who is gone. If it took all that seems to have expired, it would be
        busy with that, come late, and lose it in the same way: partitions would go from one client
        to the next as a whole.
        """
        delay, self._listed_at = now - self._listed_at, now
        if now >= self._late_until:
            self._longest_delay = 0.0
        if LATENESS * delay > self.expires_after:
            self._longest_delay = max(self._longest_delay, delay)
            self._late_until = now + REMEMBERED * self.expires_after
        remembered = min(LATENESS * self._longest_delay, MOST_PATIENT * self.expires_after)
        self._patience = max(self.expires_after, LATENESS * delay, remembered)

    def _read_wishes(self, rows: list[dict[str, Any]], now: float) -> None:
        self._etags = {row["partition_id"]: row.get("etag") for row in rows}
        wishes = {row["partition_id"]: Wish.from_row(row) for row in rows}
        self._wishes = {}
        self.asking = {key for key, wish in wishes.items() if wish and wish.asker == self.me}
        for partition_id, wish in wishes.items():
            if wish is None:
                continue
            owner = self._stored_owner(partition_id)
            if owner not in (RELEASED, wish.owner):
                self._spent[partition_id] = wish.etag
            is_spent = self._spent.get(partition_id, "") == wish.etag
            if not is_spent:
                self._wishes[partition_id] = wish
            is_void = not (self._is_open(wish, now) or self._is_overdue(wish, now))
            if (is_spent and self.me == wish.asker) or (is_void and self.me in (wish.asker, owner)):
                self.over[partition_id] = wish.etag

    def _follow_departures(self, now: float) -> None:
        for partition_id, departure in list(self.departures.items()):
            if self._stored_owner(partition_id) != self.me or departure.until <= now:
                del self.departures[partition_id]

    def _stored_owner(self, partition_id: str) -> str:
        return self._owners.get(partition_id, (RELEASED, 0.0))[0]

    def _live_owner(self, partition_id: str, now: float) -> str:
        """Return who holds a partition; nobody if its ownership has expired."""
        owner, modified = self._owners.get(partition_id, (RELEASED, -math.inf))
        return RELEASED if modified + self._patience < now else owner

    def _wish(self, partition_id: str) -> Wish | None:
        return (self._wishes or {}).get(partition_id)

    def _is_open(self, wish: Wish, now: float) -> bool:
        return now < wish.made_at + self._patience

    def _is_overdue(self, wish: Wish, now: float) -> bool:
        return 0 <= now - wish.made_at - self._patience < self.expires_after

    def _shown_owner(self, partition_id: str, now: float) -> str:
        """Return whose a partition is in the eyes of the client; nobody's: it may be claimed."""
        if self._stored_owner(partition_id) == self.me:
            return self.me
        live, wish = self._live_owner(partition_id, now), self._wish(partition_id)
        if wish is None:
            return live
        is_taken = wish.asker == self.me and self._is_overdue(wish, now) and live != RELEASED
        return wish.asker if is_taken or self._is_open(wish, now) else live

    def answer(self, partition_id: str, claimant: str, now: float) -> Answer:
        """Decide what becomes of a claim that the client proposes, by the latest lists.

        Args:
            partition_id: the partition.
            claimant: the owner id of the claim: this client's.
            now: the time.
        """
        self.released.discard(partition_id)
        if self._stored_owner(partition_id) == claimant:
            return self._answer_of_owner(partition_id, now)
        owner, wish = self._live_owner(partition_id, now), self._wish(partition_id)
        is_open = wish is not None and self._is_open(wish, now)
        is_own = wish is not None and wish.asker == claimant
        if partition_id not in self._owners or (owner == RELEASED and (is_own or not is_open)):
            return Answer.CLAIM
        if self._wishes is None or is_open:
            return Answer.WAIT
        if wish is not None and is_own and self._is_overdue(wish, now):
            return Answer.CLAIM
        return Answer.WAIT if claimant == self.left else Answer.ASK

    def _answer_of_owner(self, partition_id: str, now: float) -> Answer:
        departure, wish = self.departures.get(partition_id), self._wish(partition_id)
        if departure is not None and now < departure.until:
            return Answer.RELEASE if departure.is_closed else Answer.KEEP
        # Not by the patience of this client: whoever asked may be punctual.
        if wish is None or wish.asker == wish.owner or now >= wish.made_at + self.expires_after:
            return Answer.CLAIM
        until = wish.made_at + self.expires_after
        self.departures[partition_id] = Departure(wish.asker, until)
        return Answer.KEEP

    def asked(self, partition_id: str) -> tuple[str, str | None]:
        """Return who has to be asked for a partition, and the etag of the wish to replace."""
        self.asking.add(partition_id)
        self.over.pop(partition_id, None)
        return self._stored_owner(partition_id), self._etags.get(partition_id)

    def withdrawn(self) -> dict[str, str | None]:
        """Return the wishes that are over, and forget them: the etag of each, by partition."""
        over, self.over = self.over, {}
        return over

    def closed(self, partition_id: str) -> None:
        """Record that the client has closed a partition, and wants it released."""
        self.released.add(partition_id)
        if departure := self.departures.get(partition_id):
            departure.is_closed = True

    def is_departing(self, partition_id: str, now: float) -> bool:
        """Return whether a partition is being handed over, and nobody may take it meanwhile."""
        departure = self.departures.get(partition_id)
        return departure is not None and now < departure.until
