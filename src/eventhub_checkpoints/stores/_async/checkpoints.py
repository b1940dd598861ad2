"""Checkpoint methods of a store: lists, and writes that do not go back."""

import random
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared._async.client_check import own_client_only
from eventhub_checkpoints._shared._async.compat import holding, sleep, uninterrupted
from eventhub_checkpoints._shared.deadline import pause, seconds_left
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import refuse_misspelt
from eventhub_checkpoints.errors import (
    ConfigurationError,
    StaleCheckpointError,
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import RELEASED, Checkpoint, Scope, fresh_etag
from eventhub_checkpoints.stores._async.hooks import HookRunner, log
from eventhub_checkpoints.stores.hook_results import (
    ABSENT,
    FORCE,
    Conflict,
    Listing,
    Seen,
    Written,
    clock_skew,
    on_local_clock,
)
from eventhub_checkpoints.stores.partition_state import PartitionState, is_same_write, next_change

TRIES_AFTER_CONFLICT = 3
LIVE_SECONDS = 60.0
"""Seconds since its last renewal for which an ownership counts as live."""
RECIPE = "to rewind: stop the consumer group, rewind, and start it"


class CheckpointMethods(HookRunner):
    """Checkpoint methods of the SDK's `CheckpointStore`, implemented with a backend's hooks.

    Attributes:
        forward_only: whether a checkpoint below another writer's is refused; if not,
            `processing` does not save the last checkpoint of a lost partition.
    """

    forward_only: ClassVar[bool] = True

    @own_client_only
    async def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        *,
        with_times: bool = False,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Return all checkpoints of a consumer group, as fresh dicts.

        Args:
            fully_qualified_namespace: of the hub.
            eventhub_name: of the hub.
            consumer_group: of the hub.
            with_times: add `last_modified_time` to each dict, in seconds since the epoch on this
                process's clock; None if the backend does not know it.

        Returns:
            Dicts with the three names as passed, `partition_id`, `sequence_number`, and `offset`:
            a non-empty string, or, where no usable offset is stored, an int that makes the client
            resume by sequence number.

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        seconds = self.settings.operation_timeout
        listing = await uninterrupted(seconds, self._list_checkpoints, scope)
        rows = [row.as_dict(scope) for row in listing.rows]
        if with_times:
            now = time.time()
            skew = clock_skew(listing, now)
            for row, stored in zip(rows, listing.rows, strict=True):
                modified = stored.last_modified_time
                row["last_modified_time"] = None if modified is None else min(now, modified + skew)
        return rows

    async def _list_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        await self._ready()
        began = next_change()
        listing = await self._call(self.read_checkpoints, scope, retries=True)
        with self._state_lock:
            self._states.checkpoints_listed(scope, listing.rows, began)
        self._report(listing.skipped)
        return listing

    async def update_checkpoint(
        self,
        checkpoint: Mapping[str, Any],
        *,
        force: bool = False,
        on_stale: Literal["log", "raise"] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store a partition's checkpoint, unless another writer has stored a later one.

        A checkpoint below another writer's is not written: it is logged, or raised as
        `StaleCheckpointError` if the store was created with `on_stale="raise"`. Sequence numbers
        are compared, never offsets; an equal one is success.

        Args:
            checkpoint: as the SDK builds it; neither kept nor modified. If the offset is unknown,
                `offset` is None, or the sequence number as an int, as `list_checkpoints` returns
                it. Any other int is refused, because it may be an offset, which must be a string.
            force: overwrite whatever is stored, to go back on purpose. If the ownership of another
                client was renewed within the last minute, a warning names that owner: its next
                checkpoint undoes the rewind, so stop the group first.
            on_stale: overrides the setting of the store for this write.

        Raises:
            InvalidRecordError: a name, id or offset is invalid, or the sequence number is not an
                int64.
            ConfigurationError: `force` is not a bool; a string such as "false" would be true. Or
                another keyword is a misspelling of `force` or `on_stale`; all others are ignored.
            StaleCheckpointError: see above.
            StoreUnavailableError: no definite answer within `write_timeout`, or too many writers.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        if kwargs:
            refuse_misspelt(kwargs, ("force", "on_stale"), "an option of update_checkpoint")
        if not isinstance(force, bool):
            raise ConfigurationError(f"force is {quoted(force)}; expected True or False")
        record = Checkpoint.from_dict(checkpoint, "" if self.makes_own_etags else fresh_etag())
        update = self._rewind if force else self._update
        await uninterrupted(self.settings.write_timeout, update, record, on_stale)

    async def _rewind(
        self, record: Checkpoint, on_stale: Literal["log", "raise"] | None = None
    ) -> None:
        await self._update(record, on_stale, force=True)
        await self._warn_of_owner(record)

    async def _update(
        self,
        record: Checkpoint,
        on_stale: Literal["log", "raise"] | None = None,
        *,
        force: bool = False,
    ) -> None:
        names = (*record.scope, record.partition_id)
        try:
            with tracing.checkpoint(names, record.sequence_number):
                await self._update_in_turn(record, force)
        except StaleCheckpointError as error:
            self.counters["stale_checkpoints"] += 1
            log.warning("%s", error)
            if (on_stale or self.settings.on_stale) == "raise":
                raise

    async def _update_in_turn(self, record: Checkpoint, force: bool) -> None:
        await self._ready()
        known = self._known(record)
        try:
            async with holding(self._write_lock(known), seconds_left()):
                known.writing = True
                try:
                    await self._write(known, record, force)
                finally:
                    known.writing = False
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"a checkpoint of partition {record.partition_id!r} is still being written"
            ) from error

    async def _write(self, known: PartitionState, record: Checkpoint, force: bool) -> None:
        seen: str | Seen = FORCE if force else known.checkpoint.base
        rewound: Checkpoint | None = None
        conflicts = attempt = 0
        while True:
            if not force:
                self._refuse_stale(known, record)
            try:
                seconds = self.settings.write_timeout
                answer = await self._call(self.write_checkpoint, record, seen, seconds=seconds)
                if attempt and isinstance(answer, Conflict):
                    await self._call(self.confirm, seconds=seconds)
            except (StoreAccessError, StoreNotReadyError):
                raise
            except BaseException as error:
                # Cancelled or timed out: the write may have been carried out all the same.
                with self._state_lock:
                    known.record_write(known.checkpoint.unsure(record))
                wait = pause(attempt, seconds_left(), random.random())
                if not isinstance(error, StoreUnavailableError) or wait is None:
                    raise
                await sleep(wait)
                attempt += 1
                continue
            stored = None if isinstance(answer, Written) else answer.stored
            with self._state_lock:
                guard = known.checkpoint
                if isinstance(answer, Written):
                    version: str | None = answer.version
                elif stored and guard.wrote(stored) and is_same_write(record, stored):
                    version = stored.version  # of an earlier attempt, whose answer was lost
                else:
                    version = None
                if version is not None:
                    known.record_write(guard.written(version, force, record.sequence_number))
                    break
                if guard.was_rewound(stored):
                    rewound = stored
                known.record_write(guard.shown(stored))
            if not force:
                seen = stored.version if stored else ABSENT
            conflicts += 1
            if conflicts > TRIES_AFTER_CONFLICT:
                raise StoreUnavailableError(
                    f"checkpoint of partition {record.partition_id!r}: the stored row changed "
                    f"{conflicts} times while it was written; try again"
                )
        if rewound is not None and not force:
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

    async def _warn_of_owner(self, record: Checkpoint) -> None:
        """Log the live owner of a partition whose checkpoint was overwritten by force."""
        try:
            seconds = self.settings.write_timeout
            listing = await self._call(self.read_ownerships, record.scope, seconds=seconds)
        except Exception as error:
            # The checkpoint is stored: a failure to read the owner must not fail the write.
            log.debug("partition %r: its owner is not known: %s", record.partition_id, error)
            return
        known, now = self._known(record), time.time()
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
