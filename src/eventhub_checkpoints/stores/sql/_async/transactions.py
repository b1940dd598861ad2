"""Checkpoints of the SQL store inside of a transaction of the caller's own."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from eventhub_checkpoints.errors import CheckpointStoreError, StaleCheckpointError
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores._async.abilities import ANY, AnyNumber, WritesInTransaction
from eventhub_checkpoints.stores._async.hook_runner import Asking, fresh_etag
from eventhub_checkpoints.stores.sql._async.calls import all_rows, count
from eventhub_checkpoints.stores.sql._async.database import SqlDatabase
from eventhub_checkpoints.stores.sql._async.engine import Connection
from eventhub_checkpoints.stores.sql.rows import checkpoint_of
from eventhub_checkpoints.stores.sql.tables import checkpoint_values, row_values, scope_values


class SqlTransactions(Asking, WritesInTransaction):
    """Reads and writes on a connection that the caller has, commits, or rolls back.

    These writes are not held against what the store knows of a partition (its base and floor):
    the number that is expected is compared by the database. Time limits are the caller's, too.
    """

    @property
    @abstractmethod
    def database(self) -> SqlDatabase:
        """The store's database; the connection must be one of the same."""

    async def read_in(
        self, connection: Connection, scope: Scope, partition_ids: Sequence[str]
    ) -> dict[str, Checkpoint]:
        say = self.database.statements_for(connection)
        wanted = scope_values(scope) | {"partition_ids": list(partition_ids)}
        try:
            if say.hold_off is not None:
                await count(connection, say.hold_off, {})
            rows = await all_rows(connection, say.locked_checkpoints, wanted)
        except Exception as error:
            raise self._ours(error) from error
        return {row[0]: checkpoint_of(scope, row) for row in rows if row[0] in partition_ids}

    async def write_in(
        self,
        connection: Connection,
        checkpoint: Checkpoint,
        *,
        expected_sequence_number: int | AnyNumber | None = ANY,
    ) -> None:
        say = self.database.statements_for(connection)
        values = checkpoint_values(replace(checkpoint, version=fresh_etag()), self.writer)
        statement = say.expected_checkpoint
        if isinstance(expected_sequence_number, AnyNumber):
            statement = say.forward_checkpoint
        elif expected_sequence_number is None:
            statement = say.create_checkpoint
        values["expected"] = expected_sequence_number
        key = row_values(checkpoint.scope, checkpoint.partition_id)
        try:
            if await count(connection, statement, values):
                return
            found = await all_rows(connection, say.checkpoint, key)
        except Exception as error:
            raise self._ours(error) from error
        raise StaleCheckpointError(
            checkpoint.partition_id,
            checkpoint.sequence_number or 0,
            checkpoint_of(checkpoint.scope, found[0]).sequence_number if found else None,
            "roll the transaction back",
        )

    def _ours(self, error: Exception) -> CheckpointStoreError:
        return error if isinstance(error, CheckpointStoreError) else self.map_error(error)
