"""Optional abilities of a store, each declared by a class among its bases."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from eventhub_checkpoints._shared._async.compat import uninterrupted
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.settings import is_count, require
from eventhub_checkpoints.records import Checkpoint, Scope, checked_name, checked_row
from eventhub_checkpoints.stores._async.engine import Engine
from eventhub_checkpoints.stores.hook_results import HistoryEntry, Listing, clock_skew


class Ability(ABC):
    """Optional ability of a `BaseCheckpointStore`; its methods raise the errors of the store's."""

    _engine: Engine


class AnyNumber:
    """Type of `ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY = AnyNumber()
"""No particular sequence number is expected: any checkpoint that does not go back is written."""


class ListsScopes(Ability):
    """A store that can list its consumer groups."""

    @abstractmethod
    async def read_scopes(self) -> Sequence[Scope]:
        """Return all scopes that have an ownership or a checkpoint row, in any order."""

    async def list_scopes(self) -> list[Scope]:
        """Return every consumer group with an ownership or a checkpoint, sorted by name.

        The names are in lower case, as they are stored (on Blob with `name_case="as-typed"`, and
        on Table unless it has `"lower"`: as they were passed). The rows that this package writes
        for itself are left out, such as those of `verify`.
        """
        runner = self._engine.runner
        seconds = runner.settings.operation_timeout
        scopes = await uninterrupted(seconds, runner.request, self.read_scopes)
        return sorted((scope for scope in scopes if not scope.is_reserved), key=str)


class Deletes(Ability):
    """A store that can delete a consumer group, or one partition of it."""

    @abstractmethod
    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        """Delete the rows of both kinds, of one partition or of all; return their number."""

    @with_checked_arguments
    async def delete_scope(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> int:
        """Remove all ownerships and checkpoints of a consumer group.

        A `Scope` holds the three names: `delete_scope(*scope)`. A running client keeps its
        partitions until it renews them, and then claims them anew: stop the group first.

        Returns:
            Number of rows removed; too low if an answer was lost and the request was repeated.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        return await self._engine.delete(self.delete_rows, scope, None)

    @with_checked_arguments
    async def delete_partition(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> int:
        """Remove the ownership and checkpoint of one partition; otherwise like `delete_scope`."""
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        partition_id = checked_name("partition_id", partition_id)
        return await self._engine.delete(self.delete_rows, scope, partition_id)


class Replaces(Ability):
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
            StoreUnavailableError: no definite answer within `write_timeout`: list the checkpoints
                again.
        """
        engine = self._engine
        record = Checkpoint.from_dict(checkpoint, engine.fresh_version())
        seen = None if stored is None else checked_row(stored)
        seconds = engine.runner.settings.write_timeout
        return await uninterrupted(seconds, engine.checkpoints.replace, record, seen)


class KeepsHistory(Ability):
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

    @with_checked_arguments
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
            StoreNotReadyError: the table of the history does not exist; `create` creates it.
        """
        scope = Scope.checked(fully_qualified_namespace, eventhub_name, consumer_group)
        if partition_id is not None:
            partition_id = checked_name("partition_id", partition_id)
        require("limit", limit, is_count(limit), "a whole number of at least 1")
        runner = self._engine.runner
        seconds = runner.settings.operation_timeout
        listing = await uninterrupted(
            seconds, runner.request, self.read_history, scope, partition_id, limit
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


class WritesInTransaction(Ability):
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
