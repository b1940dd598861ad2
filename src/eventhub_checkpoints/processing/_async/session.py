"""Partition sessions: the time for which a client holds a partition.

`PartitionSession` has the events of one session that are being processed; `PartitionSessions` has
all open sessions.
"""

import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from operator import attrgetter
from typing import Any

from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.compat import ended
from eventhub_checkpoints.errors import CheckpointStoreError, InvalidRecordError
from eventhub_checkpoints.processing._async.checkpoint_writer import (
    NAMES,
    CheckpointWriter,
    SessionProgress,
    log,
)
from eventhub_checkpoints.processing._async.client_source import ClientSource
from eventhub_checkpoints.processing.policy import Policy
from eventhub_checkpoints.processing.source import Source
from eventhub_checkpoints.processing.stall import Since, Snapshot
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally, by_partition
from eventhub_checkpoints.processing.watermark import InFlightEvent, Position, Row, Watermark
from eventhub_checkpoints.sdk.stack import is_client_closed

PATIENCE = 10.0
"""Seconds after which a caller that waits for room logs a warning."""
LOOKING = 0.2
"""Seconds between checks whether the client of a waiting caller was closed."""
OVERLAP = 1.0
"""Seconds that a client may take from listing checkpoints to opening a partition."""

Names = tuple[str, ...]
"""Namespace, hub, consumer group and partition id, as the client spells them."""
read_names: Callable[[PartitionContext], Names] = attrgetter(*NAMES)


def names_of(partition_context: PartitionContext) -> Names:
    """Return the names of a handler's partition.

    Raises:
        InvalidRecordError: the argument is not a partition context.
    """
    try:
        return read_names(partition_context)
    except AttributeError:
        kind = None if partition_context is None else type(partition_context)
        raise InvalidRecordError(
            "partition_context", kind, "the context that the client passes to its handlers"
        ) from None


class PartitionSession(SessionProgress[Watermark]):
    """Session of a partition: its events from when it was opened until it is closed.

    Args:
        key: its names, as the client spells them.
        max_pending: maximum number of events that are started and not passed.
        max_unsaved: maximum number of events that are started and not saved; None: no limit.
        source: delivers its events.

    Attributes:
        source: delivers its events; replaced when the client announces the partition.
        closer: the aio client's task that closes it, and then releases the partition.
        context: the client's context of the partition, by which its handlers find the session of a
            `Checkpointer`; None: it belongs to a processor.
        batch: events that the handler of a processor is called with; empty when it has returned.
        passed: events that the running call of the handler was passed: the batch, or one of it.
        begun: events that are finished one by one, and neither done nor failed, by the id of the
            client's object.
        has_failures: whether any event has failed.
        is_announced: whether the client has announced that the partition is open; a sync client
            may deliver events before.
        began_at: when it began.
        ends_by: when it will have ended, once it is being closed; before that, None.
        ended_at: when it ended; before that, None.
        scope: namespace, hub and consumer group.
    """

    __slots__ = (
        *("_draining", "_indexes", "_max_unsaved", "batch", "began_at", "begun", "closer"),
        *("context", "ended_at", "ends_by", "has_failures", "is_announced", "key", "passed"),
        *("scope", "source", "writer"),
    )

    def __init__(
        self,
        key: Names,
        policy: Policy,
        tally: Tally,
        writer: CheckpointWriter,
        max_pending: int,
        max_unsaved: int | None,
        source: Source,
    ) -> None:
        self.key, self.scope = key, key[:-1]
        names: Mapping[str, str] = dict(zip(NAMES, key, strict=True))
        super().__init__(names, Watermark(max_pending), policy, tally)
        self.writer = writer
        self.has_failures = self.is_announced = False
        self.began_at = time.monotonic()
        self.begun: dict[int, InFlightEvent] = {}
        self.batch: Sequence[Any] = ()
        self.passed: Sequence[Any] = ()
        self._indexes: dict[int, int] = {}
        self.source = source
        self.closer: object = None
        self.context: PartitionContext | None = None
        self.ends_by: float | None = None
        self.ended_at: float | None = None
        self._draining = Since()
        self._max_unsaved = sys.maxsize if max_unsaved is None else max_unsaved

    def snapshot(self) -> Snapshot:
        """Return what the watchdog has to know."""
        watermark, source = self.watermark, self.source
        try:
            tracked: tuple[int, str] | None = watermark.unpassed[-1].position
        except IndexError:  # another thread may pass the last event at any time
            tracked = watermark.position
        received = [source.reached, tracked[0] if tracked else None]
        trying = self.progress.trying_since
        return Snapshot(
            arrived=(watermark.begun, *received),
            worked=watermark.count,
            is_busy=watermark.pending > 0,
            trying=frozenset() if trying is None else frozenset({trying}),
            reached=max((number for number in received if number is not None), default=None),
            newest=source.newest,
            is_lost=source.is_lost,
            is_ending=self.is_over
            or self.ends_by is not None
            or (bool(self.begun) and source.is_drained),
            attempt=source.attempt,
        )

    @property
    def has_room(self) -> bool:
        """Return whether one more event may be started."""
        is_full = self.watermark.is_full or self.unsaved >= self._max_unsaved
        return self.is_over or not (is_full or self.is_stuck)

    @property
    def is_stuck(self) -> bool:
        """Return whether an event has failed that all others wait for."""
        first = self.watermark.first_unpassed
        return first is not None and first.has_failed

    async def wait_for_room(self) -> None:
        """Wait until one more event may be started.

        Raises:
            CheckpointStoreError: an event has failed, and nothing after it can be saved; or the
                client was closed.
        """
        warns_at = time.monotonic() + PATIENCE
        while not await self.until(lambda: self.has_room or self.is_stuck, LOOKING):
            if is_client_closed():
                raise CheckpointStoreError(
                    f"partition {self.partition_id}: the client was closed while an event waited "
                    "until others were finished and saved; that event is read again"
                )
            if time.monotonic() >= warns_at:
                warns_at += PATIENCE
                log.warning(
                    "partition %s: no further event is begun while %d are unfinished, %d unsaved",
                    self.partition_id,
                    self.pending,
                    self.unsaved,
                )
        if not self.has_room:
            raise self.stuck_error()

    def stuck_error(self) -> CheckpointStoreError:
        """Return the error for the handler to raise, so that the partition is claimed again."""
        return CheckpointStoreError(
            f"partition {self.partition_id}: the processing of an event has failed, so no later "
            "position can be saved; that event is read again when the partition is claimed again"
        )

    def enter(self, event: InFlightEvent, client_event: Any) -> bool:
        """Start an event, of which `client_event` is the client's object, if there is room for it.

        Without `guard`, to save time for every event: events are started one after another, and the
        events that finish meanwhile only make room.
        """
        watermark = self.watermark
        begun, saved_count = watermark.begun, self.progress.saved_count
        # Most of `has_room`, inlined because it is evaluated for every event.
        is_full = begun - watermark.count >= watermark.max_pending
        if (is_full or begun - saved_count >= self._max_unsaved or self.has_failures) and (
            not self.has_room
        ):
            return False
        if begun == saved_count:
            self.behind_since = time.monotonic()
        self.begun[id(client_event)] = event
        watermark.enter(event)
        return True

    def leave(self, event: InFlightEvent, client_event: Any) -> None:
        """Finish an event that was entered or taken out."""
        self.begun.pop(id(client_event), None)
        is_due = False
        # Two threads may finish neighbours at once: without the guard each could find the other's
        # not done yet, and the position would stay before the second.
        with self.guard:
            event.is_done = True
            watermark = self.watermark
            unpassed = watermark.unpassed
            if unpassed and unpassed[0] is event:
                watermark.move()
                is_due = watermark.count >= self.progress.wake_count
        if is_due:
            self.writer.wake()
        if self.watchers:
            self.changed()

    def fail(self, event: InFlightEvent, client_event: Any) -> None:
        """Mark an event as failed: the position stays before it until the session ends."""
        self.begun.pop(id(client_event), None)
        event.has_failed = self.has_failures = True
        self.changed()

    def begin(self, batch: Sequence[Any], rows: Sequence[Row]) -> None:
        """Start the batch that a handler is called with next; `rows` are its sequence numbers."""
        # Events that were taken out of earlier batches may finish in other threads meanwhile.
        with self.guard:
            self.batch, self._indexes = batch, {}
            self.watermark.begin(rows)

    def returned(self) -> None:
        """Record that the handler has returned: single events can no longer be taken out."""
        self.batch, self._indexes = (), {}

    def index_of(self, event: object) -> int | None:
        """Return the index of an event in the current batch; None if it is not in it."""
        # Created on demand: few handlers take events out of their batches.
        if len(self._indexes) != len(self.batch):
            self._indexes = {id(each): index for index, each in enumerate(self.batch)}
        return self._indexes.get(id(event))

    def take_out(self, event: InFlightEvent, client_event: Any, previous: Position | None) -> bool:
        """Take an event out of the current batch; return whether it is still unfinished there.

        Args:
            event: finishes it.
            client_event: the client's object.
            previous: position of the event before it in the batch; None: it is the first.
        """
        # Events that were taken out before may finish in other threads, which moves the watermark.
        with self.guard:
            is_taken = self.watermark.take_out(event, previous)
            if is_taken:
                self.begun[id(client_event)] = event
        return is_taken

    def finish(self, position: Position | None = None) -> None:
        """Finish the events of all batches up to and including a position; None: all of them."""
        with self.guard:
            self.watermark.finish(position)
        if self.watermark.count >= self.progress.wake_count:
            self.writer.wake()
        self.changed()

    def has_passed(self, position: Position) -> bool:
        """Return whether all events up to a position are finished."""
        reached = self.watermark.position
        return reached is not None and position.sequence_number <= reached.sequence_number

    def draining_since(self) -> float:
        """Return since when the current unfinished events have been waited for."""
        with self.guard:
            return self._draining.of(self.watermark.begun, time.monotonic())


CURRENT_SESSION: ContextVar[PartitionSession | None] = ContextVar(
    "eventhub_checkpoints_session", default=None
)
"""Session that the running task, or one that it descends from, belongs to.

An aio client opens a partition in the task that its handlers descend from. This identifies a
handler that is still running when its partition was claimed again after receiving had failed.
Source: azure-eventhub 5.15.1, `aio/_eventprocessor/event_processor.py`, `EventProcessor._receive`.
"""


class PartitionSessions:
    """Open sessions of all partitions.

    Args:
        make_writer: called again in a forked child.
        policy: when to save.
        write_timeout: seconds that the last write of a session may take.
        max_pending: see `PartitionSession`, like `max_unsaved`.

    Attributes:
        open: sessions that have not ended, by the names of their partition; replaced on every
            change, never modified, since others read it without a lock.
    """

    def __init__(
        self,
        make_writer: Callable[[], CheckpointWriter],
        policy: Policy,
        write_timeout: float,
        max_pending: int,
        max_unsaved: int | None = None,
    ) -> None:
        self._make_writer = make_writer
        self._policy = policy
        self._write_timeout = write_timeout
        self._limits = max_pending, max_unsaved
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        """Reset all state: at first, and in a forked child, whose parent saves its own."""
        self._process_id = os.getpid()
        self._guard = threading.Lock()
        self.writer = self._make_writer()
        self.open: dict[Names, PartitionSession] = {}
        self._newest: dict[Names, PartitionSession] = {}

    def of(self, partition_context: PartitionContext, *, announces: bool) -> PartitionSession:
        """Return the session of a partition; it begins with the first event or announcement.

        A sync client announces a partition in one thread, and may deliver its first event in
        another before, or at the same time.
        """
        if self._process_id != os.getpid():
            self._reset()
        with self._guard:
            names = names_of(partition_context)
            session = self.open.get(names)
            if session is None or (announces and session.is_announced):
                session = self._begin(names, ClientSource(partition_context))
                session.context = partition_context
            session.is_announced |= announces
        return session

    def begin(self, key: Names, source: Source) -> PartitionSession:
        """Begin a new session of a partition, whatever was before."""
        with self._guard:
            return self._begin(key, source)

    def _begin(self, key: Names, source: Source) -> PartitionSession:
        before = self._newest.get(key)
        tally = Tally() if before is None else before.progress.tally
        session = PartitionSession(key, self._policy, tally, self.writer, *self._limits, source)
        session.before = before and self._overlapped(before)
        if self._is_closed:
            session.is_over = True
            return session
        self._newest[key] = session
        # Replaced, not modified: `done`, `stats` and the watchdog iterate over it in other threads.
        self.open = {**self.open, key: session}
        self.writer.add(session)
        return session

    def _overlapped(self, before: PartitionSession) -> PartitionSession | None:
        """Return the earlier session if its last write may come after the next one has listed."""
        if before.ended_at is None:
            # A sync client has opened it again while `on_close` of the earlier session still runs,
            # or has never closed it. Whatever write runs now is waited for in `is_covered`.
            self.writer.end(before)
        elif time.monotonic() - before.ended_at > OVERLAP:
            return None
        # Each session refers to one before it, not to a chain of all.
        before.before = None
        return before

    def ended_before(self, event: object) -> PartitionSession | None:
        """Return the session that has ended before this event of it was finished, if any."""
        for session in list(self._newest.values()):
            if session.is_over and id(event) in session.begun:
                return session
        return None

    def drained_by(self, session: PartitionSession, seconds: float) -> float:
        """Return until when the events of a session may finish, as its client stops.

        A sync client closes its partitions one after another. So the time starts now for the other
        partitions too; it starts again for one in which more events begin.
        """
        for each in self._of_same_client(session):
            each.draining_since()
        return session.draining_since() + seconds

    def _of_same_client(self, session: PartitionSession) -> list[PartitionSession]:
        """Return the open sessions of a consumer group, including this one."""
        return [each for each in self.open.values() if each.scope == session.scope]

    async def finish(
        self, session: PartitionSession, *, flushes: bool, stops: bool = False
    ) -> None:
        """End a session.

        Args:
            session: to end.
            flushes: whether its last position is written first, within `write_timeout`.
            stops: whether its client stops. Then the writes of its other sessions begin as well,
                and their time starts now; it starts again for one in which more events finish.
        """
        now = time.monotonic()
        end = now + self._write_timeout
        if flushes and stops:
            sessions = self._of_same_client(session)
            for each in sessions:
                each.flushing.of(each.watermark.count, now)
            await self.writer.begin_flush(sessions, self._write_timeout)
            end = session.flushing.of(session.watermark.count, now) + self._write_timeout
        if session.ends_by is not None:
            end = min(end, session.ends_by)
        await self._end(session, end, flushes=flushes)

    async def _end(self, session: PartitionSession, end: float, *, flushes: bool) -> None:
        await self.writer.finish(session, end - time.monotonic(), flushes=flushes)
        with self._guard:
            session.ended_at = time.monotonic()
            # By identity: a later session of the same partition may be open already.
            self.open = {key: each for key, each in self.open.items() if each is not session}

    async def flush(self, partition_id: str | None = None) -> bool:
        """Write what is finished, of one or all partitions; return whether all of it is written."""
        sessions = [
            each for each in self.open.values() if partition_id in (None, each.partition_id)
        ]
        return await self.writer.flush_all(sessions, self._write_timeout)

    async def in_background(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Call a function that does not raise; `close` waits for it, within its time."""
        try:
            self.writer.begin(function, *args)
        except RuntimeError:  # no thread can be started during interpreter shutdown
            await function(*args)

    async def close(self) -> None:
        """Write what is finished, and end all sessions for good.

        A session that is being closed keeps its own time limit.
        """
        with self._guard:
            self._is_closed, sessions = True, list(self.open.values())
        end = time.monotonic() + self._write_timeout
        left = [each for each in sessions if each.ends_by is None]
        await self.writer.begin_flush(left, self._write_timeout)
        for session in left:
            await self._end(session, end, flushes=True)
        # An aio client may have returned from `close` in the meantime.
        for session in sessions:
            if session.ends_by is not None:
                quiet: Callable[[], bool] = partial(getattr, session, "is_quiet")
                await session.until(quiet, session.ends_by - time.monotonic())
                await ended(session.closer, self._write_timeout)
        await self.writer.close(max(end - time.monotonic(), 0))

    def stats(self) -> dict[str, PartitionStats]:
        """Return statistics of each open partition; see `by_partition`."""
        now = time.monotonic()
        return by_partition([(each.names, each.stats(now)) for each in self.open.values()])
