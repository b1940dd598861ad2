# Derived from _async/runner.py by tools/unasync.py; edit that file.
"""The runner of a backend's hooks: time limits, retries, and errors of this package only."""

import logging
import os
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from eventhub_checkpoints._shared._sync import compat
from eventhub_checkpoints._shared.connection_errors import why_unreached
from eventhub_checkpoints._shared.deadline import (
    WORTHWHILE,
    attempt_limit,
    pause,
    seconds_left,
    set_unreachable_timeout,
    shorten_if_unreachable,
)
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.per_process import PerProcess
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.settings import Settings
from eventhub_checkpoints.errors import CheckpointStoreError, StoreError, StoreUnavailableError
from eventhub_checkpoints.records import Checkpoint, Proposal
from eventhub_checkpoints.stores._sync.hooks import RESULTS, Hooks, log
from eventhub_checkpoints.stores.connections import shows_secret
from eventhub_checkpoints.stores.partition_state import PartitionState, PartitionStates

T = TypeVar("T")

REMEMBERED_REPORTS = 1000


class HookRunner:
    """Calls the hooks of one backend, and holds what this process knows of its partitions.

    Args:
        backend: the store that implements the hooks.
        settings: its time limits.

    Attributes:
        backend, settings: as passed.
        counters: number of events by kind; see `BaseCheckpointStore`.
        writer: host and process, which backends store with each row.
        guard: the lock to hold while `states` is used.
        states: the partitions, of which a forked process knows nothing.
    """

    def __init__(self, backend: Hooks, settings: Settings) -> None:
        self.backend, self.settings = backend, settings
        self.counters: Counter[str] = Counter()
        self._closed_in: object = None
        self._moving = PerProcess(threading.Lock)
        self._loop_key: object = None
        self._enter_process()

    def _enter_process(self) -> None:
        self._process_id = os.getpid()
        self.writer = f"{socket.gethostname()}/{self._process_id}"
        self.guard = threading.Lock()
        self.states = PartitionStates(self.backend.identity)
        self._reported: set[str] = set()
        self._releasing = 0
        self._enter_loop()

    def _enter_loop(self) -> None:
        self._opening = compat.Lock()
        self._write_locks: dict[PartitionState, compat.Lock] = {}
        self._in_flight = compat.InFlight()
        self._is_open = self._is_closing = self._is_unreachable = False

    @property
    def is_closed(self) -> bool:
        """Return whether the store was closed in this process and event loop."""
        return self._closed_in == compat.loop_key()

    @property
    def is_elsewhere(self) -> bool:
        """Return whether the connections belong to another process or event loop."""
        return self._loop_key not in (None, compat.loop_key())

    def open_again(self) -> None:
        """Have the next call open the backend again, which may create what is missing."""
        self._is_open = False

    def close(self) -> None:
        """Refuse all calls except releases, and wait for the requests in flight."""
        self._closed_in = current = compat.loop_key()
        if self._loop_key == current and self._in_flight.count:
            seconds = max(self.settings.operation_timeout, self.settings.write_timeout)
            self._is_closing = True
            try:
                compat.uninterrupted(seconds, self._in_flight.wait, seconds)
            finally:
                self._is_closing = False
        # Only now: a release that found the store not open would abandon connections in use.
        self._is_open = False

    def begin_release(self) -> None:
        """Let calls through that a release makes, even if the store is closed."""
        with self.guard:
            self._releasing += 1

    def end_release(self) -> None:
        """Close the connections that the last release after `close` has opened."""
        with self.guard:
            self._releasing -= 1
            is_last = self.is_closed and not self._releasing
        if is_last and not self._is_closing:
            try:
                self.backend.close()
            except Exception as error:
                log.warning("the connection of a late release was not closed: %s", described(error))

    def _closed_error(self) -> StoreError:
        return StoreError(
            f"this {type(self.backend).__name__} is closed: close a store after the client that "
            "uses it, and open another one to go on"
        )

    def ready(self, *, is_release: bool = False) -> None:
        """Open the backend, unless that was done in this process and event loop.

        Raises:
            StoreError: the store was closed; not raised for a release.
            StoreUnavailableError: another call did not open it in time.
        """
        is_closed = self._closed_in == (current := compat.loop_key())
        if is_closed and not is_release:
            raise self._closed_error()
        if self._loop_key != current:
            with self._moving.value:
                if self._loop_key != current:
                    self._move()
                    self._loop_key = current
        if self._is_open:
            return
        try:
            with compat.holding(self._opening, seconds_left()):
                if not self._is_open:
                    if is_closed:  # a closed driver may not be able to open again
                        self.backend.drop_connections()
                    self.call(self.backend.open, retries=True)
                    self._is_open = True
        except TimeoutError as error:
            raise StoreUnavailableError("the store is still being opened; try again") from error

    def _move(self) -> None:
        """Reset all state for another process, or the connections for another event loop."""
        if self._process_id != os.getpid():
            self._enter_process()
        elif self._loop_key is not None:
            self._enter_loop()
        else:
            return
        self.backend.drop_connections()

    def call(
        self,
        hook: Callable[..., T],
        *args: object,
        limit: float | None = None,
        retries: bool = False,
    ) -> T:
        """Call a hook with a time limit, and raise errors of this package only.

        Args:
            hook: the hook; its arguments follow.
            limit: seconds that one attempt may take; by default half of `operation_timeout`. All
                attempts together end at the deadline of the current call.
            retries: repeat the call while its outcome is unknown and time is left.
        """
        if limit is None:
            limit = attempt_limit(self.settings.operation_timeout)
        attempts = 0
        failure: CheckpointStoreError | None = None
        while True:
            with self._in_flight:
                # After it was counted: either `close` waits for this attempt, or it sees the close.
                if self.is_closed and not self._releasing:
                    raise self._closed_error()
                try:
                    with compat.attempt(limit):
                        answer = hook(*args)
                    self._is_unreachable = False
                    if wrong := self.wrong_result(self._name_of(hook), answer):
                        raise wrong
                    return answer
                except Exception as error:
                    latest = self.mapped(error)
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

    def _name_of(self, hook: object) -> str:
        """Return the name by which the backend has a hook; `""` for any other call.

        Its `__name__` may be another one: that of a decorator's function, or of a lambda.
        """
        return next((name for name in RESULTS if getattr(self.backend, name) == hook), "")

    def wrong_result(self, name: str, result: object) -> StoreError | None:
        """Return an error if a hook of this name has returned an object of another type."""
        if name not in RESULTS or isinstance(result, RESULTS[name]):
            return None
        expected = " or ".join(kind.__name__ for kind in RESULTS[name])
        return StoreError(
            f"{type(self.backend).__name__}.{name} returned {type(result).__name__}; "
            f"expected {expected}"
        )

    def request(self, hook: Callable[..., T], *args: object) -> T:
        """Call a hook of an open backend, and repeat it while its outcome is unknown."""
        self.ready()
        return self.call(hook, *args, retries=True)

    def _report_unreachable(self, error: StoreUnavailableError) -> None:
        """Log once until the next success that there is no connection, and limit the call."""
        if self.settings.unreachable_timeout is not None:
            set_unreachable_timeout(self.settings.unreachable_timeout)
        left = shorten_if_unreachable()
        if not self._is_unreachable:
            self._is_unreachable = True
            log.warning("%s; this call tries again for at most %.0f s", error, left)

    def mapped(self, error: Exception) -> CheckpointStoreError:
        """Return an error as one of this package, with the driver's as its cause."""
        if isinstance(error, CheckpointStoreError):
            return error
        failure = self.backend.map_error(error)
        if wrong := self.wrong_result("map_error", failure):
            failure = StoreError(f"{wrong}, for {type(error).__name__}: {masked(str(error))}")
        failure.__cause__ = None if shows_secret(error) else error
        return failure

    def known(self, record: Proposal | Checkpoint) -> PartitionState:
        """Return what is known of the partition of a record."""
        with self.guard:
            return self.states.partition(record.scope, record.partition_id)

    def write_lock(self, known: PartitionState) -> compat.Lock:
        """Return the lock to hold while a checkpoint of a partition is written."""
        with self.guard:
            return self._write_locks.setdefault(known, compat.Lock())

    def report(self, skipped: Iterable[str]) -> None:
        """Log each row that could not be read, as a warning the first time."""
        for sentence in skipped:
            self.counters["skipped_rows"] += 1
            level = logging.DEBUG if sentence in self._reported else logging.WARNING
            if len(self._reported) >= REMEMBERED_REPORTS:
                self._reported.clear()
            self._reported.add(sentence)
            log.log(level, "%s", sentence)
