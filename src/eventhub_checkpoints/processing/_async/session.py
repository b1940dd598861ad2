"""Partition sessions: the time for which a client holds a partition.

`PartitionSession` has the events of one session that are being processed; `PartitionSessions` has
all open sessions.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from typing import Any

from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.compat import ended
from eventhub_checkpoints._shared.client import is_client_closed
from eventhub_checkpoints.errors import CheckpointStoreError, InvalidRecordError
from eventhub_checkpoints.processing._async.checkpoint_writer import (
    NAMES,
    CheckpointWriter,
    SessionProgress,
    log,
)
from eventhub_checkpoints.processing.policy import Policy
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally, by_partition
from eventhub_checkpoints.processing.watermark import Ticket, Watermark
from eventhub_checkpoints.processing.write_state import Since

PATIENCE = 10.0
"""Seconds after which a caller that waits for room logs a warning."""
LOOKING = 0.2
"""Seconds between checks whether the client of a waiting caller was closed."""


class PartitionSession(SessionProgress[Watermark]):
    """Session of a partition: its events from when it was opened until it is closed.

    Args:
        names: keys of its checkpoint other than the position.
        policy: when to save.
        tally: counts its writes.
        saver: writes what is due of it.
        max_pending: maximum number of events that are started and not passed.
        max_unsaved: maximum number of events that are started and not saved; None: no limit.

    Attributes:
        closer: the aio client's task that closes it, and then releases the partition.
        begun: tickets that are neither done nor failed, by the id of their event.
        is_announced: whether the client has announced that the partition is open; a sync client
            may deliver events before.
        began_at: when it began.
        ends_by: when it will have ended, once it is being closed; before that, None.
        key: its names, as the client spells them.
    """

    __slots__ = (
        *("_draining", "_max_unsaved", "began_at", "begun", "closer", "ends_by", "is_announced"),
        *("key", "saver", "watermark"),
    )

    def __init__(
        self,
        names: Mapping[str, str],
        policy: Policy,
        tally: Tally,
        saver: CheckpointWriter,
        max_pending: int,
        max_unsaved: int | None,
    ) -> None:
        self.watermark = Watermark(max_pending)
        self.key = tuple(names.values())
        super().__init__(names, self.watermark, policy, tally)
        self.saver = saver
        self.is_announced = False
        self.began_at = time.monotonic()
        self.begun: dict[int, Ticket] = {}
        self.closer: object = None
        self.ends_by: float | None = None
        self._draining = Since()
        self._max_unsaved = sys.maxsize if max_unsaved is None else max_unsaved

    @property
    def scope(self) -> tuple[str, ...]:
        """Namespace, hub and consumer group."""
        return self.key[:-1]

    @property
    def pending(self) -> int:
        return self.watermark.pending

    @property
    def has_room(self) -> bool:
        """Return whether one more event may be started."""
        is_full = self.watermark.is_full or self.unsaved >= self._max_unsaved
        return self.is_over or not (is_full or self.is_stuck)

    @property
    def is_stuck(self) -> bool:
        """Return whether an event has failed that all others wait for."""
        unpassed = self.watermark.unpassed
        return bool(unpassed) and unpassed[0].has_failed

    async def wait_for_room(self) -> None:
        """Wait until one more event may be started.

        Raises:
            CheckpointStoreError: an event has failed, and nothing behind it can be saved; or the
                client was closed.
        """
        warns_at = time.monotonic() + PATIENCE
        while not await self.until(lambda: self.has_room or self.is_stuck, LOOKING):
            if is_client_closed():
                raise CheckpointStoreError(
                    f"partition {self.partition_id}: the client was closed while an event waited "
                    "until others were finished and saved; it is read again"
                )
            if time.monotonic() >= warns_at:
                warns_at += PATIENCE
                self._warn_full()
        if not self.has_room:
            raise self.given_up()

    def _warn_full(self) -> None:
        log.warning(
            "partition %s: no event is begun while %d are not finished and %d not saved",
            self.partition_id,
            self.pending,
            self.unsaved,
        )

    def given_up(self) -> CheckpointStoreError:
        """Return the error for the handler to raise, so that the partition is claimed again."""
        return CheckpointStoreError(
            f"partition {self.partition_id}: an event was given up, and nothing behind it can be "
            "saved; it is read again when the partition is claimed anew"
        )

    def enter(self, ticket: Ticket, event: Any) -> bool:
        """Start an event if there is room; return whether there was."""
        with self.guard:
            watermark = self.watermark
            pending, unpassed = watermark.pending, watermark.unpassed
            unsaved = watermark.count + pending - self.progress.saved_count
            # The condition of `has_room`, inlined because it is evaluated for every event.
            is_full = pending >= watermark.max_pending or unsaved >= self._max_unsaved
            if (is_full or (unpassed and unpassed[0].has_failed)) and not self.is_over:
                return False
            if not unsaved:
                self.behind_since = time.monotonic()
            watermark.enter(ticket)
            self.begun[id(event)] = ticket
        return True

    def leave(self, ticket: Ticket, event: Any) -> bool:
        """Finish an event; return whether a save may be due."""
        with self.guard:
            self.begun.pop(id(event), None)
            ticket.is_done = True
            watermark = self.watermark
            unpassed = watermark.unpassed
            if not unpassed or unpassed[0] is not ticket:
                return False
            watermark.move()
            return watermark.count >= self.progress.wake_count

    def forget(self, event: Any) -> None:
        """Remove the ticket of an event."""
        self.begun.pop(id(event), None)

    def draining_since(self) -> float:
        """Return since when the current unfinished events have been waited for."""
        with self.guard:
            begun = self.watermark.count + self.watermark.pending
            return self._draining.of(begun, time.monotonic())

    def is_settled(self) -> bool:
        """Return whether waiting cannot advance the position that may be saved."""
        return self.watermark.is_settled


CLAIM_HERE: ContextVar[PartitionSession | None] = ContextVar(
    "eventhub_checkpoints_claim", default=None
)
"""Session that the running task, or one that it descends from, belongs to.

An aio client opens a partition in the task that its handlers descend from. This identifies a
handler that is still running when its partition was claimed again after receiving had failed.
Source: azure-eventhub 5.15.1, `aio/_eventprocessor/event_processor.py`, `EventProcessor._receive`.
"""


Key = tuple[str, ...]
"""Namespace, hub, consumer group and partition id, as the client spells them."""
names_of: Callable[[PartitionContext], Key] = attrgetter(*NAMES)
OVERLAP = 1.0
"""Seconds that a client may take from listing checkpoints to opening a partition."""


def key_of(partition_context: PartitionContext) -> Key:
    """Return the key of a handler's partition.

    Raises:
        InvalidRecordError: the argument is not a partition context.
    """
    try:
        return names_of(partition_context)
    except AttributeError:
        given = None if partition_context is None else type(partition_context)
        raise InvalidRecordError(
            "partition_context", given, "what the client gives a handler before the events"
        ) from None


class PartitionSessions:
    """Open sessions of all partitions.

    Args:
        make_saver: creates the writer; called again in a forked child.
        policy: when to save.
        write_timeout: seconds that the last write of a session may take.
        max_pending: maximum number of events of a partition that are started and not passed.
        max_unsaved: maximum number of events of one that are started and not saved; None: no limit.

    Attributes:
        saver: the writer.
        open: sessions that have not ended, by their key; replaced on every change, never modified.
    """

    def __init__(
        self,
        make_saver: Callable[[], CheckpointWriter],
        policy: Policy,
        write_timeout: float,
        max_pending: int,
        max_unsaved: int | None = None,
    ) -> None:
        self._make_saver = make_saver
        self._policy = policy
        self._write_timeout = write_timeout
        self._limits = max_pending, max_unsaved
        self._is_closed = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Reset all state: at first, and in a forked child, whose parent saves its own."""
        self._process_id = os.getpid()
        self._guard = threading.Lock()
        self.saver = self._make_saver()
        self.open: dict[Key, PartitionSession] = {}
        self._tallies: dict[Key, Tally] = {}
        self._ended: dict[Key, tuple[float, PartitionSession]] = {}

    def of(self, partition_context: PartitionContext, *, announces: bool) -> PartitionSession:
        """Return the session of a partition; it begins with the first event or announcement.

        A sync client announces a partition in one thread, and may deliver its first event in
        another before, or at the same time.
        """
        if self._process_id != os.getpid():
            self._begin_anew()
        with self._guard:
            known = self.open.get(key_of(partition_context))
            if known is None or (announces and known.is_announced):
                known = self._begin(partition_context)
            known.is_announced |= announces
        return known

    def begin(self, partition_context: PartitionContext) -> PartitionSession:
        """Begin a new session of a partition, whatever was before."""
        with self._guard:
            return self._begin(partition_context)

    def _begin(self, partition_context: PartitionContext) -> PartitionSession:
        key = key_of(partition_context)
        tally = self._tallies.setdefault(key, Tally())
        names = dict(zip(NAMES, key, strict=True))
        claim = PartitionSession(names, self._policy, tally, self.saver, *self._limits)
        claim.before = self._overlapped(key)
        if self._is_closed:
            claim.is_over = True
            return claim
        self.open = {**self.open, key: claim}
        self.saver.add(claim)
        return claim

    def _overlapped(self, key: Key) -> PartitionSession | None:
        """Return the session whose last write may follow the listing for this one, or None."""
        ended_at, before = self._ended.get(key, (-math.inf, None))
        if open_one := self.open.get(key):
            self.saver.end(open_one)
            before = open_one
        elif time.monotonic() - ended_at > OVERLAP:
            return None
        if before is not None:
            before.before = None
        return before

    def drained_by(self, claim: PartitionSession, seconds: float) -> float:
        """Return until when the events of a session may finish whose client stops.

        A sync client closes its partitions one after another, so they share one deadline: it starts
        now for the other partitions too, unless more of their events are started.

        Args:
            claim: the session.
            seconds: that started events have to finish.
        """
        for one in self._beside(claim):
            one.draining_since()
        return claim.draining_since() + seconds

    def _beside(self, claim: PartitionSession) -> list[PartitionSession]:
        """Return the open sessions of a consumer group, including this one."""
        return [one for one in self.open.values() if one.scope == claim.scope]

    async def finish(self, claim: PartitionSession, *, flushes: bool, stops: bool = False) -> None:
        """End a session.

        Args:
            claim: the session.
            flushes: whether its last position is written first, within `write_timeout`.
            stops: whether its client stops. Writing then starts for the other sessions too, and
                they share that time, unless more of their events are finished.
        """
        now = time.monotonic()
        end = now + self._write_timeout
        if flushes and stops:
            several = self._beside(claim)
            for one in several:
                one.flushing.of(one.finished.count, now)
            await self.saver.begin_flush(several, self._write_timeout)
            end = claim.flushing.of(claim.finished.count, now) + self._write_timeout
        if claim.ends_by is not None:
            end = min(end, claim.ends_by)
        await self._end(claim, end, flushes=flushes)

    async def _end(self, claim: PartitionSession, end: float, *, flushes: bool) -> None:
        await self.saver.finish(claim, end - time.monotonic(), flushes=flushes)
        with self._guard:
            self._ended[claim.key] = (time.monotonic(), claim)
            self.open = {key: one for key, one in self.open.items() if one is not claim}

    async def flush(self, partition_id: str | None = None) -> bool:
        """Write what is finished, of one or all partitions; return whether all of it is written."""
        several = [one for one in self.open.values() if partition_id in (None, one.partition_id)]
        return await self.saver.flush_all(several, self._write_timeout)

    async def close(self) -> None:
        """Write what is finished, and end all sessions for good.

        A session that is being closed keeps the time that it has for that, until it is released.
        """
        with self._guard:
            self._is_closed, several = True, list(self.open.values())
        end = time.monotonic() + self._write_timeout
        left = [claim for claim in several if claim.ends_by is None]
        await self.saver.begin_flush(left, self._write_timeout)
        for claim in left:
            await self._end(claim, end, flushes=True)
        # An aio client may have returned from `close` in the meantime.
        for claim in several:
            if claim.ends_by is not None:
                quiet: Callable[[], bool] = partial(getattr, claim, "is_quiet")
                await claim.until(quiet, claim.ends_by - time.monotonic())
                await ended(claim.closer, self._write_timeout)
        await self.saver.close(max(end - time.monotonic(), 0))

    def stats(self) -> dict[str, PartitionStats]:
        """Return statistics of each open partition; see `by_partition`."""
        now = time.monotonic()
        return by_partition([(claim.names, claim.stats(now)) for claim in self.open.values()])
