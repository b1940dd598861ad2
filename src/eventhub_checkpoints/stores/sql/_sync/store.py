# Derived from _async/store.py by tools/unasync.py; edit that file.
"""Checkpoint store in tables of PostgreSQL or SQLite."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from eventhub_checkpoints._shared._sync.compat import place
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._sync.base import FullCheckpointStore
from eventhub_checkpoints.stores._sync.hooks import Answer
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    UNKNOWN,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.sql._sync.database import (
    SqlDatabase,
    SqlTransactions,
    all_rows,
    count,
)
from eventhub_checkpoints.stores.sql._sync.engine import Connection, Engine
from eventhub_checkpoints.stores.sql.tables import (
    Statement,
    checkpoint_of,
    checkpoint_values,
    columns,
    listing,
    ownership_of,
    proposal_values,
    readable_checkpoint,
    row_values,
    scope_values,
)

LOST = Lost()


class SqlCheckpointStore(SqlTransactions, FullCheckpointStore):
    """Stores ownerships and checkpoints in two tables.

    Args:
        url_or_engine: `sqlite:///FILE`, `postgresql://USER:PASSWORD@HOST/DATABASE`, or a ready
            engine of SQLAlchemy, which is not closed, and must not be used in a forked process.
        namespace: prefix of the tables' names, by which several hubs can be kept apart.
        schema: of PostgreSQL; by default the first one of the connection's search path.
        credential: the password, a callable that returns it at each connect, or a credential of
            azure-identity, whose token is the password.
        entra: use the default credential of azure-identity.
        create_tables: create or migrate the tables before the first use.
        **settings: see `BaseCheckpointStore`.

    Raises:
        ConfigurationError: a setting is invalid.
        MissingDriverError: the database's driver is not installed.
    """

    def __init__(
        self,
        url_or_engine: str | Engine,
        *,
        namespace: str | None = None,
        schema: str | None = None,
        credential: Any = None,
        entra: bool = False,
        create_tables: bool = False,
        **settings: Unpack[StoreSettings],
    ) -> None:
        super().__init__(**settings)
        self.creates = create_tables
        shorter = min(self.settings.operation_timeout, self.settings.write_timeout)
        self._database = SqlDatabase(
            url_or_engine, namespace, schema, credential, entra, pool_timeout=shorter / 2
        )
        self._say = self._database.statements

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **settings: Any) -> Self:
        """Open the tables of a database; the URL's query may contain `namespace` and `schema`."""
        return cls(url, credential=credential, **settings)

    @property
    def database(self) -> SqlDatabase:
        return self._database

    def __repr__(self) -> str:
        return f"SqlCheckpointStore({self._database.shown})"

    def open(self) -> None:
        if self.creates:
            self._database.migrate(self.writer)
        else:
            self._database.require_file()

    def close(self) -> None:
        super().close()
        if self._place not in (None, place()):
            self.drop_connections()
        self._database.close()

    def drop_connections(self) -> None:
        self._database.drop_connections()

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return self._database.map_error(error) or super().map_error(error)

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        rows = self._rows(self._say.ownerships, scope_values(scope))
        return replace(
            listing(rows, scope, ownership_of),
            server_now=max((row[4] for row in rows), default=None),
        )

    def try_claim(self, proposal: Proposal) -> Won | Lost:
        return self._database.transact(self._claim_row, proposal)

    def _claim_row(self, connection: Connection, proposal: Proposal) -> Won | Lost:
        row = proposal_values(proposal)
        if proposal.etag is not None and count(connection, self._say.renew_row, row):
            return Won(proposal.won(0.0))
        # A renewal that lost may have found no row at all; creating it is exclusive.
        created = count(connection, self._say.create_row, row)
        return Won(proposal.won(0.0)) if created else LOST

    def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Answer]:
        if self._say.stored_etags is not None:
            answers = self._answers(self._claim_together, self._say.stored_etags, proposals)
        else:
            renewals = [one for one in proposals if one.etag is not None]
            answers = self._answers(self._claim, self._say.renew, renewals)
            others = [one for one in proposals if isinstance(answers.get(one, LOST), Lost)]
            answers |= self._answers(self._claim, self._say.create, others)
        return [answers[one] for one in proposals]

    def _answers(
        self, claim: Any, statement: Statement, proposals: Sequence[Proposal]
    ) -> dict[Proposal, Answer]:
        if not proposals:
            return {}
        try:
            etags = self._call(self._database.transact, claim, statement, proposals)
        except CheckpointStoreError as error:
            return dict.fromkeys(proposals, error)
        return {one: Won(one.won(0.0)) if one.new_etag in etags else LOST for one in proposals}

    @staticmethod
    def _claim(
        connection: Connection, statement: Statement, proposals: Sequence[Proposal]
    ) -> set[str]:
        values = columns([proposal_values(one) for one in proposals])
        result = connection.exec_driver_sql(statement.text, statement.filled(values))
        return {etag for (etag,) in result}

    def _claim_together(
        self, connection: Connection, stored_etags: Statement, proposals: Sequence[Proposal]
    ) -> set[str]:
        rows = [proposal_values(one) for one in proposals]
        # Inside a transaction that the caller's engine began, BEGIN would fail.
        connection.exec_driver_sql("SAVEPOINT claims")
        connection.exec_driver_sql(self._say.renew.text, rows)
        connection.exec_driver_sql(self._say.create.text, rows)
        etags: set[str] = set()
        for scope in {one.scope for one in proposals}:
            result = connection.exec_driver_sql(stored_etags.text, scope_values(scope))
            etags |= {etag for (etag,) in result}
        connection.exec_driver_sql("RELEASE claims")
        return etags

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        rows = self._rows(self._say.checkpoints, scope_values(scope))
        return listing(rows, scope, readable_checkpoint)

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        return self._database.transact(self._put, checkpoint, seen)

    def _put(
        self, connection: Connection, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        values = checkpoint_values(checkpoint, self.writer)
        if isinstance(seen, str):
            written = count(connection, self._say.update_checkpoint, values | {"seen": seen})
        elif seen is FORCE:
            written = count(connection, self._say.force_checkpoint, values)
        elif seen is UNKNOWN:
            written = count(connection, self._say.forward_checkpoint, values)
        else:
            written = count(connection, self._say.create_checkpoint, values)
        if written:
            return Written(checkpoint.version)
        key = row_values(checkpoint.scope, checkpoint.partition_id)
        found = all_rows(connection, self._say.checkpoint, key)
        return Conflict(checkpoint_of(checkpoint.scope, found[0]) if found else None)

    def read_scopes(self) -> Sequence[Scope]:
        return [Scope(*row) for row in self._rows(self._say.scopes, {})]

    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        if partition_id is None:
            return self._database.transact(self._remove, self._say.delete, scope_values(scope))
        key = row_values(scope, partition_id)
        return self._database.transact(self._remove, self._say.delete_partition, key)

    @staticmethod
    def _remove(
        connection: Connection, statements: Sequence[Statement], key: Mapping[str, Any]
    ) -> int:
        removed = 0
        for statement in statements:
            removed += count(connection, statement, key)
        return removed

    def _rows(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Any]:
        return self._database.transact(all_rows, statement, values)
