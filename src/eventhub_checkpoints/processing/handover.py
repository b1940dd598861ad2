"""Rule of the graceful hand-over: who asks, who answers, and when a request ends.

A consumer that wants a partition of a live owner writes a *hand-over request* instead of taking the
partition over. The owner that finds the request stops receiving, drains, saves and releases; then
the consumer that asked claims the released partition. A request is a row like an ownership, in a
scope of its own; its owner id names who asks whom. No I/O, no clock: times are numbers, in seconds
since the epoch.

A request is *open* for `expires_after` seconds. Meanwhile, if the owner has released the partition
or is gone, only the client that asked claims it. After that, for as long again, the request is
*overdue*: the client that asked may take the partition over from an owner that has not answered.
Then the request is *void*. It is *spent* once a list has shown the partition with an owner other
than the one that was asked. Requests that are spent or void are withdrawn: their rows are released,
as those of ownerships are.

A client asks for up to two partitions in a round. If it has asked for more than its share, another
client may replace a request of it by its own, until the owner has released the partition.
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
AT_ONCE = 2
"""Partitions that a client asks for in a round at most. Its load balancer takes over one, but a
hand-over takes up to two rounds: so the group is balanced as soon as without hand-over."""
ARROW = ">"
"""Separates who asks from whom it asks. The ids of clients are UUIDs, and do not contain it."""


class Answer(Enum):
    """What becomes of the claim of one partition.

    Attributes:
        CLAIM: the partition is claimed, as it would be without this rule.
        KEEP: the ownership is renewed, but the client's result lacks the partition, so that the
            client closes it.
        RELEASE: the partition is released: the client has closed it, but its release did not reach
            the store.
        ASK: a request is written for the owner; the partition is not claimed.
        WAIT: nothing is written, and the partition is not claimed.
    """

    CLAIM = auto()
    KEEP = auto()
    RELEASE = auto()
    ASK = auto()
    WAIT = auto()


class HandoverRequest(NamedTuple):
    """Request of one client for a partition of another."""

    requester: str
    owner: str
    made_at: float
    etag: str | None = None

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> "HandoverRequest | None":
        """Read the row of a request; None if it is not one."""
        requester, arrow, owner = str(row.get("owner_id") or "").partition(ARROW)
        if not arrow or not requester or not owner:
            return None
        return HandoverRequest(requester, owner, float(row["last_modified_time"]), row.get("etag"))

    @staticmethod
    def withdrawal(scope: Scope, partition_id: str, etag: str | None) -> dict[str, Any]:
        """Return the row to claim to withdraw a request: the release of its row.

        Args:
            scope: of requests.
            partition_id: which partition was asked for.
            etag: of the stored row.
        """
        row = {**scope.as_dict(), "partition_id": partition_id, "owner_id": RELEASED}
        return row if etag is None else {**row, "etag": etag}

    @staticmethod
    def row(
        claim: Mapping[str, Any], consumer_group: str, owner: str, etag: str | None
    ) -> dict[str, Any]:
        """Return the row to claim for a request, made from the claim of the partition.

        Args:
            claim: the claim that the client has proposed.
            consumer_group: of requests.
            owner: the client that is asked.
            etag: of the stored request that is replaced; None if the partition has no request.
        """
        request = dict(claim)
        request |= {
            "consumer_group": consumer_group,
            "owner_id": f"{claim['owner_id']}{ARROW}{owner}",
        }
        request.pop("etag", None)
        return request if etag is None else {**request, "etag": etag}


@dataclass
class Departure:
    """Partition that this client hands over.

    Attributes:
        until: end of the request.
        is_closed: whether the client has closed the partition and asked for its release.
    """

    until: float
    is_closed: bool = False


@dataclass
class GroupHandover:
    """What one client knows of the requests in its consumer group.

    Args:
        expires_after: seconds after which the client takes an ownership that was not renewed; also
            the time that an owner has to answer a request.

    Attributes:
        me: owner id of this client; empty before its first claim.
        departures: partitions that it hands over.
        released: partitions that the client has released since it last proposed to claim them.
        asking: partitions of whose requests this client is the last writer, as far as it knows.
        over: requests in the last list that this client has to withdraw: its own that are spent or
            void, and void ones for partitions that it owns. The etag of each, by partition.
        left: the owner id under which this client has stopped asking; None if it still asks.
    """

    expires_after: float
    me: str = RELEASED
    departures: dict[str, Departure] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    asking: set[str] = field(default_factory=set)
    over: dict[str, str | None] = field(default_factory=dict)
    left: str | None = None
    _owners: dict[str, tuple[str, float]] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)
    _requests: dict[str, HandoverRequest] | None = field(default_factory=dict)
    _etags: dict[str, str | None] = field(default_factory=dict)
    _spent: dict[str, str | None] = field(default_factory=dict)
    _listed_at: float = math.inf
    _longest_delay: float = 0.0
    _late_until: float = -math.inf
    _patience: float = 0.0

    def listed(
        self,
        rows: Iterable[Mapping[str, Any]],
        requests: Iterable[Mapping[str, Any]] | None,
        now: float,
    ) -> list[dict[str, Any]]:
        """Record lists of ownerships and requests; return the ownerships that the client is to see.

        To every client but its live owner, a partition that is asked for is shown as that of the
        client that asked, also after it was released or its ownership has expired. So each client
        asks for as many partitions as it would take over, a client that asked gets what was
        released for it, and a client that finds an owner gone shares the owner's partitions with
        the others that have asked.

        A partition that the client owns in the store is shown as its own, also if the ownership has
        expired.

        Args:
            rows: the ownerships.
            requests: the rows of requests; None if they could not be read. Then nobody is asked,
                and no hand-over begins.
            now: the time.
        """
        known = [dict(row) for row in rows]
        self._be_patient(now)
        self._owners = {
            row["partition_id"]: (row.get("owner_id") or RELEASED, float(row["last_modified_time"]))
            for row in known
        }
        self._requests, self.over = None, {}
        if requests is not None:
            self._read_requests([dict(row) for row in requests], now)
        self._follow_departures(now)
        self._shown = {}
        for row in known:
            owner = self._shown_owner(row["partition_id"], now)
            self._shown[row["partition_id"]] = owner
            if owner == RELEASED:
                continue  # released, or expired by the client's own rule as well
            row["owner_id"] = owner
            if row["last_modified_time"] + self.expires_after < now:
                row["last_modified_time"] = now  # otherwise the client claims it as expired
        return known

    def _be_patient(self, now: float) -> None:
        """Set the age from which an ownership or a request of others has expired.

        A client that is late itself, as on a machine that is overloaded or was suspended, cannot
        tell an owner that is late from one that is gone. If it took over everything that seems to
        have expired, the work would make it late again, and it would lose all of it in the same
        way: all partitions would pass from one client to the next.
        """
        delay, self._listed_at = now - self._listed_at, now
        if now >= self._late_until:
            self._longest_delay = 0.0
        if LATENESS * delay > self.expires_after:
            self._longest_delay = max(self._longest_delay, delay)
            self._late_until = now + REMEMBERED * self.expires_after
        remembered = min(LATENESS * self._longest_delay, MOST_PATIENT * self.expires_after)
        self._patience = max(self.expires_after, LATENESS * delay, remembered)

    def _read_requests(self, rows: list[dict[str, Any]], now: float) -> None:
        self._etags = {row["partition_id"]: row.get("etag") for row in rows}
        requests = {row["partition_id"]: HandoverRequest.from_row(row) for row in rows}
        self._requests = {}
        self.asking = {
            key for key, request in requests.items() if request and request.requester == self.me
        }
        for partition_id, request in requests.items():
            if request is None:
                continue
            owner = self._stored_owner(partition_id)
            if owner not in (RELEASED, request.owner):
                self._spent[partition_id] = request.etag
            is_spent = self._spent.get(partition_id, "") == request.etag
            if not is_spent:
                self._requests[partition_id] = request
            is_void = not (self._is_open(request, now) or self._is_overdue(request, now))
            if (is_spent and self.me == request.requester) or (
                is_void and self.me in (request.requester, owner)
            ):
                self.over[partition_id] = request.etag

    def _follow_departures(self, now: float) -> None:
        for partition_id, departure in list(self.departures.items()):
            if self._stored_owner(partition_id) != self.me or departure.until <= now:
                del self.departures[partition_id]

    def _stored_owner(self, partition_id: str) -> str:
        return self._owners.get(partition_id, (RELEASED, 0.0))[0]

    def _live_owner(self, partition_id: str, now: float) -> str:
        """Return the owner of a partition; `RELEASED` if the ownership has expired."""
        owner, modified = self._owners.get(partition_id, (RELEASED, -math.inf))
        return RELEASED if modified + self._patience < now else owner

    def _request(self, partition_id: str) -> HandoverRequest | None:
        return (self._requests or {}).get(partition_id)

    def _is_open(self, request: HandoverRequest, now: float) -> bool:
        return now < request.made_at + self._patience

    def _is_overdue(self, request: HandoverRequest, now: float) -> bool:
        return 0 <= now - request.made_at - self._patience < self.expires_after

    def _shown_owner(self, partition_id: str, now: float) -> str:
        """Return the owner that the client is shown; `RELEASED` if it may claim the partition."""
        # Before its first claim, `me` is `RELEASED`, as is the owner of a released partition.
        if self._stored_owner(partition_id) == self.me != RELEASED:
            return self.me
        live, request = self._live_owner(partition_id, now), self._request(partition_id)
        if request is None:
            return live
        is_taken = (
            request.requester == self.me and self._is_overdue(request, now) and live != RELEASED
        )
        return request.requester if is_taken or self._is_open(request, now) else live

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
        owner, request = self._live_owner(partition_id, now), self._request(partition_id)
        is_open = request is not None and self._is_open(request, now)
        is_own = request is not None and request.requester == claimant
        if partition_id not in self._owners or (owner == RELEASED and (is_own or not is_open)):
            return Answer.CLAIM
        if self._requests is None:
            return Answer.WAIT
        if request is not None and is_open and (is_own or not self._may_replace(request, owner)):
            return Answer.WAIT
        if request is not None and is_own and self._is_overdue(request, now):
            return Answer.CLAIM
        return Answer.WAIT if claimant == self.left else Answer.ASK

    def _answer_of_owner(self, partition_id: str, now: float) -> Answer:
        departure, request = self.departures.get(partition_id), self._request(partition_id)
        if departure is not None and now < departure.until:
            return Answer.RELEASE if departure.is_closed else Answer.KEEP
        # Without the patience of this client: the client that asked may be punctual.
        if (
            request is None
            or request.requester == request.owner
            or now >= request.made_at + self.expires_after
        ):
            return Answer.CLAIM
        until = request.made_at + self.expires_after
        self.departures[partition_id] = Departure(until)
        return Answer.KEEP

    def _may_replace(self, request: HandoverRequest, live_owner: str) -> bool:
        """Return whether an open request of another client may be replaced by one of this client.

        Clients that join at the same time do not know of each other when they ask, so the other
        client may have asked for more than its share. What exceeds it may be asked for instead,
        unless the owner has released the partition: then it is claimed soon.
        """
        is_excess = self._count(request.requester) > max(1, self._share())
        return is_excess and live_owner == request.owner

    def _count(self, owner: str) -> int:
        return sum(each == owner for each in self._shown.values())

    def _share(self) -> int:
        """Return how many partitions the client's load balancer takes over at most."""
        owners = {*self._shown.values(), self.me} - {RELEASED}
        return len(self._shown) // len(owners)

    def asked(self, partition_id: str) -> list[tuple[str, str, str | None]]:
        """Record that a partition is asked for, and another one of its owner with it.

        The client wants one partition in a round. As long as it lacks more of its share, and the
        owner has more than its own, it asks for `AT_ONCE`.

        Returns:
            Of each partition: its id, its owner, and the etag of its request.
        """
        owner, share = self._shown[partition_id], self._share()
        lacks = min(AT_ONCE, share - self._count(self.me), self._count(owner) - share)
        asked = [partition_id]
        if owner == self._stored_owner(partition_id):  # otherwise another client has asked for it
            keys = [key for key, shown in self._shown.items() if shown == owner]
            at = keys.index(partition_id)
            # The client has chosen at random, so what follows is random as well.
            asked += [*keys[at + 1 :], *keys[:at]][: max(0, lacks - 1)]
        self.asking.update(asked)
        for key in asked:
            self.over.pop(key, None)
        return [(key, self._stored_owner(key), self._etags.get(key)) for key in asked]

    def withdrawn(self) -> dict[str, str | None]:
        """Return the requests to withdraw, and forget them: the etag of each, by partition."""
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
