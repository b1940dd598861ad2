"""Rule that finds a partition that has stalled, and where it hangs.

A partition has stalled if there is something to do, and nothing has been done for a while: the hub
has events after the last one received and none arrives, or an event was received and none is
finished, or a position is finished and none is saved. Snapshots and time are parameters.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.sdk.consumer import LinkAttempt

Where = Literal["hub", "link", "handler", "store"]
ASKING = 0.5
"""Part of the time limit after which the hub is asked about a partition that receives nothing."""

SHORTEST_SILENCE = 20.0
"""Seconds without an answer that may be the client's own attempts, whatever the time limit."""
REFUSED_IN_A_ROW = 3
"""Attempts to open a link after which it counts as refused: one that goes on may only be slow."""
LONGEST_OPENING = 60.0
"""Seconds that the client may take to open a link, whatever the time limit.

A synchronous client advances it by one step each time it has looked at all its partitions.

Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer._open`, called by
`_eventprocessor/event_processor.py`, `EventProcessor.start`.
"""
MOST_REOPENED = 4
"""Reopenings without an event between them after which the time to the next one stays the same."""
LOST = "the client has stopped receiving, and keeps the partition"


@dataclass(frozen=True, slots=True)
class Stall:
    """Partition in which nothing happens, although there is something to do.

    Attributes:
        partition_id: which partition.
        where: where it hangs. `"hub"`: the hub does not answer. `"link"`: the hub answers and has
            events, and the client does not deliver them. `"handler"`: events or a call of a
            handler are not finished. `"store"`: the store confirms nothing.
        seconds: for how long, when it was last looked at.
        reason: what is known of it, for people.
    """

    partition_id: str
    where: Where
    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"partition {self.partition_id} has stalled ({self.where}): {self.reason}"


class Snapshot(NamedTuple):
    """What is known of a partition at one moment.

    Attributes:
        arrived: changes with every event that arrives; only compared.
        worked: changes whenever an event is finished or a handler returns; only compared.
        is_busy: whether an event that arrived, or a handler that was called, is unfinished.
        trying: identify attempts to reach the store that have not succeeded yet.
        reached: sequence number of the last event that arrived, or after which the partition was
            opened; None: it is not known.
        newest: sequence number of the last event of the hub that the client knows of; None: it
            knows of none.
        is_lost: whether the client has lost the task or thread that receives.
        is_ending: whether the partition is being closed: it drains, within a time limit.
        attempt: of the client to open the link; None: the link is open, or that is not known.
    """

    arrived: Hashable = 0
    worked: Hashable = 0
    is_busy: bool = False
    trying: frozenset[Hashable] = frozenset()
    reached: int | None = None
    newest: int | None = None
    is_lost: bool = False
    is_ending: bool = False
    attempt: LinkAttempt | None = None


class Since:
    """Time since which a partition has been waited for without any progress."""

    __slots__ = ("_at", "_mark")

    def __init__(self) -> None:
        self._mark: Hashable = -1
        self._at = -math.inf

    def of(self, mark: Hashable, now: float) -> float:
        """Return when this mark was first passed; a different mark, as a count, restarts it."""
        if mark != self._mark:
            self._mark, self._at = mark, now
        return self._at


class PartitionWatch:
    """Looks at one partition from time to time, and finds out whether it has stalled.

    Args:
        partition_id: which partition.
        stalled_after: seconds without progress that make a stall.

    Attributes:
        arrivals: number of looks at which more events had arrived than at the one before.
        is_behind: whether the hub has events that have not arrived, as far as that is known.
        stall: what the last look has found; None: the partition works, or has nothing to do.
    """

    def __init__(self, partition_id: str, stalled_after: float) -> None:
        self.arrivals = 0
        self.is_behind = False
        self.stall: Stall | None = None
        self._partition_id = partition_id
        self._limit = stalled_after
        self._arrived, self._worked = Since(), Since()
        self._lost, self._behind, self._attached = Since(), Since(), Since()
        self._attempt: LinkAttempt | None = None
        self._refusals = 0
        self._trying: dict[Hashable, float] = {}
        self._last_arrived: Hashable = None
        self._idle_since: float | None = None
        self._asked_at = self._answered_at = -math.inf
        self._newest: int | None = None
        self._reached: int | None = None

    def look(self, snapshot: Snapshot, silent_since: float | None, now: float) -> Stall | None:
        """Return the stall at this moment, or None.

        Args:
            snapshot: what is known of the partition.
            silent_since: since when the hub has answered no query; None: it answers.
            now: seconds of a monotonic clock.
        """
        self.arrivals += snapshot.arrived != self._last_arrived
        self._last_arrived = snapshot.arrived
        if snapshot.attempt != self._attempt:
            if snapshot.attempt is None:
                self._refusals = 0
            elif snapshot.attempt.link is not None:
                self._refusals += 1
            self._attempt = snapshot.attempt
        self._trying = {mark: self._trying.get(mark, now) for mark in snapshot.trying}
        trying = min(self._trying.values(), default=now)
        arrived, worked = (
            self._arrived.of(snapshot.arrived, now),
            self._worked.of(snapshot.worked, now),
        )
        lost = self._lost.of(snapshot.is_lost, now)
        still_since = max(arrived, worked)
        self._idle_since = None if snapshot.is_busy or snapshot.is_ending else still_since
        if snapshot.is_ending:
            self.stall = None
        elif now - trying >= self._limit:
            self._record("store", trying, now, "the store has confirmed no write")
        elif snapshot.is_busy:
            reason = "events were received, and none was finished"
            self._record("handler", still_since, now, reason)
        elif not (snapshot.is_lost and self._record("link", max(lost, still_since), now, LOST)):
            self._judge_link(snapshot, still_since, silent_since, now)
        return self.stall

    def _judge_link(
        self, snapshot: Snapshot, idle_since: float, silent_since: float | None, now: float
    ) -> None:
        if snapshot.reached is not None:
            self._reached = snapshot.reached
        newest = max(
            (number for number in (self._newest, snapshot.newest) if number is not None),
            default=None,
        )
        reached = self._reached
        self.is_behind = newest is not None and reached is not None and newest > reached
        behind = self._behind.of((self.is_behind, reached), now)
        attached = self._attached.of(snapshot.attempt is None, now)
        since, limit = max(behind, idle_since), LONGEST_OPENING
        reason = f"the hub has events up to {newest}, and none has arrived after {reached}"
        if snapshot.attempt is None:
            since, limit = max(since, attached), 0.0
        else:
            reason += ": the link is not open"
        if self.is_behind and self._record("link", since, now, reason, limit):
            return
        if silent_since is not None:
            since = max(silent_since, idle_since)
            reason = "no event arrives, and the hub answers no query"
            if self._record("hub", since, now, reason, SHORTEST_SILENCE):
                return
        # Also while a query is under way: what is known of the link is not over then.
        self._judge_opening(attached, idle_since, now)

    def _judge_opening(self, since: float, idle_since: float, now: float) -> None:
        """Judge a link that the client does not get open, while the hub answers queries."""
        self.stall = None
        if self._attempt is None or self._refusals < REFUSED_IN_A_ROW or self._answered_at < since:
            return
        position = quoted(self._attempt.position)
        reason = (
            "the hub answers queries, and accepts none of the client's attempts to read from "
            f"position {position}; does it have this position, and the consumer group? Tried"
        )
        self._record("link", max(since, idle_since), now, reason)

    def _record(
        self, where: Where, since: float, now: float, reason: str, limit: float = 0.0
    ) -> bool:
        """Record a stall, if it has lasted for the time limit; return whether it has."""
        seconds = now - since
        self.stall = None
        if seconds >= max(self._limit, limit):
            self.stall = Stall(self._partition_id, where, seconds, f"{reason} for {seconds:.0f} s")
        return self.stall is not None

    def attribute(self, where: Where, reason: str) -> None:
        """Change where the partition hangs, after a look at what the client does."""
        if self.stall is not None:
            self.stall = replace(self.stall, where=where, reason=reason)

    def clear(self) -> None:
        """Drop the stall: the partition only waits for others."""
        self.stall = None

    def query_due(self, now: float) -> float | None:
        """Return since when the hub should be asked about the partition; None: it should not."""
        if self._idle_since is None:
            return None
        due = max(self._idle_since, self._asked_at) + ASKING * self._limit
        return due if now >= due else None

    def asked(self, now: float) -> None:
        """Record that the hub is asked."""
        self._asked_at = now

    def answered(self, properties: Mapping[str, Any]) -> None:
        """Record the hub's answer.

        Args:
            properties: of the partition, as the client returns them.
        """
        newest = int(properties["last_enqueued_sequence_number"])
        self._answered_at = self._asked_at
        if self._reached is None:
            # Where the partition began is not known: what arrives from now on has to arrive.
            self._reached = newest
        # Events that have expired are not expected any more.
        self._newest = None if properties["is_empty"] else newest


class Reopenings:
    """When a link that has stalled is opened again: later each time, until an event arrives.

    What keeps it from opening, such as a client that is busy, may be still there.

    Args:
        stalled_after: seconds without progress that make a stall.
    """

    def __init__(self, stalled_after: float) -> None:
        self._limit = stalled_after
        self._count = 0
        self._last = -math.inf
        self._reached: int | None = None

    def is_due(self, reached: int | None, now: float) -> bool:
        """Return whether to open the link of a stalled partition again, and record that it is.

        Args:
            reached: sequence number of the last event that arrived, as in `Snapshot`.
            now: seconds of a monotonic clock.
        """
        if now - self._last < self._limit * 2**self._count:
            return False
        self._count = min(self._count + 1, MOST_REOPENED)
        self._last, self._reached = now, reached
        return True

    def is_over(self, reached: int | None) -> bool:
        """Return whether an event has arrived since the link was last opened again."""
        return reached is not None and reached != self._reached
