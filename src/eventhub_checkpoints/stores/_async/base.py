"""Base class of all checkpoint stores: the SDK's four methods over four typed hooks.

A backend subclasses `BaseCheckpointStore` and implements `read_ownerships`, `try_claim`,
`read_checkpoints` and `write_checkpoint`. Everything that is easy to get wrong is done here: the
SDK's dicts and conventions, parallel claims, retries and their consequences, checkpoints that must
not go back, clocks, releases. `docs/custom-store.md` builds a backend from scratch.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared._async.client_check import ClosingContext
from eventhub_checkpoints._shared._async.compat import holding, uninterrupted
from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.errors import (
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import (
    RELEASED,
    RESERVED_NAMESPACE,
    Checkpoint,
    Proposal,
    Scope,
    checked_name,
    checked_row,
    fresh_etag,
)
from eventhub_checkpoints.stores._async.checkpoints import CheckpointMethods
from eventhub_checkpoints.stores._async.hooks import HookRunner
from eventhub_checkpoints.stores._async.ownership import OwnershipMethods
from eventhub_checkpoints.stores.hook_results import (
    ABSENT,
    Examination,
    HistoryEntry,
    Listing,
    ScopeRows,
    Seen,
    Written,
    clock_skew,
)
from eventhub_checkpoints.stores.partition_state import PartitionState

PROBE = Scope(RESERVED_NAMESPACE, "verify", "probe")
PROBE_PARTITION = "0"
PROBE_CHECKPOINT = {
    **PROBE.as_dict(),
    "partition_id": PROBE_PARTITION,
    "offset": "",
    "sequence_number": 0,
}


class BaseCheckpointStore(OwnershipMethods, CheckpointMethods, ClosingContext, CheckpointStore):
    """A checkpoint store for one `EventHubConsumerClient`, over a backend's hooks.

    Args:
        **settings: see [`StoreSettings`][eventhub_checkpoints.base.StoreSettings].

    A closed store stays closed: every call except a release raises `StoreError`.

    Attributes:
        counters: number of events by kind: `lost_claims`, `unconfirmed_claims`,
            `stale_checkpoints`, `skipped_rows`.

    Raises:
        ConfigurationError: a setting is invalid.
    """

    async def verify(self) -> None:
        """Check at start-up that ownerships and checkpoints can be read and written.

        It writes two rows, an ownership and a checkpoint, under the names `eventhub-checkpoints`,
        `verify` and `probe`, which no client uses. They are kept and overwritten the next time,
        because deleting takes a permission that a consumer need not have.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`; or the connection was
                refused, or the host's name not known, for 5 s (see `unreachable_timeout`).
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        await uninterrupted(self.settings.operation_timeout, self._interactive, self._verify)

    async def _verify(self) -> None:
        await self._ready()
        # Creating a row and overwriting it may take two permissions. Losing to another process
        # that verifies at the same time is a valid answer too.
        await self._probe(None)
        rows = await self.list_ownership(*PROBE)
        await self._probe(rows[0]["etag"] if rows else None)
        await self.list_checkpoints(*PROBE)
        version = "" if self.makes_own_etags else fresh_etag()
        record = Checkpoint.from_dict(PROBE_CHECKPOINT, version)
        seconds = self.settings.write_timeout
        await uninterrupted(seconds, self._update, record, force=True)

    async def examine(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> Examination:
        """Read the rows of a consumer group as they are stored, for diagnosis.

        Unlike the lists, it returns what could not be read instead of logging it, leaves times on
        the backend's clock, and does not change what the store knows about the group.

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        return await uninterrupted(self.settings.operation_timeout, self._examine, scope)

    async def _examine(self, scope: Scope) -> Examination:
        rows = ScopeRows(
            scope,
            await self._request(self.read_ownerships, scope),
            await self._request(self.read_checkpoints, scope),
        )
        spellings = await self._request(self.read_spellings, scope)
        return Examination(rows, spellings, await self._request(self.read_settings))

    async def _probe(self, etag: str | None) -> None:
        probe = Proposal(PROBE, PROBE_PARTITION, RELEASED, etag, fresh_etag())
        answer = (await self._settle([probe]))[probe]
        if isinstance(answer, Exception):
            raise answer


class AnyNumber:
    """Type of `ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY = AnyNumber()
"""No particular sequence number is expected: any checkpoint that does not go back is written."""


class ListsScopes(HookRunner):
    """A store that can list its consumer groups."""

    @abstractmethod
    async def read_scopes(self) -> Sequence[Scope]:
        """Return all scopes that have an ownership or a checkpoint row, in any order."""

    async def list_scopes(self) -> list[Scope]:
        """Return every consumer group with an ownership or a checkpoint, sorted by name.

        The names are in lower case, as they are stored (on Blob with `name_case="as-typed"`: as
        they were passed). The rows that this package writes for itself are left out, such as those
        of `verify`.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        seconds = self.settings.operation_timeout
        scopes = await uninterrupted(seconds, self._request, self.read_scopes)
        return sorted((scope for scope in scopes if not scope.is_reserved), key=str)


class Deletes(HookRunner):
    """A store that can delete a consumer group, or one partition of it."""

    @abstractmethod
    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        """Delete the rows of both kinds, of one partition or of all; return their number."""

    async def delete_scope(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> int:
        """Remove all ownerships and checkpoints of a consumer group.

        A `Scope` holds the three names: `delete_scope(*scope)`. A running client keeps its
        partitions until it renews them, and then claims them anew: stop the group first.

        Returns:
            Number of rows removed; too low if an answer was lost and the request was repeated.

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return await self._delete(Scope.checked(*names), None)

    async def delete_partition(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> int:
        """Remove the ownership and checkpoint of one partition; otherwise like `delete_scope`."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return await self._delete(Scope.checked(*names), checked_name("partition_id", partition_id))

    async def _delete(self, scope: Scope, partition_id: str | None) -> int:
        seconds = self.settings.operation_timeout
        removed = await uninterrupted(seconds, self._request, self.delete_rows, scope, partition_id)
        # Nobody is to be asked for what is gone.
        wishes = scope.wishes
        await uninterrupted(seconds, self._request, self.delete_rows, wishes, partition_id)
        with self._state_lock:
            self._states.forget(scope, partition_id)
        return removed


class Replaces(HookRunner):
    """A store that can replace a checkpoint if it is still the one that was read."""

    async def replace_checkpoint(
        self, checkpoint: Mapping[str, Any], stored: Mapping[str, Any] | None
    ) -> bool:
        """Store a checkpoint, higher or lower, if the stored one has not changed its position.

        Unlike `update_checkpoint`, it never overwrites a checkpoint that the caller has not seen.

        Args:
            checkpoint: as for `update_checkpoint`.
            stored: the stored checkpoint as `list_checkpoints` returned it; None: none was stored.

        Returns:
            Whether it was stored. If not, another position is stored: list the checkpoints again.

        Raises:
            InvalidRecordError: a name, id or offset is invalid, or the sequence number is not an
                int64.
            StoreUnavailableError: no definite answer within `write_timeout`: list them again.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        record = Checkpoint.from_dict(checkpoint, "" if self.makes_own_etags else fresh_etag())
        seen = None if stored is None else checked_row(stored)
        return await uninterrupted(self.settings.write_timeout, self._replace, record, seen)

    async def _replace(self, record: Checkpoint, stored: Mapping[str, Any] | None) -> bool:
        await self._ready()
        known = self._known(record)
        try:
            async with holding(self._write_lock(known), seconds_left()):
                known.writing = True
                try:
                    return await self._replace_in_turn(known, record, stored)
                finally:
                    known.writing = False
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"a checkpoint of partition {record.partition_id!r} is still being written"
            ) from error

    async def _replace_in_turn(
        self, known: PartitionState, record: Checkpoint, stored: Mapping[str, Any] | None
    ) -> bool:
        listing = await self._call(self.read_checkpoints, record.scope, retries=True)
        row = next((row for row in listing.rows if row.partition_id == record.partition_id), None)
        if position_of(row.as_dict(record.scope) if row else None) != position_of(stored):
            return False
        seen: str | Seen = row.version if row else ABSENT
        try:
            seconds = self.settings.write_timeout
            answer = await self._call(self.write_checkpoint, record, seen, seconds=seconds)
        except (StoreAccessError, StoreNotReadyError):
            raise
        except BaseException:
            # Cancelled or timed out: the write may have been carried out all the same.
            with self._state_lock:
                known.record_write(known.checkpoint.unsure(record))
            raise
        with self._state_lock:
            guard = known.checkpoint
            if isinstance(answer, Written):
                known.record_write(guard.written(answer.version, True, record.sequence_number))
            else:
                known.record_write(guard.shown(answer.stored))
        return isinstance(answer, Written)


def position_of(row: Mapping[str, Any] | None) -> tuple[object, object] | None:
    """Return the position in a dict of `list_checkpoints`; None if there is no dict."""
    return None if row is None else (row.get("sequence_number"), row.get("offset"))


class KeepsHistory(HookRunner):
    """A store that keeps earlier checkpoints."""

    @abstractmethod
    async def read_history(
        self, scope: Scope, partition_id: str | None, limit: int
    ) -> Listing[HistoryEntry]:
        """Return the newest entries of a group or of one partition, newest first."""

    @abstractmethod
    def keep_next_write(self, scope: Scope, partition_id: str) -> None:
        """Keep the next checkpoint of a partition as `force=True` does, with what it replaces.

        For tools that move a group back or forward with a conditional write.
        """

    async def list_history(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        *,
        partition_id: str | None = None,
        limit: int = 1000,
    ) -> list[dict[str, Any]]:
        """Return the newest checkpoints of a group that are, or were, stored, newest first.

        Each rewind (`force=True`) has two entries: what it replaced, and what it stored. Of other
        checkpoints, at most one a minute is kept for each partition.

        Returns:
            Dicts as of `list_checkpoints` with `last_modified_time` (seconds since the epoch, on
            this process's clock), `writer`, and `kind`: `checkpoint`, `replaced` or `rewind`.

        Raises:
            InvalidRecordError: a name is invalid.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the table of the history does not exist; `create` creates it.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        if partition_id is not None:
            partition_id = checked_name("partition_id", partition_id)
        seconds = self.settings.operation_timeout
        listing = await uninterrupted(
            seconds, self._request, self.read_history, scope, partition_id, limit
        )
        now = time.time()
        skew = clock_skew(listing, now)
        return [
            {
                **checkpoint.as_dict(scope),
                "last_modified_time": min(now, (checkpoint.last_modified_time or 0.0) + skew),
                "kind": kind,
                "writer": writer,
            }
            for checkpoint, kind, writer in listing.rows
        ]


class FullCheckpointStore(ListsScopes, Deletes, Replaces, BaseCheckpointStore):
    """A checkpoint store with all abilities on groups, as every store of this package.

    This is the return type of `open_store`. A store of another package need not derive from
    it: if a URL may name one, check `isinstance(store, Deletes)` before using that capability.
    """


class WritesInTransaction(ABC):
    """A store that can write checkpoints in a transaction of the caller.

    Results and positions that are committed together make processing exactly-once: after a
    crash, both are stored or neither.
    """

    @abstractmethod
    async def read_in(
        self, connection: Any, scope: Scope, partition_ids: Sequence[str]
    ) -> dict[str, Checkpoint]:
        """Return the checkpoints of these partitions, locked until the transaction ends."""

    @abstractmethod
    async def write_in(
        self,
        connection: Any,
        checkpoint: Checkpoint,
        *,
        expected_sequence_number: int | AnyNumber | None = ANY,
    ) -> None:
        """Write a checkpoint; it is stored when the transaction is committed.

        Args:
            connection: a connection of the backend's driver, in a transaction.
            checkpoint: the checkpoint to store; its `version` is set here.
            expected_sequence_number: sequence number that must be stored now; None if no checkpoint
                may be stored. By default, any that is not higher than the new one.

        Raises:
            StaleCheckpointError: something else is stored; roll the transaction back.
        """
