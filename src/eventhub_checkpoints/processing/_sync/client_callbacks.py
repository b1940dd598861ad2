# Derived from _async/client_callbacks.py by tools/unasync.py; edit that file.
"""Callbacks that an EventProcessor passes to its client."""

import logging
import math
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from azure.eventhub import CheckpointStore, CloseReason, EventData, PartitionContext
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared._sync.background import Background
from eventhub_checkpoints._shared._sync.compat import Lock
from eventhub_checkpoints._shared.client import explanation, is_client_closed, scope_of
from eventhub_checkpoints.errors import (
    ConfigurationError,
    HubUnavailableError,
    InvalidCheckpointError,
)
from eventhub_checkpoints.processing._sync.checkpoint_writer import CheckpointWriter
from eventhub_checkpoints.processing._sync.dispatcher import Dispatcher, PartitionHandler
from eventhub_checkpoints.processing._sync.receive_loop import as_handler
from eventhub_checkpoints.processing._sync.session import PartitionSessions
from eventhub_checkpoints.processing._sync.start_position_store import (
    AT_START,
    PositionValidator,
    StartPositions,
    StartPositionStore,
)
from eventhub_checkpoints.processing.options import Options, other_store
from eventhub_checkpoints.processing.start_position import StartChoice, refused_position

log = logging.getLogger("eventhub_checkpoints")

LOOKING = 10.0
"""Seconds between checks whether the first event has arrived."""
AT_ONCE = 8
"""Partitions that the hub is queried about in each check."""
ENDING = 1.0
"""Seconds that the hub has to answer when the processor stops."""
ROUND = 120.0
"""Seconds within which a client that fails to balance its load reports that again."""


class ClientCallbacks:
    """Callbacks of a client, from when it is created until it has stopped.

    Args:
        make: creates the processor of a session.
        store: the store of the processor.
        options: see `EventProcessor`.
        over: called when there is a reason to stop.

    Attributes:
        error: why it has to stop; None if it has no reason itself.
        claims: the sessions of all partitions.
        handling: how events are handled.
        starts: where partitions start.
        store: store that is passed to the client.
        vetting: finds positions that the hub does not have.
        is_ready: whether the client was already constructed, and uses the store itself.
        is_compared: whether it is known to have the same store.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        store: CheckpointStore,
        options: Options,
        over: Callable[[], None],
    ) -> None:
        self.error: BaseException | None = None
        self._options = options
        self._over = over
        self._below = store
        # A failed write is logged where it happens.
        told = None if options.on_error is None else self.report
        make_saver = partial(
            CheckpointWriter, store, options.write_timeout, told, options.unhealthy_after
        )
        policy = options.saving_policy
        self.claims = PartitionSessions(
            make_saver, policy, options.write_timeout, max_pending=sys.maxsize
        )
        self.handling = Dispatcher(make, options, self.report, self.fail)
        self.starts = StartPositions(options)
        self._steering = StartChoice(options.save, self.starts.has, options.from_saved)
        self.vetting = PositionValidator(
            self._steering, self.starts.of, self._reached, self._refused
        )
        self.store = StartPositionStore(
            store, self._steering, self.vetting, self.settled, options.write_timeout, self._beside
        )
        self.is_ready, self.is_compared = False, True
        self._comparing = Lock()
        self._guard = threading.Lock()
        self._sessions: dict[str, PartitionHandler] = {}
        self._closing: dict[str, Lock] = {}
        self._watch = Background(self._look)
        self._has_received = False
        self._silent_since: float | None = None
        self._seemed_silent = self._is_silence_told = self._is_asking = False
        self._unbalanced: tuple[float, float] | None = None

    def _reached(self, partition_id: str) -> int | None:
        session = self._sessions.get(partition_id)
        if session is None:
            return None
        shown = (self._steering.shown or {}).get(partition_id)
        number = shown[0] if shown and not session.has_begun else session.newest
        return number if isinstance(number, int) else None

    def _beside(self, function: Callable[..., None], *args: object) -> None:
        """Call a function in the background; the end of the sessions waits for it."""
        try:
            self.claims.saver.begin(function, *args)
        except RuntimeError:  # no thread can be started during interpreter shutdown
            function(*args)

    def stop(self) -> None:
        """Start nothing more: no claim, no batch, no further attempt."""
        self.store.is_stopping = self.handling.is_stopping = True
        for session in list(self._sessions.values()):
            session.claim.changed()

    def settled(self) -> None:
        """Wait until the partitions that are being closed are closed.

        An aio client forgets a partition that it has lost while it is still being closed.
        """
        for partition_id in list(self._closing):
            self._closed(partition_id)

    def _closed(self, partition_id: str) -> None:
        with self._closing.setdefault(partition_id, Lock()):
            pass

    def on_initialize(self, context: PartitionContext) -> None:
        """Open a partition."""
        # A sync client may still open one after it was stopped.
        if self.store.is_stopping or self._has_other_store(context):
            return
        # Either client may open a partition again while it is still closing it.
        self._closed(context.partition_id)
        known = self._sessions.get(context.partition_id)
        if known is not None and known.claim.is_announced:
            self.on_close(context, CloseReason.OWNERSHIP_LOST)
        if self.is_ready:
            self._vet(context)
        session = self._session(context)
        session.claim.is_announced = True
        self._unbalanced = None
        self._watch.start()
        session.open()

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
            names = context.fully_qualified_namespace, context.eventhub_name, context.consumer_group
            try:
                rows = self._below.list_ownership(*names)
            except Exception as error:
                self.report(context.partition_id, error)
                return False
            self.is_compared = context.partition_id in [
                row["partition_id"] for row in rows if row["owner_id"]
            ]
            if not self.is_compared:
                self.fail(other_store())
        return not self.is_compared

    def _vet(self, context: PartitionContext) -> None:
        """Validate the start position of a partition whose client uses the store itself."""
        names = context.fully_qualified_namespace, context.eventhub_name, context.consumer_group
        try:
            self.store.list_checkpoints(*names)
        except Exception as error:
            self.report(context.partition_id, error)
        else:
            self.vetting.opening([context.partition_id])

    def _session(self, context: PartitionContext) -> PartitionHandler:
        """Return the session of a partition; a sync client may deliver before it announces it."""
        with self._guard:
            session = self._sessions.get(context.partition_id)
            if session is None:
                self._require_store()
                claim = self.claims.begin(context)
                if context.partition_id in self._steering.refused:
                    # The earlier session was of a deleted hub, whose numbers are unrelated.
                    claim.before = None
                session = PartitionHandler(context, claim, self.handling)
                self._sessions[context.partition_id] = session
                self.store.open_partitions.add(context.partition_id)
                self._steering.opened(context.partition_id)
            return session

    def _require_store(self) -> None:
        """Refuse a client that opens partitions without listing ownerships in the store."""
        if not self.is_ready and not self.store.is_asked:
            error = ConfigurationError(
                "client returned one without the checkpoint_store= that it was given"
            )
            self.fail(error)
            raise error

    def _look(self) -> float:
        """Ask the hub for events while none has arrived; return when to look again.

        The client keeps attaching to a consumer group that does not exist, and does not call
        `on_error`.
        Source: azure-eventhub 5.15.1, as in `position_validator`.
        """
        if self._has_received or self.store.is_stopping:
            return math.inf
        sessions = list(self._sessions.values())
        since = [one.waits_since for one in sessions if one.waits_since is not None]
        # A sync client calls all handlers in one thread, including `initialize`.
        are_ready = sessions and len(since) == len(sessions)
        if are_ready and time.monotonic() - max(since) > LOOKING and not self._is_asking:
            self._is_asking = True
            self._watch.begin(self._ask_for_events, sessions, min(since))
        return LOOKING

    def _ask_for_events(self, sessions: list[PartitionHandler], since: float) -> None:
        try:
            self._find_silence(sessions, since)
        finally:
            self._is_asking = False

    def _find_silence(self, sessions: list[PartitionHandler], since: float) -> None:
        for session in random.sample(sessions, min(AT_ONCE, len(sessions))):
            has_events = self.vetting.has_events(session.context.partition_id)
            if self._has_received or self.store.is_stopping:
                return
            if has_events:
                # New events may still be on their way: only a second check is conclusive.
                if self._seemed_silent:
                    self._silent_since = since
                    self._tell_silence(session.context, time.monotonic() - since)
                self._seemed_silent = True
                return
        self._seemed_silent, self._silent_since = False, None

    def _tell_silence(self, context: PartitionContext, seconds: float) -> None:
        if self._is_silence_told:
            return
        self._is_silence_told = True
        self.report(
            context.partition_id,
            HubUnavailableError(
                f"partition {context.partition_id} has received nothing in {seconds:.0f} s, and "
                f"the hub {context.eventhub_name!r} has events for it: does the consumer group "
                f"{context.consumer_group!r} exist, and may this client listen?"
            ),
        )

    def is_cut_off_for(self, seconds: float) -> bool:
        """Return whether the client has failed to reach the hub or consumer group for this long."""
        now = time.monotonic()
        silent, unbalanced = self._silent_since, self._unbalanced
        if silent is not None and now - silent > seconds:
            return True
        if unbalanced is None:
            return False
        first, last = unbalanced
        # Failures after that are the store's.
        is_over = self.store.asked_at > last or now - last > max(seconds, ROUND)
        return not is_over and now - first > seconds

    def stop_watching(self) -> None:
        """Stop checking for events."""
        self._watch.stop(ENDING)

    def on_events(self, context: PartitionContext, events: list[EventData]) -> None:
        """Process delivered events, or an empty batch after `max_wait_time`."""
        if events and not self._has_received:
            self._has_received, self._silent_since = True, None
        if not self.store.is_stopping and not self._has_other_store(context):
            self._session(context).receive(events)

    def on_close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Close a partition; it is released when this returns."""
        with self._guard:
            session = self._sessions.pop(context.partition_id, None)
        if session is not None:
            with self._closing.setdefault(context.partition_id, Lock()):
                self._close(session, reason)

    def _close(self, session: PartitionHandler, reason: CloseReason) -> None:
        # A client that is closed while it receives reports that it has lost the partition.
        if self.store.is_stopping or is_client_closed():
            reason = CloseReason.SHUTDOWN
        stops = reason == CloseReason.SHUTDOWN
        if stops and not self.store.is_stopping:
            log.warning("the client was closed by others, so the processor stops")
            self.stop()
            self._over()
        claim, partition_id = session.claim, session.context.partition_id
        may_save = stops or self.claims.saver.goes_forward_only
        seconds = self._options.drain_timeout
        end = self.claims.drained_by(claim, seconds) if stops else time.monotonic() + seconds
        try:
            session.close(reason, end)
        finally:
            flushes = may_save and self._options.save
            self.claims.finish(claim, flushes=flushes, stops=stops)
            self._steering.closed(partition_id, claim.watermark.position)
            self.store.open_partitions.discard(partition_id)

    def on_error(self, context: PartitionContext | None, error: Exception) -> None:
        """Handle an error of a partition, or of the client as a whole if there is no context."""
        if context is None:
            now = time.monotonic()
            first, last = self._unbalanced or (now, now)
            self._unbalanced = (now if self.store.asked_at > last else first), now
            if isinstance(error, EventHubError):
                # The client's own message names neither the hub nor a remedy.
                explained = explanation(error, scope_of(self.vetting.client))
                explained.__cause__ = error
                error = explained
            self.report(None, error)
            return
        said = refused_position(error)
        if said is not None:
            self._said_so(context.partition_id, said)
        elif session := self._sessions.get(context.partition_id):
            session.tell(error)
        else:
            self.report(context.partition_id, error)

    def _said_so(self, partition_id: str, said: str) -> None:
        session = self._sessions.get(partition_id)
        has_moved = session is not None and session.has_begun
        is_start = partition_id in self._steering.at_start and not has_moved
        self._refused(partition_id, said, AT_START if is_start else None)

    def _refused(self, partition_id: str, said: str, way_out: str | None) -> None:
        if way_out is not None:
            self.fail(InvalidCheckpointError(partition_id, said, way_out))
        elif self._options.on_invalid_checkpoint == "restart":
            self._steering.refuse(partition_id)
            log.warning(
                "partition %s has not the saved position, and begins at its start position: %s",
                partition_id,
                said,
            )
        else:
            self.fail(InvalidCheckpointError(partition_id, said))

    def fail(self, error: BaseException) -> None:
        """Stop for this reason."""
        log.error("%s", str(error) or repr(error))
        self.error = self.error or error
        self._over()

    def report(self, partition_id: str | None, error: Exception) -> None:
        """Call the user's `on_error`; an exception in it is logged, and has no other effect."""
        if self._options.on_error is None:
            where = "load balancing" if partition_id is None else f"partition {partition_id}"
            log.warning("%s: %r", where, error)
            return
        try:
            with as_handler():
                self._options.on_error(partition_id, error)
        except Exception:
            log.exception("on_error raised")
