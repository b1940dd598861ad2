# Derived from _async/history.py by tools/unasync.py; edit that file.
"""History of checkpoints in a SQL database: who stored which position when."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.exc import DBAPIError

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints.errors import StoreAccessError, StoreNotReadyError
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.history_entries import FULL, KEPT, EntriesDue
from eventhub_checkpoints.stores.hook_results import Seen
from eventhub_checkpoints.stores.sql import statements
from eventhub_checkpoints.stores.sql._sync.database import SqlDatabase
from eventhub_checkpoints.stores.sql._sync.engine import Connection


class SqlHistory:
    """Keeps an entry of a checkpoint in the transaction of its write, at most once a minute.

    A write that gets no entry costs nothing more. Where the table or the right to use it is
    missing, this process keeps no history, and writes go on.

    Args:
        database: tables and statements.
        keeps: whether writes get entries.
    """

    def __init__(self, database: SqlDatabase, keeps: bool) -> None:
        self._database = database
        self._keeps = keeps
        self._entries = EntriesDue()

    def mark(self, scope: Scope, partition_id: str) -> None:
        """Keep the next write of a partition like a rewind."""
        self._entries.mark(scope, partition_id)

    def is_due(self, checkpoint: Checkpoint, seen: Seen | None) -> bool:
        """Return whether this write gets an entry, as far as this process knows."""
        return self._keeps and self._entries.are_due(checkpoint, seen, time.monotonic())

    def write(self, checkpoint: Checkpoint, seen: Seen | None, values: Mapping[str, Any]) -> bool:
        """Write a checkpoint and its entry in one transaction.

        Args:
            checkpoint: as in `write_checkpoint`.
            seen: state of the stored checkpoint; None if it is known by its version.
            values: parameters of the write.

        Returns:
            Whether the checkpoint was written.
        """
        database, sql = self._database, self._database.statements
        entry = statements.entry_values(values)
        try:
            if sql.recorded_writes and not self._entries.is_marked(checkpoint):
                count = database.transact(self._write_at_once, seen, entry)
            else:
                is_rewind = self._entries.is_rewind(checkpoint, seen)
                count = database.transact(self._write, seen, entry, is_rewind)
        except Exception as error:
            failure = database.map_error(error)
            if not isinstance(failure, StoreAccessError | StoreNotReadyError):
                raise
            # Nothing was written. If the reason is not the history, this raises the same error.
            is_written = database.transact(database.write, sql.writes[seen], values)
            self._give_up(failure)
            return is_written
        if count:
            self._entries.wrote(checkpoint, time.monotonic())
        if count >= FULL:
            self._prune(values)
        return bool(count)

    def _write_at_once(
        self, connection: Connection, seen: Seen | None, values: Mapping[str, Any]
    ) -> int:
        """Return the number of entries with the new one; 0 if nothing was written."""
        database = self._database
        rows = database.rows(connection, database.statements.recorded_writes[seen], values)
        return 1 + int(rows[0][0]) if rows else 0

    def _write(
        self,
        connection: Connection,
        seen: Seen | None,
        values: Mapping[str, Any],
        is_rewind: bool,
    ) -> int:
        """Do the same in a transaction, which on SQLite is a savepoint."""
        database, sql = self._database, self._database.statements
        try:
            connection.exec_driver_sql(sql.begin)
            if is_rewind:
                connection.execute(sql.keep_replaced, values)
            is_written = database.write(connection, sql.writes[seen], values)
            count = 0
            if is_written:
                keep = sql.keep_rewind if is_rewind else sql.keep_checkpoint
                connection.execute(keep, values)
                rows = database.rows(connection, sql.entries, values)
                count = max(int(rows[0][0]), 1)
            for statement in sql.commit if is_written else sql.rollback:
                connection.exec_driver_sql(statement)
        except BaseException as error:
            # The pool does not know of the transaction, and would not roll it back.
            self._roll_back(connection, error)
            raise
        return count

    def _roll_back(self, connection: Connection, error: BaseException) -> None:
        if isinstance(error, DBAPIError) and not error.connection_invalidated:
            try:
                for statement in self._database.statements.rollback:
                    connection.exec_driver_sql(statement)
                return
            except DBAPIError as failure:  # such as SQLite, which has rolled back at a full disk
                log.debug("the connection is closed: %s", described(failure))
        connection.invalidate()

    def _prune(self, values: Mapping[str, Any]) -> None:
        """Delete the oldest entries of a partition; the checkpoint is stored, so never fail."""
        database = self._database
        try:
            database.transact(self._execute, database.statements.prune, {**values, "kept": KEPT})
        except Exception as error:
            failure = database.map_error(error)
            if isinstance(failure, StoreAccessError):
                self._give_up(failure)
            else:
                log.info(
                    "the history of checkpoints was not pruned: %s", described(failure or error)
                )

    def _give_up(self, failure: Exception) -> None:
        self._keeps = False
        log.info("this process keeps no history of checkpoints: %s", failure)

    @staticmethod
    def _execute(connection: Connection, statement: Any, values: Mapping[str, Any]) -> None:
        connection.execute(statement, values)

    def read(self, scope: Scope, partition_id: str | None, limit: int) -> Sequence[Any]:
        """Return the newest entries of a group or of one partition, newest first."""
        database, sql = self._database, self._database.statements
        if partition_id is None:
            statement, values = sql.history, statements.scope_values(scope)
        else:
            statement = sql.partition_history
            values = statements.row_values(scope, partition_id)
        return database.transact(database.rows, statement, {**values, "limit": limit})

    def delete(self, scope: Scope, partition_id: str | None) -> None:
        """Delete the entries of a group or of one partition, where there is a history."""
        database, sql = self._database, self._database.statements
        if partition_id is None:
            statement, values = sql.delete_history, statements.scope_values(scope)
        else:
            statement = sql.delete_partition_history
            values = statements.row_values(scope, partition_id)
        try:
            database.transact(self._execute, statement, values)
        except Exception as error:
            failure = database.map_error(error)
            if not isinstance(failure, StoreAccessError | StoreNotReadyError):
                raise
            log.info("the history of %s was not deleted: %s", scope, failure)
        self._entries.forget(scope, partition_id)
