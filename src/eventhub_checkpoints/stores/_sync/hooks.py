# Derived from _async/hooks.py by tools/unasync.py; edit that file.
"""Hooks that a backend implements, and the runner that calls them.

`Hooks` has the four required methods and the optional ones; `HookRunner` runs them with time
limits, retries and error mapping.
"""

import inspect
import logging
import os
import random
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar, Unpack

from eventhub_checkpoints._shared._sync import compat
from eventhub_checkpoints._shared.connection_errors import why_unreached
from eventhub_checkpoints._shared.deadline import (
    UNREACHABLE_TIMEOUT,
    WORTHWHILE,
    pause,
    seconds_left,
    set_unreachable_timeout,
    shorten_if_unreachable,
)
from eventhub_checkpoints._shared.per_process import PerProcess
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.settings import Settings, StoreSettings, nearest_first
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.connections import shows_secret
from eventhub_checkpoints.stores.hook_results import (
    Conflict,
    Listing,
    Lost,
    Remembered,
    ScopeRows,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.partition_state import PartitionState, PartitionStates


class Hooks(ABC):
    """The four hooks that a backend must implement, and the optional ones."""

    makes_own_etags: ClassVar[bool] = False
    """Whether the server chooses etags and versions, so that the proposed ones are ignored."""
    for_one_process: ClassVar[bool] = False
    """Whether other processes cannot reach the rows, so that G1 and G3 hold in this process only.

    The conformance suite then races no processes, and certifies the store within one process.
    """

    @abstractmethod
    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        """Return all ownership rows of a scope; an empty scope is not an error."""

    @abstractmethod
    def try_claim(self, proposal: Proposal) -> Won | Lost:
        """Claim one partition in one atomic step.

        The claim wins if the stored row carries `proposal.etag`. If no row is stored, it is created
        exclusively: of several concurrent claims, one wins. The row then carries
        `proposal.new_etag`. Anything but a definite answer is raised.
        """

    @abstractmethod
    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        """Return all checkpoint rows of a scope, with versions; an empty scope is not an error."""

    @abstractmethod
    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        """Store one checkpoint in one atomic step, if the stored row is the one that was seen.

        `seen` is a version; `ABSENT`: no row may exist; `UNKNOWN`: treat it as `ABSENT`;
        `FORCE`: whatever is stored. The row then carries `checkpoint.version`.
        """

    def open(self) -> None:
        """Connect; if `creates` is set, create a missing container, tables or keyspace.

        Called once before the first use, again in a forked process or another event loop, and
        again by `create`.
        """

    def close(self) -> None:
        """Close what the store opened. May be called twice; call `super().close()` first."""

    def drop_connections(self) -> None:
        """Abandon open connections without closing them; `open` is called again.

        They belong to the parent of this forked process, or to an earlier event loop.
        """

    def confirm(self) -> None:
        """Return when what was read is as lasting as what a write has confirmed.

        Called before a row that was read replaces the lost answer of its write. By default nothing
        is waited for: what the backend shows, it keeps.
        """

    def identity(self, scope: Scope) -> Scope:
        """Return the canonical spelling of a scope; equal spellings are the same rows."""
        return scope.folded

    def read_spellings(self, scope: Scope) -> Sequence[ScopeRows]:
        """Return the rows of the same group under other names, by `identity`.

        By default none: a backend that stores all names in lower case cannot have any.
        """
        return ()

    def read_settings(self) -> Mapping[str, bool | None]:
        """Return the settings of the storage that matter to checkpoints; see `Examination`."""
        return {}

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """Convert a driver's error to an error of this package.

        `StoreUnavailableError` means that the outcome is unknown: the request may have been
        carried out, and is retried. Every other error is final.
        """
        kind = StoreError
        if isinstance(error, PermissionError):
            kind = StoreAccessError
        elif isinstance(error, OSError):
            kind = StoreUnavailableError
        return kind(f"{type(error).__name__}: {masked(str(error))}")


log = logging.getLogger("eventhub_checkpoints")
T = TypeVar("T")
Answer = Won | Lost | Exception

REMEMBERED_REPORTS = 1000


class HookRunner(Hooks):
    """Calls a backend's hooks with time limits and retries; raises errors of this package only."""

    def __init__(self, **settings: Unpack[StoreSettings]) -> None:
        for name in settings.keys() - StoreSettings.__annotations__.keys():
            known = ", ".join(nearest_first(name, self._keywords()))
            raise ConfigurationError(
                f"{name} is not a setting of {type(self).__name__}; known are {known}"
            )
        self.settings = Settings(**settings)
        self.counters: Counter[str] = Counter()
        self.creates = False
        self._closed_in: object = None
        self._moving = PerProcess(threading.Lock)
        self._place: object = None
        self._begin_anew()

    @classmethod
    def _keywords(cls) -> Iterable[str]:
        """Return the names of the constructor's keyword arguments."""
        parameters = inspect.signature(cls).parameters.values()
        own = [
            parameter.name
            for parameter in parameters
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        return [*own, *StoreSettings.__annotations__]

    def _begin_anew(self) -> None:
        self._process_id = os.getpid()
        self.writer = f"{socket.gethostname()}/{self._process_id}"
        self._state_lock = threading.Lock()
        self._states = PartitionStates(self.identity)
        self._reported: set[str] = set()
        self._releasing = 0
        self._begin_here()

    def _begin_here(self) -> None:
        self._opening = compat.Lock()
        self._write_locks: dict[PartitionState, compat.Lock] = {}
        self._in_flight = compat.InFlight()
        self._is_open = self._is_closing = self._is_unreachable = False

    def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Won | Lost | Exception]:
        """Claim two or more partitions independently; return answers in the order of the proposals.

        An exception in place of an answer must be an error of this package, and concerns that
        claim only. The default claims in parallel; a backend that can do it in one round trip
        overrides this.
        """
        return compat.for_each(self._try_one, proposals, self.settings.max_concurrency)

    def create(self) -> None:
        """Create whatever the store needs and is missing: a container, tables, a keyspace.

        Raises:
            StoreAccessError: the backend refused access.
            StoreUnavailableError: no answer within `operation_timeout`; or the connection was
                refused, or the host's name not known, for 5 s (see `unreachable_timeout`).
        """
        self.creates, self._is_open = True, False
        compat.uninterrupted(self.settings.operation_timeout, self._interactive, self._ready)

    def _interactive(self, call: Callable[[], None]) -> None:
        """Make a call that a person, or the start of a program, waits for."""
        if self.settings.unreachable_timeout is None:
            set_unreachable_timeout(UNREACHABLE_TIMEOUT)
        call()

    def close(self) -> None:
        """Close what the store opened, permanently in this process and event loop.

        Close it after the client. Waits for the requests in flight, at most until their time
        limits. Every later call raises `StoreError`, except the release of an ownership, which a
        client may still be about to make: that connects once more, and closes. May be called twice.
        """
        self._closed_in = here = compat.place()
        if self._place == here and self._in_flight.count:
            seconds = max(self.settings.operation_timeout, self.settings.write_timeout)
            self._is_closing = True
            try:
                compat.uninterrupted(seconds, self._in_flight.wait, seconds)
            finally:
                self._is_closing = False
        # Only now: a release that found the store not open would abandon connections in use.
        self._is_open = False

    def _closed_error(self) -> StoreError:
        return StoreError(
            f"this {type(self).__name__} is closed: close a store after the client that uses "
            "it, and open another one to go on"
        )

    def _ready(self, *, is_release: bool = False) -> None:
        is_closed = self._closed_in == (here := compat.place())
        if is_closed and not is_release:
            raise self._closed_error()
        if self._place != here:
            with self._moving.value:
                if self._place != here:
                    self._move()
                    self._place = here
        if self._is_open:
            return
        try:
            with compat.holding(self._opening, seconds_left()):
                if not self._is_open:
                    if is_closed:  # a closed driver may not be able to open again
                        self.drop_connections()
                    self._call(self.open, retries=True)
                    self._is_open = True
        except TimeoutError as error:
            raise StoreUnavailableError("the store is still being opened") from error

    def _move(self) -> None:
        """Reset all state for another process, or the connections for another event loop."""
        if self._process_id != os.getpid():
            self._begin_anew()
        elif self._place is not None:
            self._begin_here()
        else:
            return
        self.drop_connections()

    def _call(
        self,
        hook: Callable[..., T],
        *args: object,
        seconds: float | None = None,
        retries: bool = False,
    ) -> T:
        """Call a hook with a time limit, and raise errors of this package only.

        Args:
            hook: the hook; its arguments follow.
            seconds: twice the time limit of one attempt; `operation_timeout` by default. All
                attempts together end at the deadline of the current call.
            retries: repeat the call while its outcome is unknown and time is left.
        """
        attempts = 0
        failure: CheckpointStoreError | None = None
        while True:
            with self._in_flight:
                # After it was counted: either `close` waits for this attempt, or it sees the close.
                if self._closed_in == compat.place() and not self._releasing:
                    raise self._closed_error()
                try:
                    with compat.attempt(seconds or self.settings.operation_timeout):
                        answer = hook(*args)
                    self._is_unreachable = False
                    return answer
                except Exception as error:
                    latest = self._mapped(error)
                    is_unreachable = why_unreached(error) is not None
            if is_unreachable and isinstance(latest, StoreUnavailableError):
                self._report_unreachable(latest)
            # Not raised above, where a hidden error would still be the context of what is raised.
            if not retries or not isinstance(latest, StoreUnavailableError):
                raise latest
            # An attempt that the deadline cut off says less than the one before it.
            if failure is None or seconds_left() > WORTHWHILE:
                failure = latest
            wait = pause(attempts, seconds_left(), random.random())
            if wait is None:
                raise failure
            compat.sleep(wait)
            attempts += 1

    def _report_unreachable(self, error: StoreUnavailableError) -> None:
        """Log once until the next success that there is no connection, and limit the call."""
        if self.settings.unreachable_timeout is not None:
            set_unreachable_timeout(self.settings.unreachable_timeout)
        left = shorten_if_unreachable()
        if not self._is_unreachable:
            self._is_unreachable = True
            log.warning("%s; this call tries again for at most %.0f s", error, left)

    def _mapped(self, error: Exception) -> CheckpointStoreError:
        if isinstance(error, CheckpointStoreError):
            return error
        failure = self.map_error(error)
        failure.__cause__ = None if shows_secret(error) else error
        return failure

    def _request(self, hook: Callable[..., T], *args: object) -> T:
        self._ready()
        return self._call(hook, *args, retries=True)

    def _try_one(self, proposal: Proposal) -> Answer:
        began = time.time()
        try:
            answer = self._call(self.try_claim, proposal)
        except Exception as error:
            return error
        return self._remembered(proposal, answer, began)

    def _remembered(self, proposal: Proposal, answer: Answer, began: float) -> Answer:
        """Record a win at once, dated to its request: the rest of its batch may take long.

        A release in the meantime needs the new etag, even if the batch is cancelled.
        """
        if not isinstance(answer, Won) or isinstance(answer, Remembered):
            return answer
        row = answer.row.at(began)
        with self._state_lock:
            known = self._states.partition(proposal.scope, proposal.partition_id)
            known.record_claim(known.lease.won(row, proposal.etag), row)
        return Remembered(row)

    def _known(self, record: Proposal | Checkpoint) -> PartitionState:
        with self._state_lock:
            return self._states.partition(record.scope, record.partition_id)

    def _write_lock(self, known: PartitionState) -> compat.Lock:
        with self._state_lock:
            return self._write_locks.setdefault(known, compat.Lock())

    def _report(self, skipped: Iterable[str]) -> None:
        for sentence in skipped:
            self.counters["skipped_rows"] += 1
            level = logging.DEBUG if sentence in self._reported else logging.WARNING
            if len(self._reported) >= REMEMBERED_REPORTS:
                self._reported.clear()
            self._reported.add(sentence)
            log.log(level, "%s", sentence)
