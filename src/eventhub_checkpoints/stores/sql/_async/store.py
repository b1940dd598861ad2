"""Checkpoint store in tables of a SQL database."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from sqlalchemy import TextClause

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.settings import StoreSettings, require_flag
from eventhub_checkpoints.errors import CheckpointStoreError, StaleCheckpointError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope, fresh_etag
from eventhub_checkpoints.stores._async.abilities import (
    ANY,
    AnyNumber,
    KeepsHistory,
    WritesInTransaction,
)
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores._async.hooks import Answer
from eventhub_checkpoints.stores.hook_results import (
    Conflict,
    HistoryEntry,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.sql import statements
from eventhub_checkpoints.stores.sql._async.database import SqlDatabase
from eventhub_checkpoints.stores.sql._async.engine import Connection, Engine
from eventhub_checkpoints.stores.sql._async.history import SqlHistory

LOST = Lost()


class SqlCheckpointStore(WritesInTransaction, KeepsHistory, FullCheckpointStore):
    """Stores ownerships and checkpoints in two tables, and earlier checkpoints in a third.

    Args:
        url_or_engine: `sqlite:///FILE`, `postgresql://USER:PASSWORD@HOST/DATABASE`, the same with
            `mysql://`, or an existing engine of SQLAlchemy. Such an engine is not closed, and must
            not be used in a forked process.
        namespace: prefix of the tables' names, by which several hubs can be kept apart.
        schema: PostgreSQL's schema of the tables; by default the first one of the connection's
            search path.
        credential: the password, a callable that returns it at each connect, or a credential of
            azure-identity, whose token is the password.
        entra: use the default credential of azure-identity.
        audience: whom the tokens are for, if not the service in the cloud that the host's domain
            names.
        create_tables: create or migrate the tables before the first use.
        keep_history: keep earlier checkpoints, at most one a minute for each partition and those
            that a rewind replaced; see `list_history`. Has no effect where the tables of an older
            release have not been migrated, or the role has no right to the table.
        **settings: see `StoreSettings`.

    Raises:
        ConfigurationError: a setting is invalid.
        MissingDriverError: the database's driver is not installed.
    """

    @with_checked_arguments
    def __init__(
        self,
        url_or_engine: str | Engine,
        *,
        namespace: str | None = None,
        schema: str | None = None,
        credential: Any = None,
        entra: bool = False,
        audience: str | None = None,
        create_tables: bool = False,
        keep_history: bool = True,
        **settings: Unpack[StoreSettings],
    ) -> None:
        super().__init__(**settings)
        require_flag("create_tables", create_tables)
        require_flag("keep_history", keep_history)
        require_flag("entra", entra)
        self.creates = create_tables
        shorter = min(self.settings.operation_timeout, self.settings.write_timeout)
        self._database = SqlDatabase(
            url_or_engine,
            namespace,
            schema,
            credential,
            entra,
            audience,
            pool_timeout=shorter / 2,
        )
        self._sql = self._database.statements
        self._history = SqlHistory(self._database, keep_history)

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **settings: Any) -> Self:
        """Open the tables of a database.

        The URL's query may contain `namespace`, `schema` and `audience`, and options of the driver.
        """
        return cls(url, credential=credential, **settings)

    @property
    def database(self) -> SqlDatabase:
        """Tables, statements and connections of the store."""
        return self._database

    def __repr__(self) -> str:
        return f"SqlCheckpointStore({self._database.shown})"

    async def open(self) -> None:
        await self._database.close_left()
        if self.creates:
            await self._database.migrate(self.writer)
        else:
            self._database.require_database()

    async def close(self) -> None:
        await super().close()
        if self._engine.runner.is_elsewhere:
            self.drop_connections()
        await self._database.close()

    def drop_connections(self) -> None:
        self._database.drop_connections()

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return self._database.map_error(error) or super().map_error(error)

    async def confirm(self) -> None:
        await self._database.confirm()

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        rows = await self._rows(self._sql.ownerships, statements.scope_values(scope))
        return statements.listing(rows, scope, statements.ownership_of)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        alternatives = self._sql.create if proposal.etag is None else self._sql.renew
        won = await self._database.transact(
            self._database.write, alternatives, statements.proposal_values(proposal)
        )
        return Won(proposal.won(0.0)) if won else LOST

    async def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Answer]:
        renewals = [proposal for proposal in proposals if proposal.etag is not None]
        answers = await self._claim_batch(self._sql.renew_batch, renewals)
        # A renewal also loses if its row was deleted: then creating the row wins. If it exists,
        # the creation changes nothing.
        others = [each for each in proposals if isinstance(answers.get(each, LOST), Lost)]
        answers |= await self._claim_batch(self._sql.create_batch, others)
        return [answers[proposal] for proposal in proposals]

    async def _claim_batch(
        self, statement: TextClause, proposals: Sequence[Proposal]
    ) -> dict[Proposal, Answer]:
        if not proposals:
            return {}
        rows = [statements.proposal_values(proposal) for proposal in proposals]
        try:
            etags = await self._engine.runner.call(
                self._database.transact,
                self._database.write_batch,
                statement,
                rows,
            )
        except CheckpointStoreError as error:
            return dict.fromkeys(proposals, error)
        return {
            proposal: Won(proposal.won(0.0)) if proposal.new_etag in etags else LOST
            for proposal in proposals
        }

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        rows = await self._rows(self._sql.checkpoints, statements.scope_values(scope))
        return statements.listing(rows, scope, statements.readable_checkpoint)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        values = statements.checkpoint_values(checkpoint, self.writer)
        state = None
        if isinstance(seen, str):
            values["seen"] = seen
        else:
            state = seen
        if self._history.is_due(checkpoint, state):
            is_written = await self._history.write(checkpoint, state, values)
        else:
            writes = self._sql.writes[state]
            is_written = await self._database.transact(self._database.write, writes, values)
        if is_written:
            return Written(checkpoint.version)
        key = statements.row_values(checkpoint.scope, checkpoint.partition_id)
        rows = await self._rows(self._sql.checkpoint, key)
        return Conflict(statements.checkpoint_of(checkpoint.scope, rows[0]) if rows else None)

    async def read_scopes(self) -> Sequence[Scope]:
        return [Scope._make(row) for row in await self._rows(self._sql.scopes, {})]

    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        if partition_id is None:
            deletes, key = self._sql.delete, statements.scope_values(scope)
        else:
            deletes, key = (self._sql.delete_partition, statements.row_values(scope, partition_id))
        removed = await self._database.transact(self._delete_rows, deletes, key)
        await self._history.delete(scope, partition_id)
        return removed

    def keep_next_write(self, scope: Scope, partition_id: str) -> None:
        self._history.mark(scope, partition_id)

    async def read_history(
        self, scope: Scope, partition_id: str | None, limit: int
    ) -> Listing[HistoryEntry]:
        rows = await self._history.read(scope, partition_id, limit)
        entries = [statements.history_entry(scope, row) for row in rows]
        return Listing(entries, rows[0][-1] if rows else None)

    # The next two do not depend on what the store knows of a partition: the database compares the
    # stored sequence number with the expected one. Their time limits are the caller's.

    async def read_in(
        self, connection: Connection, scope: Scope, partition_ids: Sequence[str]
    ) -> dict[str, Checkpoint]:
        database, sql = self._database, self._sql
        database.check_connection(connection)
        values = statements.scope_values(scope) | {"partition_ids": list(partition_ids)}
        try:
            if sql.hold_off is not None:
                await connection.execute(sql.hold_off)
            rows = await database.rows(connection, sql.locked_checkpoints, values)
        except Exception as error:
            raise self._engine.runner.mapped(error) from error
        return {row[0]: statements.checkpoint_of(scope, row) for row in rows}

    async def write_in(
        self,
        connection: Connection,
        checkpoint: Checkpoint,
        *,
        expected_sequence_number: int | AnyNumber | None = ANY,
    ) -> None:
        database, sql = self._database, self._sql
        database.check_connection(connection)
        checkpoint = replace(checkpoint, version=fresh_etag())
        values = statements.checkpoint_values(checkpoint, self.writer)
        alternatives = sql.expected_checkpoint
        if isinstance(expected_sequence_number, AnyNumber):
            alternatives = sql.forward_checkpoint
        elif expected_sequence_number is None:
            alternatives = sql.create_checkpoint
        values["expected"] = expected_sequence_number
        key = statements.row_values(checkpoint.scope, checkpoint.partition_id)
        try:
            if await database.write(connection, alternatives, values):
                return
            rows = await database.rows(connection, sql.checkpoint, key)
        except Exception as error:
            raise self._engine.runner.mapped(error) from error
        raise StaleCheckpointError(
            checkpoint.partition_id,
            checkpoint.sequence_number or 0,
            statements.checkpoint_of(checkpoint.scope, rows[0]).sequence_number if rows else None,
            "roll the transaction back",
        )

    @staticmethod
    async def _delete_rows(
        connection: Connection, deletes: Sequence[TextClause], key: Mapping[str, Any]
    ) -> int:
        removed = 0
        for statement in deletes:
            removed += (await connection.execute(statement, key)).rowcount
        return removed

    async def _rows(self, statement: TextClause, values: Mapping[str, Any]) -> Sequence[Any]:
        return await self._database.transact(self._database.rows, statement, values)
