# Derived from _async/checkpointer.py by tools/unasync.py; edit that file.
"""Checkpoints for event handlers that process events concurrently, in any order.

An event is tracked when it arrives, and finished when it has been processed. The saved position is
the last one up to which all events are finished. It is written in the background, when the policy
requires it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TypedDict

from azure.eventhub import CheckpointStore, CloseReason, EventData, PartitionContext

from eventhub_checkpoints._shared._sync.client_check import ClosingContext, check_context
from eventhub_checkpoints._shared._sync.compat import caller
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.settings import is_count, kind_of, require, require_seconds
from eventhub_checkpoints._shared.texts import some
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._sync.checkpoint_writer import CheckpointWriter, log
from eventhub_checkpoints.processing._sync.client_source import ClientSource
from eventhub_checkpoints.processing._sync.handover import HandoverStore, is_handing_over
from eventhub_checkpoints.processing._sync.session import (
    CURRENT_SESSION,
    PartitionSession,
    PartitionSessions,
    names_of,
)
from eventhub_checkpoints.processing._sync.tracked_event import ANNOUNCED_WITHIN, TrackedEvent
from eventhub_checkpoints.processing._sync.watchdog import (
    OnStall,
    Watchdog,
    WatchedPartition,
    check_watchdog,
    store_that_reopens,
)
from eventhub_checkpoints.processing.policy import DEFAULT_POLICY, Policy, any_of, every
from eventhub_checkpoints.processing.statistics import PartitionStats
from eventhub_checkpoints.records import checked_name
from eventhub_checkpoints.sdk.consumer import UNKNOWN, store_of
from eventhub_checkpoints.sdk.stack import is_client_closed

NOT_ANNOUNCED = (
    "the client does not report when it opens and closes partitions, so the last position of a "
    "session is not saved: pass **checkpointer.handlers to its receive()"
)


class Handlers(TypedDict):
    """Keyword arguments that `Checkpointer.handlers` adds to the client's `receive`."""

    on_partition_initialize: Callable[[PartitionContext], None]
    on_partition_close: Callable[[PartitionContext, CloseReason], None]


class Checkpointer(
    OfOneProcess,
    ClosingContext,
    pickle_instead="pass the URL of its store, and create both in the other process",
):
    """Saves the positions of the partitions that a client processes, in whatever order.

    Each event is tracked when it arrives. The saved position is the last one up to which all events
    are finished, so a crash repeats events but loses none:

    ```python
    checkpointer = Checkpointer(store, every(events=500, seconds=5))

    async def on_event(partition_context, event):
        async with checkpointer.track(partition_context, event):
            await process(event)

    await client.receive(on_event, **checkpointer.handlers)
    ```

    Args:
        store: the store that the client was constructed with, as its `checkpoint_store`.
        policy: when to save.
        max_pending: maximum number of events of a partition that are started and not yet passed by
            its position; `track` waits rather than exceed it.
        max_unsaved: maximum number of events of a partition that are started and not yet saved: at
            most this many are read again after a crash, even if the store is unavailable; None: no
            limit.
        drain_timeout: seconds that started events have to finish when the client stops.
        write_timeout: seconds that one write may take.
        on_error: called with the partition id and the error when a write has failed, which is then
            retried, or was refused as stale. It must be a plain function, and is called
            concurrently with handlers.
        unhealthy_after: seconds for which writes may fail while `healthy` still returns True.
        stalled_after: seconds without progress after which a partition has stalled, if there is
            something to do; more than a handler may take for one event. None: this is not watched.
        on_stall: what happens to a partition that has stalled, besides a line in the log, in
            `stats` and in `healthy`: `"report"`, nothing more; `"reopen"`, the client opens its
            link again if that delivers nothing; or a callable, which is passed a `Stall`, in the
            background.

    Without `handlers`, the last position of each session is not saved when the session ends. A
    warning is logged once: for an aio client, at the first event. A sync client may deliver an
    event before it announces the partition, so there the warning is logged at an event that
    arrives at least a second later, or by `close`.

    Raises:
        ConfigurationError: a setting is invalid.
    """

    @with_checked_arguments
    def __init__(
        self,
        store: CheckpointStore,
        policy: Policy = DEFAULT_POLICY,
        *,
        max_pending: int = 10_000,
        max_unsaved: int | None = None,
        drain_timeout: float = 30.0,
        write_timeout: float = 10.0,
        on_error: Callable[[str, Exception], object] | None = None,
        unhealthy_after: float = 60.0,
        stalled_after: float | None = 300.0,
        on_stall: OnStall = "report",
    ) -> None:
        require("policy", policy, isinstance(policy, Policy), "a policy such as every(seconds=5)")
        require_seconds("drain_timeout", drain_timeout, or_zero=True)
        require("max_pending", max_pending, is_count(max_pending), "a whole number, 1 or more")
        if max_unsaved is not None:
            require("max_unsaved", max_unsaved, is_count(max_unsaved), "None, or 1 or more")
            # Otherwise an event could wait for a save that is due only once that event is started.
            policy = any_of(policy, every(events=-(-max_unsaved // 2)))
        check_watchdog(stalled_after, on_stall)
        if on_stall == "reopen":
            store_that_reopens(store)
        self._drain_timeout = drain_timeout
        self._write_timeout = write_timeout
        self._store = store
        # A write of its own is not part of a handler, and is not cancelled with it.
        below = store.store if isinstance(store, HandoverStore) else store
        self._has_other_store = False
        self._last_used: PartitionSession | None = None
        self._warned: set[str] = set()
        make_writer = partial(CheckpointWriter, below, write_timeout, on_error, unhealthy_after)
        self._sessions = PartitionSessions(
            make_writer, policy, write_timeout, max_pending, max_unsaved
        )
        self._watchdog = Watchdog(self._watched, self._reopen, stalled_after, on_stall)

    def _watched(self) -> list[WatchedPartition]:
        return [
            WatchedPartition(each, each.partition_id, each.snapshot(), each, each.source.client)
            for each in self._sessions.open.values()
        ]

    def _reopen(self, partition: WatchedPartition) -> None:
        if partition.session is not None:
            store_that_reopens(self._store).reopen(*partition.session.key)

    @property
    def handlers(self) -> Handlers:
        """Return keyword arguments for the client's `receive`: its open and close callbacks.

        If the client needs callbacks of your own, call `on_initialize` and `on_close` in them.
        """
        return {
            "on_partition_initialize": self.on_initialize,
            "on_partition_close": self.on_close,
        }

    def on_initialize(self, partition_context: PartitionContext) -> None:
        """Begin a session; pass this as the client's `on_partition_initialize`."""
        self._check_client(partition_context)
        session = self._sessions.of(partition_context, announces=True)
        session.source = ClientSource(partition_context, opens=True)
        self._watchdog.start()
        CURRENT_SESSION.set(session)

    def on_close(self, partition_context: PartitionContext, reason: CloseReason) -> None:
        """Save the last position of a session, and end it; pass it as `on_partition_close`.

        When the client stops, or hands the partition over (see `HandoverStore`), started events may
        finish within `drain_timeout`. When the partition is lost, the last position is saved only
        if the store refuses stale checkpoints. (After an error the client also reports a loss,
        although it still owns the partition.)
        """
        session = self._sessions.open.get(names_of(partition_context))
        if session is None:
            return
        # A sync client that is closed while it receives reports that it has lost the partition.
        stops = reason == CloseReason.SHUTDOWN or is_client_closed()
        drains = stops or is_handing_over(self._store, *names_of(partition_context))
        now = time.monotonic()
        drained_by = self._sessions.drained_by(session, self._drain_timeout) if drains else now
        session.closer, session.ends_by = caller(), max(drained_by, now) + self._write_timeout
        watermark = session.watermark
        try:
            if drains and not session.until(lambda: watermark.is_settled, drained_by - now):
                log.warning(
                    "partition %s: %d events were not finished within %g s; they are read again",
                    session.partition_id,
                    watermark.pending,
                    self._drain_timeout,
                )
        finally:
            flushes = drains or self._sessions.writer.goes_forward_only
            self._sessions.finish(session, flushes=flushes, stops=stops)

    def track(self, partition_context: PartitionContext, event: EventData) -> TrackedEvent:
        """Track an event; call this in the order of arrival, before any concurrent processing.

        `async with checkpointer.track(partition_context, event):` finishes the event at the end of
        the block, or marks it as failed if an exception leaves the block.
        `tracked = await checkpointer.track(...)` is finished by `tracked.done()`, or by
        `checkpointer.done(event)`. Both wait while `max_pending` or `max_unsaved` is reached.

        Raises:
            InvalidRecordError: the arguments are not a partition context and an event. (With
                `max_wait_time` the client also calls its handler with None.)
            CheckpointStoreError: the next event that the position has to pass has failed, so
                nothing after it can be saved; or the client was closed while the event waited.
                Let the exception leave the handler: the client then closes the partition, and the
                event is read again.
        """
        # Any thread may have set `_last_used`. The client passes one context object for all events
        # of a partition, so identity tells whether it is this session. `_session_of` goes by names.
        session = CURRENT_SESSION.get() or self._last_used
        if (
            session is None
            or session.context is not partition_context
            or session.writer is not self._sessions.writer
            or session.is_over
        ):
            session = self._session_of(partition_context)
        if not session.is_announced and time.monotonic() - session.began_at >= ANNOUNCED_WITHIN:
            self._warn(NOT_ANNOUNCED)
        try:
            return TrackedEvent(session, event)
        except AttributeError:
            if hasattr(event, "sequence_number"):
                raise
            kind = None if event is None else type(event)
            raise InvalidRecordError("event", kind, "one event") from None

    def _session_of(self, partition_context: PartitionContext) -> PartitionSession:
        session, sessions = CURRENT_SESSION.get(), self._sessions
        key = names_of(partition_context)
        if session is None or session.writer is not sessions.writer or session.key != key:
            session = sessions.open.get(key)
        if session is None:
            self._check_client(partition_context)
            session = sessions.of(partition_context, announces=False)
            self._watchdog.start()
        if session.is_over:
            self._warn(
                "track() was called with an event after its session has ended: it is not saved"
            )
        self._last_used = session
        return session

    def _check_client(self, partition_context: PartitionContext) -> None:
        check_context(self, partition_context)
        store = store_of(partition_context)
        if store is not self._store and store is not UNKNOWN:
            self._has_other_store = True
            self._warn(
                "the client's checkpoint_store is not the store of this Checkpointer, so the "
                "client does not begin at the saved positions: pass the same object to both"
            )

    def done(self, event: EventData) -> None:
        """Finish an event that was tracked; may be called from any thread.

        This has no effect if the session of the event has ended: the event is read again.
        """
        for session in self._sessions.open.values():
            if tracked := session.begun.get(id(event)):
                tracked.done()
                return
        self._report_untracked(event)

    def _report_untracked(self, event: object) -> None:
        """Log an event that cannot be finished, and its partition if that is known."""
        if not hasattr(event, "sequence_number"):
            what = f"a value of type {kind_of(event)}; expected an event"
        elif session := self._sessions.ended_before(event):
            what = (
                f"event {event.sequence_number} of partition {session.partition_id}, whose session "
                "has ended: the event is read again"
            )
        else:
            ids = [each.partition_id for each in self._sessions.open.values()]
            what = (
                f"event {event.sequence_number}, for which no open partition waits (open: "
                f"{some(ids) or 'none'}): it was never passed to track(), or was finished before"
            )
        self._warn(f"done() was called with {what}", topic="done")

    def flush(self, partition_id: str | None = None) -> bool:
        """Save what is finished, of one or all partitions; return whether all of it is saved."""
        if partition_id is not None:
            checked_name("partition_id", partition_id)
        return self._sessions.flush(partition_id)

    def close(self) -> None:
        """Save what is finished, and end all sessions for good; the store stays open.

        Waits for a partition that is being closed: its events may finish within `drain_timeout`,
        and then the client releases it. (An aio client's `close` does not always wait for that.)
        The hand-over requests of a `HandoverStore` are withdrawn.
        """
        if not all(session.is_announced for session in self._sessions.open.values()):
            self._warn(NOT_ANNOUNCED)
        self._watchdog.stop()
        if isinstance(self._store, HandoverStore):
            self._sessions.in_background(self._store.withdraw)
        self._sessions.close()

    def stats(self) -> dict[str, PartitionStats]:
        """Return statistics of each open partition, by its id.

        If partitions of several hubs or consumer groups are open, the keys are
        `namespace/hub/group/id`.
        """
        return self._sessions.stats()

    def healthy(self) -> bool:
        """Return whether checkpoints are being written and no partition has stalled.

        For a liveness probe. Also returns False if the client has a different store than this
        object.
        """
        if self._has_other_store or not self._watchdog.is_healthy():
            return False
        return self._sessions.writer.is_healthy()

    def _warn(self, message: str, *, topic: str | None = None) -> None:
        """Log a message once; of those with the same topic, only the first."""
        topic = message if topic is None else topic
        if topic not in self._warned:
            self._warned.add(topic)
            log.warning("%s; this is logged once", message)
