"""State of the checkpoint writes of a partition, and whether it may be written at all.

`WriteState` has the last save, the current write and the next attempt of one partition, and
`HeldPartitions` knows which partitions a client has lost. Time and randomness are parameters.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from eventhub_checkpoints._shared.deadline import backoff
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing.policy import Due, Policy
from eventhub_checkpoints.processing.statistics import Tally
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.records import Scope, checked_name


class WriteState:
    """Write state of one partition in one session.

    Rule 1: one write at a time. Rule 2: a write takes the newest position at the moment it starts,
    not at the moment it became due.

    Args:
        policy: when to save.
        now: start of the session. Units: seconds of a monotonic clock.
        tally: counts the writes.

    Attributes:
        wake_count: number of finished events from which `due` may return a position, or ...
        wake_time: ... the time from which it may, whichever comes first.
        retry_at: a failed write is not due again before this time.
        saved_count: events, from the first, that the newest confirmed write stands for.
        saved_position: position that this write stored; None if there was none.
        saved_at: time of that write, or the start of the session.
        is_refused_for_good: whether the last write failed in a way that a retry would not fix.
        trying_since: start of the first write since the last successful one; None if there is
            none.
    """

    def __init__(self, policy: Policy, now: float, tally: Tally) -> None:
        self._schedule = policy.begin(now)
        self._writing: Due | None = None
        self._began_at = now
        self._is_late = False
        self._failures = 0
        self._flush_count = 0
        self.retry_at = -math.inf
        self.wake_count: float = self._schedule.wake_count
        self.wake_time = self._schedule.wake_time
        self.saved_count = 0
        self.saved_position: Position | None = None
        self.saved_at = now
        self.tally = tally
        self.is_refused_for_good = False
        self.trying_since: float | None = None

    @property
    def is_writing(self) -> bool:
        """Return whether a write is in progress."""
        return self._writing is not None

    def due(self, count: int, position: Position | None, now: float) -> Due | None:
        """Start the write that the policy asks for; None: nothing is to be written now.

        `position` is that of the last of the `count` events finished since the session began.
        """
        if self._writing is not None or now < self.retry_at:
            return None
        due = self._schedule.look(count, position, now)
        self.wake_count, self.wake_time = self._schedule.wake_count, self._schedule.wake_time
        if due is None and position is not None and self.saved_count < self._flush_count:
            due = Due(count, position)
        return due and self._begin(due, now)

    def rest(self, count: int, position: Position | None, now: float) -> Due | None:
        """Start a write of all that is finished and not saved, regardless of the policy.

        If it fails it is due again, even if the policy would not ask for it.
        """
        self._flush_count = max(self._flush_count, count)
        if self._writing is not None or position is None or count <= self.saved_count:
            return None
        return self._begin(Due(count, position), now)

    def instead(self, due: Due, now: float) -> Due | None:
        """Start a write of a given position; once saved, its first `due.count` events are saved.

        Return None if another write is in progress.
        """
        return None if self._writing is not None else self._begin(due, now)

    def _begin(self, due: Due, now: float) -> Due:
        self._writing, self._began_at, self._is_late = due, now, False
        self.is_refused_for_good = False
        if self.trying_since is None:
            self.trying_since = now
        self._sleep_until(math.inf)
        return due

    def late_at(self, limit: float) -> float:
        """Return when the current write, which may take `limit` seconds, times out.

        Infinity if there is none, or it has already.
        """
        is_waiting = self._writing is not None and not self._is_late
        return self._began_at + limit if is_waiting else math.inf

    def was_late(self) -> None:
        """Count the current write as failed: it timed out, and the next one waits for its end."""
        self._is_late = True
        self.tally.failed += 1

    def was_saved(self, now: float) -> None:
        """Record that the write was confirmed."""
        due = self._ended(now)
        self.tally.saved += 1
        self.saved_position, self.saved_at = due.position, now
        self._schedule.saved(due.count, now)

    def was_refused(self, now: float) -> None:
        """Record that another writer is ahead: its checkpoint stands for these events as well."""
        due = self._ended(now)
        self.tally.refused += 1
        self._schedule.saved(due.count, now)

    def was_covered(self, now: float) -> None:
        """Record that nothing was written, because the stored position stands for these events."""
        self._schedule.saved(self._ended(now).count, now)

    def was_given_up(self, now: float, *, is_refusal: bool) -> None:
        """Record that a requested write is not retried; what it stood for remains unsaved."""
        self._writing = None
        self.tally.refused += is_refusal
        self.tally.failed += not is_refusal and not self._is_late
        if not self._failures:
            self.trying_since = None
        self._sleep_until(max(now, self.retry_at))

    def was_dropped(self) -> None:
        """Record that the write was not started after all, and that none will be."""
        self._writing = self.trying_since = None

    def _ended(self, now: float) -> Due:
        due, self._writing = self._writing, None
        assert due is not None, "a write ended that had not begun"
        self._failures, self.retry_at, self.trying_since = 0, -math.inf, None
        self.saved_count = max(self.saved_count, due.count)
        self._sleep_until(now)
        return due

    def has_failed(self, now: float, chance: float, *, for_good: bool = False) -> None:
        """Record that the write failed or its outcome is unknown; it is due again after a pause.

        Args:
            now: see the class.
            chance: from 0 to 1, so that many clients do not retry in step.
            for_good: whether a retry would not help, so that no caller waits for it.
        """
        self._writing, self.is_refused_for_good = None, for_good
        self.tally.failed += not self._is_late
        self.retry_at = now + backoff(self._failures, chance)
        self._failures += 1
        self._sleep_until(self.retry_at)

    def _sleep_until(self, moment: float) -> None:
        self.wake_count, self.wake_time = math.inf, moment


Key = tuple[Scope, str]
Row = Mapping[str, Any]


def key_of(row: Row) -> Key:
    """Return the key of the partition that a record is about, regardless of case.

    Raises:
        InvalidRecordError: the record is not a dict, or a name or id is unusable.
    """
    scope = Scope.from_dict(row)
    return scope.folded, checked_name("partition_id", row.get("partition_id"))


def keyed(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return records by the partition that they are about, without those that are unusable."""
    usable: dict[Key, Row] = {}
    for row in rows:
        with suppress(InvalidRecordError):
            usable[key_of(row)] = row
    return usable


class HeldPartitions:
    """Partitions that a client holds, as its claims and ownership lists have shown.

    Rule 1: a partition is lost when a batch of claims of its group comes back without it, or when a
    list shows another owner; it is given up by a release. Rule 2: a client that has never claimed a
    partition has not lost it: it may read one by name.
    """

    def __init__(self) -> None:
        self._owners: dict[Key, object] = {}
        self._lost: set[Key] = set()

    def has_lost(self, key: Key) -> bool:
        """Return whether another client owns the partition now, as far as is known."""
        return key in self._lost

    def released(self, keys: Iterable[Key]) -> None:
        """Record that partitions were released."""
        self._lose({*keys})

    def claimed(self, proposed: Iterable[Row], won: Iterable[Row]) -> set[Key]:
        """Record the result of a batch of claims; return the partitions that are lost."""
        claims = {key for key, row in keyed(proposed).items() if row.get("owner_id")}
        owners = {key: row.get("owner_id") for key, row in keyed(won).items() if key in claims}
        scopes = {scope for scope, _ in claims}
        gone = claims | {key for key in self._owners if key[0] in scopes}
        self._owners.update(owners)
        self._lost -= owners.keys()
        return self._lose(gone - owners.keys())

    def listed(self, rows: Iterable[Row]) -> set[Key]:
        """Record a list of ownerships; return the partitions that are lost."""
        shown = keyed(rows)
        return self._lose(
            {
                key
                for key, owner in self._owners.items()
                if key in shown and shown[key].get("owner_id") not in (owner, "", None)
            }
        )

    def _lose(self, keys: set[Key]) -> set[Key]:
        for key in keys:
            self._owners.pop(key, None)
        self._lost |= keys
        return keys
