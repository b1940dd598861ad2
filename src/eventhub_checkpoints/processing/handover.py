"""Rule of the graceful hand-over: who asks, who answers, and when a wish is over.

A consumer that wants a partition of a live owner leaves a *wish* instead of taking it. The owner
that finds the wish stops receiving, drains, saves and releases; then the consumer that asked claims
the released partition. A wish is a row like an ownership, in a scope of its own; its owner id names
who asks whom. No I/O, no clock: times are numbers, in seconds since the epoch.

A wish is *open* for `expires_after` seconds. After that, for as long again, it is *overdue*: who
asked may take the partition from an owner that has not answered. Then it is void. It is *spent*
once a list has shown the partition without the owner that was asked.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from eventhub_checkpoints.records import RELEASED

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


class HeldBack(NamedTuple):
    """Partition that this client has let go, and does not take back before the other had time."""

    asker: str
    until: float


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
    """

    expires_after: float
    me: str = RELEASED
    departures: dict[str, Departure] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    _owners: dict[str, tuple[str, float]] = field(default_factory=dict)
    _wishes: dict[str, Wish] | None = field(default_factory=dict)
    _etags: dict[str, str | None] = field(default_factory=dict)
    _spent: dict[str, str | None] = field(default_factory=dict)
    _held_back: dict[str, HeldBack] = field(default_factory=dict)

    def listed(
        self,
        rows: Iterable[Mapping[str, Any]],
        wishes: Iterable[Mapping[str, Any]] | None,
        now: float,
    ) -> list[dict[str, Any]]:
        """Record lists of ownerships and wishes; return the ownerships that the client is to see.

        A partition that is asked for counts as that of the client that asked, for all but its
        owner: so each client asks for as many as it would take, and no two ask for the same.

        Args:
            rows: the ownerships.
            wishes: the rows of wishes; None: they could not be read. Nobody is asked then, and
                nothing is handed over that is not being handed over already.
            now: the time.
        """
        known = [dict(row) for row in rows]
        self._owners = {
            row["partition_id"]: (row.get("owner_id") or RELEASED, float(row["last_modified_time"]))
            for row in known
        }
        self._wishes = None
        if wishes is not None:
            self._read_wishes([dict(row) for row in wishes])
        self._follow_departures(now)
        for row in known:
            row["owner_id"] = self._shown_owner(row["partition_id"], now)
        return known

    def _read_wishes(self, rows: list[dict[str, Any]]) -> None:
        self._etags = {row["partition_id"]: row.get("etag") for row in rows}
        wishes = {row["partition_id"]: Wish.from_row(row) for row in rows}
        self._wishes = {}
        for partition_id, wish in wishes.items():
            if wish is None:
                continue
            if self._stored_owner(partition_id) != wish.owner:
                self._spent[partition_id] = wish.etag
            if self._spent.get(partition_id, "") != wish.etag:
                self._wishes[partition_id] = wish

    def _follow_departures(self, now: float) -> None:
        for partition_id, departure in list(self.departures.items()):
            owner = self._stored_owner(partition_id)
            if owner == RELEASED:
                until = min(departure.until, now + self.expires_after / 3)
                self._held_back[partition_id] = HeldBack(departure.asker, until)
            if owner != self.me or departure.until <= now:
                del self.departures[partition_id]
        self._held_back = {
            key: held
            for key, held in self._held_back.items()
            if now < held.until and self._stored_owner(key) == RELEASED
        }

    def _stored_owner(self, partition_id: str) -> str:
        return self._owners.get(partition_id, (RELEASED, 0.0))[0]

    def _live_owner(self, partition_id: str, now: float) -> str:
        """Return who holds a partition; nobody if its ownership has expired."""
        owner, modified = self._owners.get(partition_id, (RELEASED, -math.inf))
        return RELEASED if modified + self.expires_after < now else owner

    def _wish(self, partition_id: str) -> Wish | None:
        return (self._wishes or {}).get(partition_id)

    def _is_open(self, wish: Wish, now: float) -> bool:
        return now < wish.made_at + self.expires_after

    def _is_overdue(self, wish: Wish, now: float) -> bool:
        return 0 <= now - wish.made_at - self.expires_after < self.expires_after

    def _shown_owner(self, partition_id: str, now: float) -> str:
        if partition_id in self._held_back:
            return self._held_back[partition_id].asker
        stored, wish = self._stored_owner(partition_id), self._wish(partition_id)
        if wish is None or stored == self.me or self._live_owner(partition_id, now) == RELEASED:
            return stored
        is_mine = wish.asker == self.me and self._is_overdue(wish, now)
        return wish.asker if is_mine or self._is_open(wish, now) else stored

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
        if owner == RELEASED:
            return Answer.CLAIM
        if self._wishes is None:
            return Answer.WAIT
        if wish is not None and self._is_open(wish, now):
            return Answer.WAIT
        if wish is not None and wish.asker == claimant and self._is_overdue(wish, now):
            return Answer.CLAIM
        return Answer.ASK

    def _answer_of_owner(self, partition_id: str, now: float) -> Answer:
        departure, wish = self.departures.get(partition_id), self._wish(partition_id)
        if departure is not None and now < departure.until:
            return Answer.RELEASE if departure.is_closed else Answer.KEEP
        if wish is None or wish.asker == wish.owner or not self._is_open(wish, now):
            return Answer.CLAIM
        until = wish.made_at + self.expires_after
        self.departures[partition_id] = Departure(wish.asker, until)
        return Answer.KEEP

    def asked(self, partition_id: str) -> tuple[str, str | None]:
        """Return who has to be asked for a partition, and the etag of the wish to replace."""
        return self._stored_owner(partition_id), self._etags.get(partition_id)

    def closed(self, partition_id: str) -> None:
        """Record that the client has closed a partition, and wants it released."""
        self.released.add(partition_id)
        if departure := self.departures.get(partition_id):
            departure.is_closed = True

    def is_departing(self, partition_id: str, now: float) -> bool:
        """Return whether a partition is being handed over, and nobody may take it meanwhile."""
        departure = self.departures.get(partition_id)
        return departure is not None and now < departure.until
