# Derived from _async/checkpoints.py by tools/unasync.py; edit that file.
"""Checkpoints of partitions: lists, and writes that do not go back, through a backend's hooks."""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared._sync.compat import holding, sleep
from eventhub_checkpoints._shared.deadline import attempt_limit, pause, seconds_left
from eventhub_checkpoints.errors import (
    StaleCheckpointError,
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import RELEASED, Checkpoint, Scope
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores._sync.runner import HookRunner
from eventhub_checkpoints.stores.hook_results import (
    ABSENT,
    FORCE,
    Conflict,
    Listing,
    Seen,
    Written,
    on_local_clock,
)
from eventhub_checkpoints.stores.partition_state import PartitionState, is_same_write, next_change

T = TypeVar("T")

TRIES_AFTER_CONFLICT = 3
LIVE_SECONDS = 60.0
"""Seconds since its last renewal for which an ownership counts as live."""
RECIPE = "to rewind: stop the consumer group, rewind, and start it"


class Checkpoints:
    """Reads and writes the checkpoints of one store.

    Every method runs inside of a deadline; see `compat.bounded`.
    """

    def __init__(self, runner: HookRunner) -> None:
        self._runner = runner

    def read(self, scope: Scope) -> Listing[Checkpoint]:
        """Return the rows of a scope, on the backend's clock."""
        runner = self._runner
        runner.ready()
        began = next_change()
        listing = runner.call(runner.backend.read_checkpoints, scope, retries=True)
        with runner.guard:
            runner.states.checkpoints_listed(scope, listing.rows, began)
        runner.report(listing.skipped)
        return listing

    def update(
        self, record: Checkpoint, on_stale: Literal["log", "raise"], *, is_forced: bool
    ) -> None:
        """Write a checkpoint, unless another writer has stored a later one.

        A forced one overwrites whatever is stored, and the live owner of its partition is logged.
        """
        names = (*record.scope, record.partition_id)
        try:
            with tracing.checkpoint(names, record.sequence_number):
                self._in_turn(record, self._write_in_turn, is_forced)
        except StaleCheckpointError as error:
            self._runner.counters["stale_checkpoints"] += 1
            log.warning("%s", error)
            if on_stale == "raise":
                raise
        if is_forced and not record.scope.is_reserved:
            self._warn_of_owner(record)

    def replace(self, record: Checkpoint, stored: Mapping[str, Any] | None) -> bool:
        """Write a checkpoint if the stored one still has the position of `stored`."""
        return self._in_turn(record, self._replace_in_turn, stored)

    def _in_turn(self, record: Checkpoint, write: Callable[..., T], *args: object) -> T:
        """Write one checkpoint of a partition at a time."""
        self._runner.ready()
        known = self._runner.known(record)
        try:
            with holding(self._runner.write_lock(known), seconds_left()):
                known.writing = True
                try:
                    return write(known, record, *args)
                finally:
                    known.writing = False
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"an earlier checkpoint of partition {record.partition_id!r} is still being "
                "written; try again"
            ) from error

    def _attempt(
        self, known: PartitionState, record: Checkpoint, seen: str | Seen, attempt: int
    ) -> Written | Conflict:
        """Write once, and remember a write whose outcome is unknown."""
        runner = self._runner
        limit = attempt_limit(runner.settings.write_timeout)
        try:
            hook = runner.backend.write_checkpoint
            answer = runner.call(hook, record, seen, limit=limit)
            if attempt and isinstance(answer, Conflict):
                runner.call(runner.backend.confirm, limit=limit)
            return answer
        except (StoreAccessError, StoreNotReadyError):
            raise
        except BaseException:
            # Cancelled or timed out: the write may have been carried out all the same.
            with runner.guard:
                known.record_write(known.checkpoint.unsure(record))
            raise

    def _write_in_turn(self, known: PartitionState, record: Checkpoint, is_forced: bool) -> None:
        seen: str | Seen = FORCE if is_forced else known.checkpoint.base
        rewound: Checkpoint | None = None
        conflicts = attempt = 0
        while True:
            if not is_forced:
                self._refuse_stale(known, record)
            try:
                answer = self._attempt(known, record, seen, attempt)
            except StoreUnavailableError:
                wait = pause(attempt, seconds_left(), random.random())
                if wait is None:
                    raise
                sleep(wait)
                attempt += 1
                continue
            stored = None if isinstance(answer, Written) else answer.stored
            with self._runner.guard:
                guard = known.checkpoint
                if isinstance(answer, Written):
                    version: str | None = answer.version
                elif stored and guard.wrote(stored) and is_same_write(record, stored):
                    version = stored.version  # of an earlier attempt, whose answer was lost
                else:
                    version = None
                if version is not None:
                    known.record_write(guard.written(version, is_forced, record.sequence_number))
                    break
                if guard.was_rewound(stored):
                    rewound = stored
                known.record_write(guard.shown(stored))
            if not is_forced:
                seen = stored.version if stored else ABSENT
            conflicts += 1
            if conflicts > TRIES_AFTER_CONFLICT:
                raise StoreUnavailableError(
                    f"checkpoint of partition {record.partition_id!r}: the stored row changed "
                    f"{conflicts} times while it was written; try again"
                )
        if rewound is not None and not is_forced:
            log.warning(
                "partition %r of %s: another writer rewound the checkpoint to %s, and this "
                "consumer has stored %s over it; %s",
                record.partition_id,
                record.scope,
                rewound.sequence_number,
                record.sequence_number,
                RECIPE,
            )

    def _refuse_stale(self, known: PartitionState, record: Checkpoint) -> None:
        floor, sequence_number = known.checkpoint.floor, record.sequence_number or 0
        if floor is not None and known.checkpoint.refuses(sequence_number):
            raise StaleCheckpointError(record.partition_id, sequence_number, floor)

    def _replace_in_turn(
        self, known: PartitionState, record: Checkpoint, stored: Mapping[str, Any] | None
    ) -> bool:
        runner = self._runner
        listing = runner.call(runner.backend.read_checkpoints, record.scope, retries=True)
        row = next((row for row in listing.rows if row.partition_id == record.partition_id), None)
        if position_of(row.as_dict(record.scope) if row else None) != position_of(stored):
            return False
        answer = self._attempt(known, record, row.version if row else ABSENT, 0)
        with runner.guard:
            guard = known.checkpoint
            if isinstance(answer, Written):
                known.record_write(guard.written(answer.version, True, record.sequence_number))
            else:
                known.record_write(guard.shown(answer.stored))
        return isinstance(answer, Written)

    def _warn_of_owner(self, record: Checkpoint) -> None:
        """Log the live owner of a partition whose checkpoint was overwritten by force."""
        runner = self._runner
        try:
            limit = attempt_limit(runner.settings.write_timeout)
            listing = runner.call(runner.backend.read_ownerships, record.scope, limit=limit)
        except Exception as error:
            # The checkpoint is stored: a failure to read the owner must not fail the write.
            log.debug("partition %r: its owner is not known: %s", record.partition_id, error)
            return
        known, now = runner.known(record), time.time()
        for row, modified in on_local_clock(listing, now):
            age = now - modified
            is_other = row.owner_id not in (RELEASED, known.lease.owner_id)
            if row.partition_id == record.partition_id and is_other and age < LIVE_SECONDS:
                log.warning(
                    "partition %r of %s: checkpoint %s was stored by force while %r owns the "
                    "partition, renewed %.0f s ago; the owner's next checkpoint undoes this; %s",
                    record.partition_id,
                    record.scope,
                    record.sequence_number,
                    row.owner_id,
                    age,
                    RECIPE,
                )


def position_of(row: Mapping[str, Any] | None) -> tuple[object, object] | None:
    """Return the position in a dict of `list_checkpoints`; None if there is no dict."""
    return None if row is None else (row.get("sequence_number"), row.get("offset"))
