# Derived from _async/client_callbacks.py by tools/unasync.py; edit that file.
"""Callbacks that an EventProcessor passes to its client."""

import logging
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from azure.eventhub import CheckpointStore, CloseReason, EventData, PartitionContext
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared import callables
from eventhub_checkpoints._shared._sync.background import Background
from eventhub_checkpoints._shared._sync.compat import Lock
from eventhub_checkpoints._shared.client import Failure, explanation, failure_of
from eventhub_checkpoints._shared.error_messages import described, message_or_type
from eventhub_checkpoints._shared.offset_words import START_OF_STREAM
from eventhub_checkpoints.errors import (
    ConfigurationError,
    HubUnavailableError,
    InvalidCheckpointError,
)
from eventhub_checkpoints.processing._sync.checkpoint_writer import CheckpointWriter
from eventhub_checkpoints.processing._sync.client_source import source_of
from eventhub_checkpoints.processing._sync.dispatcher import PartitionHandler, ProcessorRun
from eventhub_checkpoints.processing._sync.handover import HandoverStore, is_handing_over
from eventhub_checkpoints.processing._sync.position_validator import AT_START, PositionValidator
from eventhub_checkpoints.processing._sync.processor_store import ProcessorStore
from eventhub_checkpoints.processing._sync.receive_loop import as_handler, let_links_open
from eventhub_checkpoints.processing._sync.session import PartitionSessions, names_of
from eventhub_checkpoints.processing._sync.watchdog import (
    LAST_ANSWER,
    Watchdog,
    WatchedPartition,
    store_that_reopens,
)
from eventhub_checkpoints.processing.options import Options, other_store
from eventhub_checkpoints.processing.source import scope_of
from eventhub_checkpoints.processing.stall import Snapshot
from eventhub_checkpoints.processing.start_position import StartChoice, refused_position
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER
from eventhub_checkpoints.sdk.stack import is_client_closed

log = logging.getLogger("eventhub_checkpoints")

FIRST_EVENT_CHECK = 10.0
"""Seconds between checks whether the first event has arrived."""
PARTITIONS_PER_CHECK = 8
"""Partitions that the hub is queried about in each check."""
ROUND = 120.0
"""Seconds within which a client that fails to balance its load reports that again."""


@dataclass(slots=True, eq=False, repr=False)
class ClientPartition:
    """Partition as the client has it.

    Attributes:
        handler: receives its events; None: it is not open.
        closing: number of handlers that are being closed. A sync client may open the partition
            again, and deliver events, while it is still closing it.
        lock: held while a handler is being closed.
    """

    handler: PartitionHandler | None = None
    closing: int = 0
    lock: Lock = field(default_factory=Lock)

    def wait_closed(self) -> None:
        """Wait until no handler is being closed."""
        with self.lock:
            pass


class ClientCallbacks:
    """Callbacks of a client, from when it is created until it has stopped.

    Args:
        make: creates the processor of a session.
        store: the store of the processor.
        options: of the processor.
        request_stop: called when there is a reason to stop.

    Attributes:
        error: why the processor has to stop; None if nothing here is the reason.
        sessions: the sessions of all partitions.
        run: what the handlers of all partitions share.
        choice: decides which saved positions the client is shown.
        validator: finds saved positions that the hub does not have.
        store: shows saved positions to the client.
        watchdog: finds partitions that have stalled.
        client: the client; None before it was created.
        client_store: store that is passed to the client: `store`, with hand-over if that is on.
        is_ready: whether the client was already constructed, and uses the store itself.
        is_compared: whether the client is known to use the store of the processor.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        store: CheckpointStore,
        options: Options,
        request_stop: Callable[[], None],
    ) -> None:
        self.error: BaseException | None = None
        self._options = options
        self._request_stop = request_stop
        self._store_below = store
        below = store.store if isinstance(store, HandoverStore) else store
        # A failed write is logged where it happens.
        on_error = None if options.on_error is None else self.report
        make_writer = partial(
            CheckpointWriter, below, options.write_timeout, on_error, options.unhealthy_after
        )
        self.sessions = PartitionSessions(
            make_writer, options.saving_policy, options.write_timeout, max_pending=sys.maxsize
        )
        self.run = ProcessorRun(make, options, self.report, self.fail)
        self.choice = StartChoice(options.save, options.start_of, options.from_saved)
        self.validator = PositionValidator(self.choice, self)
        self.store = ProcessorStore(below, options, self.choice, self.validator, self)
        self.client_store: CheckpointStore = self.store
        if options.handover:
            self.client_store = HandoverStore(self.store, expires_after=EXPIRES_AFTER)
        self.watchdog = Watchdog(
            self._watched, self._reopen, options.stalled_after, options.on_stall
        )
        self.client: Any = None
        self.is_ready, self.is_compared = False, True
        self._comparing = Lock()
        self._guard = threading.Lock()
        self._partitions: dict[str, ClientPartition] = {}
        self._watch = Background(self._look)
        self._has_received = False
        self._silent_since: float | None = None
        self._seemed_silent = self._is_silence_reported = self._is_querying = False
        self._unbalanced: tuple[float, float] | None = None
        self._is_refused = False
        self._began = time.monotonic()

    @property
    def is_stopping(self) -> bool:
        """Return whether nothing more is started: no claim, no batch, no further attempt."""
        return self.run.is_stopping

    @property
    def open_partitions(self) -> set[str]:
        """Return the partitions that are open or being closed."""
        return {
            partition_id
            for partition_id, partition in list(self._partitions.items())
            if partition.handler is not None or partition.closing
        }

    def _partition(self, partition_id: str) -> ClientPartition:
        return self._partitions.setdefault(partition_id, ClientPartition())

    def _open_handler(self, partition_id: str) -> PartitionHandler | None:
        """Return the handler of a partition; None if that is not open."""
        partition = self._partitions.get(partition_id)
        return None if partition is None else partition.handler

    def _handlers(self) -> list[PartitionHandler]:
        """Return the handlers of all open partitions."""
        handlers = [partition.handler for partition in list(self._partitions.values())]
        return [handler for handler in handlers if handler is not None]

    def reached(self, partition_id: str) -> int | None:
        """Return the number of the last event received, or after which it started, if known."""
        handler = self._open_handler(partition_id)
        if handler is None:
            return None
        shown = self.choice.last_shown(partition_id)
        number = shown[0] if shown and not handler.has_begun else handler.session.watermark.newest
        return number if isinstance(number, int) else None

    def in_background(self, function: Callable[..., None], *args: object) -> None:
        """Call a function in the background; the end of the sessions waits for it."""
        self.sessions.in_background(function, *args)

    def stop(self) -> None:
        """Start nothing more: no claim, no batch, no further attempt."""
        self.run.is_stopping = True
        for handler in self._handlers():
            handler.session.changed()

    def is_handing_over(self, *names: str) -> bool:
        """Return whether the client is handing a partition over."""
        return is_handing_over(self._used_store, *names)

    def wait_closed(self, partition_ids: Iterable[str]) -> None:
        """Wait until those of these partitions that are being closed are closed.

        An aio client forgets a partition that it has lost while it is still being closed.
        """
        for partition_id in partition_ids:
            if partition := self._partitions.get(partition_id):
                partition.wait_closed()

    def on_initialize(self, context: PartitionContext) -> None:
        """Open a partition."""
        # A sync client may still open one after it was stopped.
        if self.is_stopping or self._has_other_store(context):
            return
        # Either client may open a partition again while it is still closing it: the new session
        # begins after the last checkpoint of the earlier one.
        partition = self._partition(context.partition_id)
        partition.wait_closed()
        handler = partition.handler
        if handler is not None and handler.session.is_announced:
            self.on_close(context, CloseReason.OWNERSHIP_LOST)
        if self.is_ready:
            self._validate(context)
        handler = self._handler(context)
        handler.session.is_announced = True
        self._unbalanced = None
        self.watchdog.start()
        handler.session.source = source_of(context, opens=True)
        handler.open()

    def _has_other_store(self, context: PartitionContext) -> bool:
        """Return whether an already constructed client claims its partitions in another store.

        This checks the processor's store, since the client does not expose its own: a partition
        that the client has just claimed must have an owner there.
        """
        if self.is_compared:
            return False
        with self._comparing:
            if self.is_compared or self.error is not None:
                return not self.is_compared
            try:
                rows = self._store_below.list_ownership(*names_of(context)[:-1])
            except Exception as error:
                self.report(context.partition_id, error)
                return False
            self.is_compared = context.partition_id in [
                row["partition_id"] for row in rows if row["owner_id"]
            ]
            if not self.is_compared:
                self.fail(other_store())
        return not self.is_compared

    def _validate(self, context: PartitionContext) -> None:
        """Validate the start position of a partition whose client uses the store itself."""
        try:
            self.store.list_checkpoints(*names_of(context)[:-1])
        except Exception as error:
            self.report(context.partition_id, error)
        else:
            self.validator.opening([context.partition_id])

    def _handler(self, context: PartitionContext) -> PartitionHandler:
        """Return the handler of a partition; a sync client may deliver before it announces it."""
        partition_id = context.partition_id
        partition = self._partition(partition_id)
        # Two threads of a sync client come here at once: one announces the partition, the other
        # delivers its first events. Whoever is first begins the session.
        with self._guard:
            handler = partition.handler
            if handler is None:
                if not self.is_ready and not self.store.is_used:
                    # It has opened a partition without listing ownerships in the store.
                    error = ConfigurationError(
                        "client must pass on checkpoint_store= to the client that it makes"
                    )
                    self.fail(error)
                    raise error
                session = self.sessions.begin(names_of(context), source_of(context))
                if partition_id in self.choice.refused:
                    # The earlier session was of a deleted hub, whose numbers are unrelated.
                    session.before = None
                handler = partition.handler = PartitionHandler(context, session, self.run)
                self.choice.opened(partition_id)
            return handler

    def _look(self) -> float:
        """Query the hub for events while none has arrived; return when to look again.

        The client keeps attaching to a consumer group that does not exist, and does not call
        `on_error`.
        Source: azure-eventhub 5.15.1, as in `PositionValidator`.
        """
        if self._has_received or self.is_stopping:
            return math.inf
        mute_for = self._mute_for(time.monotonic())
        if mute_for > self._options.unhealthy_after and not self._is_silence_reported:
            self._is_silence_reported = True
            scope = scope_of(self.client)
            where = f"{scope.fully_qualified_namespace} with event hub {scope.eventhub_name!r}"
            self.report(
                None,
                HubUnavailableError(f"{where} has not answered the client for {mute_for:.0f} s"),
            )
        handlers = self._handlers()
        since = [each.waits_since for each in handlers if each.waits_since is not None]
        # A sync client calls all handlers in one thread, including `initialize`.
        are_ready = handlers and len(since) == len(handlers)
        if (
            are_ready
            and time.monotonic() - max(since) > FIRST_EVENT_CHECK
            and not self._is_querying
        ):
            self._is_querying = True
            self._watch.begin(self._query_events, handlers, min(since))
        return FIRST_EVENT_CHECK

    def _query_events(self, handlers: list[PartitionHandler], since: float) -> None:
        try:
            for handler in random.sample(handlers, min(PARTITIONS_PER_CHECK, len(handlers))):
                has_events = self.validator.has_events(handler.context.partition_id)
                if self._has_received or self.is_stopping:
                    return
                if has_events:
                    # New events may still be on their way: only a second check is conclusive.
                    if self._seemed_silent:
                        self._silent_since = since
                        self._report_silence(handler.context, time.monotonic() - since)
                    self._seemed_silent = True
                    return
            self._seemed_silent, self._silent_since = False, None
        finally:
            self._is_querying = False

    def _report_silence(self, context: PartitionContext, seconds: float) -> None:
        if self._is_silence_reported:
            return
        self._is_silence_reported = True
        error = HubUnavailableError(
            f"partition {context.partition_id} has received nothing in {seconds:.0f} s, although "
            f"the hub {context.eventhub_name!r} has events for it: check that the consumer group "
            f"{context.consumer_group!r} exists, and that this client has the right to listen"
        )
        self.report(context.partition_id, error)

    def is_cut_off_for(self, seconds: float) -> bool:
        """Return whether the client has failed to reach the hub or consumer group for this long.

        A refusal of the hub counts at once, until the client has succeeded after it.
        """
        now = time.monotonic()
        silent, unbalanced = self._silent_since, self._unbalanced
        if silent is not None and now - silent > seconds:
            return True
        if self._mute_for(now) > seconds:
            return True
        if unbalanced is None:
            return False
        first, last = unbalanced
        # The client lists ownerships once the hub has answered: a later failure is the store's.
        is_over = self.store.listed_at > last or now - last > max(seconds, ROUND)
        return not is_over and (self._is_refused or now - first > seconds)

    @property
    def _used_store(self) -> CheckpointStore:
        """Return the outermost store of the client, as far as it is known."""
        return self._store_below if self.is_ready else self.client_store

    def withdraw(self) -> None:
        """Withdraw the client's hand-over requests; the end of the sessions waits for it."""
        store = self._used_store
        if isinstance(store, HandoverStore):
            self.in_background(store.withdraw)

    def _mute_for(self, now: float) -> float:
        """Return for how many seconds the client has waited for its first answer of the hub.

        The client waits without a limit for a hub that accepts connections and says nothing. It
        lists ownerships once it has an answer; an already constructed client does that in a store
        of its own.
        """
        shows_answer = self.client is not None and not self.is_ready
        is_waiting = shows_answer and not self.store.is_used and not self.is_stopping
        return now - self._began if is_waiting else 0.0

    def watch(self) -> None:
        """Start checking whether the hub answers, and whether it delivers events."""
        self._watch.start()

    def stop_watching(self) -> None:
        """Stop checking for events."""
        self._watch.stop(LAST_ANSWER)
        self.watchdog.stop()

    def _watched(self) -> list[WatchedPartition]:
        """Return what the watchdog looks at: partitions that are open, or held and not opened."""
        if self.is_stopping:
            return []
        trying = self.store.trying
        watched = []
        for handler in self._handlers():
            session = handler.session
            snapshot = handler.snapshot(self._expects_after(handler))
            snapshot = snapshot._replace(trying=snapshot.trying | trying)
            watched.append(
                WatchedPartition(session, session.partition_id, snapshot, session, self.client)
            )
        lost = Snapshot(is_lost=True, trying=trying)
        for partition_id in self.store.won - self.open_partitions:
            watched.append(WatchedPartition(partition_id, partition_id, lost))
        return watched

    def _expects_after(self, handler: PartitionHandler) -> int | None:
        """Return the number after which every event has to arrive, if it is known."""
        partition_id = handler.session.partition_id
        number = self.reached(partition_id)
        if number is not None or handler.has_begun or self.choice.last_shown(partition_id):
            return number
        start = self.choice.start_of(partition_id)
        if start in (None, START_OF_STREAM):
            return -1
        return start if isinstance(start, int) else None

    def _reopen(self, partition: WatchedPartition) -> None:
        if not self.is_ready:
            self.store.reopen(partition.partition_id)
        elif partition.session is not None:
            store_that_reopens(self._store_below).reopen(*partition.session.key)

    def on_events(self, context: PartitionContext, events: Sequence[EventData]) -> None:
        """Process delivered events, or an empty batch after `max_wait_time`."""
        if events and not self._has_received:
            self._has_received, self._silent_since = True, None
        if not self.is_stopping and not self._has_other_store(context):
            let_links_open()
            self._handler(context).receive(events)

    def on_close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Close a partition; it is released when this returns."""
        partition = self._partition(context.partition_id)
        with self._guard:
            # From here on, events that a sync client delivers in another thread begin a new
            # session: a handler that is being closed would leave them out, and those after them
            # would be saved.
            handler, partition.handler = partition.handler, None
            partition.closing += handler is not None
        if handler is not None:
            with partition.lock:
                try:
                    self._close(handler, reason)
                finally:
                    with self._guard:
                        partition.closing -= 1

    def _close(self, handler: PartitionHandler, reason: CloseReason) -> None:
        # A client that is closed while it receives reports that it has lost the partition.
        if self.is_stopping or is_client_closed():
            reason = CloseReason.SHUTDOWN
        stops = reason == CloseReason.SHUTDOWN
        if stops and not self.is_stopping:
            log.warning("the client was closed outside of the processor, which therefore stops")
            self.stop()
            self._request_stop()
        session, sessions = handler.session, self.sessions
        seconds = self._options.drain_timeout
        end = sessions.drained_by(session, seconds) if stops else time.monotonic() + seconds
        hands_over = self.is_handing_over(*names_of(handler.context))
        is_safe = stops or hands_over or sessions.writer.goes_forward_only
        flushes = self._options.save and is_safe
        try:
            handler.close(reason, end)
        finally:
            sessions.finish(session, flushes=flushes, stops=stops)
            self.choice.closed(session.partition_id, session.watermark.position)

    def on_error(self, context: PartitionContext | None, error: Exception) -> None:
        """Handle an error of a partition, or of the client as a whole if there is no context."""
        if context is None:
            now = time.monotonic()
            # The client reports an error only after its own retries: it has failed since it last
            # listed ownerships.
            since = max(self._began, self.store.listed_at)
            first, last = self._unbalanced or (since, now)
            self._unbalanced = (since if self.store.listed_at > last else first), now
            self._is_refused = failure_of(error) is Failure.REFUSED
            if isinstance(error, EventHubError):
                # The client's own message names neither the hub nor a remedy.
                explained = explanation(error, scope_of(self.client))
                explained.__cause__ = error
                error = explained
            self.report(None, error)
            return
        handler = self._open_handler(context.partition_id)
        problem = refused_position(error)
        if problem is not None:
            has_moved = handler is not None and handler.has_begun
            is_start = context.partition_id in self.choice.at_start and not has_moved
            self.refused(context.partition_id, problem, AT_START if is_start else None)
        elif handler is not None:
            handler.process_error(error)
        else:
            self.report(context.partition_id, error)

    def refused(self, partition_id: str, problem: str, remedy: str | None) -> None:
        """Handle a position that the hub lacks; no remedy: `on_invalid_checkpoint` applies."""
        if remedy is not None:
            self.fail(InvalidCheckpointError(partition_id, problem, remedy))
        elif self._options.on_invalid_checkpoint == "restart":
            self.choice.refuse(partition_id)
            log.warning(
                "the hub lacks the saved position of partition %s, so it is read from its start "
                "position: %s",
                partition_id,
                problem,
            )
        else:
            self.fail(InvalidCheckpointError(partition_id, problem))

    def fail(self, error: BaseException) -> None:
        """Log the error, and have the processor stop and raise it."""
        log.error("%s", message_or_type(error))
        self.error = self.error or error
        self._request_stop()

    def report(self, partition_id: str | None, error: Exception) -> None:
        """Call the user's `on_error`; an exception in it is logged, and has no other effect."""
        if self._options.on_error is None:
            where = "load balancing" if partition_id is None else f"partition {partition_id}"
            log.warning("%s: %s", where, described(error))
            return
        try:
            with as_handler():
                callables.run(self._options.on_error, partition_id, error)
        except Exception:
            log.exception("on_error raised")
