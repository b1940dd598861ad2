# Derived from _async/dead_letters.py by tools/unasync.py; edit that file.
"""Table of dead letters in a SQL database, a sink for `EventProcessor(on_poison=...)`."""

import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from azure.eventhub import EventData, PartitionContext

from eventhub_checkpoints._shared._sync.client_check import ClosingContext
from eventhub_checkpoints._shared._sync.compat import attempt, bounded, place, sleep
from eventhub_checkpoints._shared.deadline import pause, seconds_left
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.settings import is_seconds, require
from eventhub_checkpoints.dead_letters.letter import DeadLetter, StoredLetter, in_order
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores.connections import shows_secret
from eventhub_checkpoints.stores.sql import url as urls
from eventhub_checkpoints.stores.sql._sync.database import SqlDatabase
from eventhub_checkpoints.stores.sql._sync.engine import Engine
from eventhub_checkpoints.stores.sql.letters import LetterStatements, values_of

T = TypeVar("T")


class DeadLetterTable(ClosingContext):
    """Stores dead letters in a table, one row for each event of a consumer group.

    Args:
        url_or_engine: as for `SqlCheckpointStore`.
        namespace: as for it; the table is `NAMESPACE_dead_letters`.
        schema: as for it.
        credential: as for it.
        entra: as for it.
        timeout: seconds for each call, in which it is tried again if the database is unavailable.

    Raises:
        ConfigurationError: an argument is invalid.
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
        timeout: float = 30.0,
    ) -> None:
        require("timeout", timeout, is_seconds(timeout), "seconds, above 0")
        self._timeout = timeout
        self._database = SqlDatabase(
            url_or_engine, namespace, schema, credential, entra, pool_timeout=timeout / 4
        )
        dialect = urls.DIALECTS[self._database.dialect]
        self._sql = LetterStatements(self._database.tables, dialect)
        self._place: object = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database.shown})"

    def create(self) -> None:
        """Create the table unless it exists.

        Raises:
            StoreError: it could not be created.
        """
        self._run(self._database.create_table, self._sql.create)

    def __call__(self, context: PartitionContext, event: EventData, error: BaseException) -> None:
        """Store an event that could not be processed.

        Raises:
            StoreError: it could not be stored.
        """
        values = values_of(DeadLetter.of(context, event, error))
        self._checked(self._database.write, self._sql.record, values)

    def letters(self) -> list[StoredLetter]:
        """Return the letters in the order of their times.

        Raises:
            StoreError: they could not be read.
        """
        rows = self._checked(self._database.rows, self._sql.letters, {})
        return in_order(
            StoredLetter(
                DeadLetter.from_json(text),
                None if redriven is None else datetime.fromtimestamp(redriven, UTC),
                hub,
            )
            for text, redriven, hub in rows
        )

    def mark_redriven(self, stored: StoredLetter, hub: str) -> None:
        """Record that a letter was sent to a hub, unless it has failed again since it was read.

        Raises:
            StoreError: it could not be stored.
        """
        values = {
            "id": stored.letter.id,
            "time": stored.letter.time.timestamp(),
            "redriven_time": time.time(),
            "redriven_to": hub,
        }
        self._checked(self._database.write, (self._sql.mark,), values)

    def discard(self, letters: Iterable[StoredLetter]) -> None:
        """Delete letters, except those that have failed again since they were read.

        Raises:
            StoreError: they could not be deleted.
        """
        for stored in letters:
            values = {"id": stored.letter.id, "time": stored.letter.time.timestamp()}
            self._checked(self._database.write, (self._sql.delete,), values)

    def close(self) -> None:
        """Close the engine and the credential that were created here."""
        self._database.close()

    def _checked(self, work: Callable[..., T], *args: Any) -> T:
        """Run a function on a database that must have the table."""
        try:
            self._database.require_database()
            result: T = self._run(self._database.transact, work, *args)
        except StoreNotReadyError as error:
            raise StoreNotReadyError(
                f"{self._database.shown} has no table {self._sql.table}, or does not exist: create "
                "the database, and call create() of a DeadLetterTable"
            ) from error
        return result

    def _run(self, work: Callable[..., T], *args: Any) -> T:
        if self._place not in (None, place()):
            self._database.drop_connections()
        self._place = place()
        return bounded(self._timeout, self._retried, work, *args)

    def _retried(self, work: Callable[..., T], *args: Any) -> T:
        attempts = 0
        while True:
            try:
                with attempt(self._timeout):
                    return work(*args)
            except Exception as error:
                failure = self._mapped(error)
            wait = None
            if isinstance(failure, StoreUnavailableError):
                wait = pause(attempts, seconds_left(), random.random())
            if wait is None:
                # Not raised above, where a hidden error would still be its context.
                raise failure
            sleep(wait)
            attempts += 1

    def _mapped(self, error: Exception) -> CheckpointStoreError:
        if isinstance(error, CheckpointStoreError):
            return error
        failure = self._database.map_error(error)
        if failure is None:
            failure = StoreError(f"{type(error).__name__}: {masked(str(error))}")
        failure.__cause__ = None if shows_secret(error) else error
        return failure
