"""Table of dead letters in a SQL database, a sink for `EventProcessor(on_poison=...)`."""

import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, TypeVar

from azure.eventhub import EventData
from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.client_check import ClosingContext
from eventhub_checkpoints._shared._async.compat import uninterrupted
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.settings import StoreSettings, require_seconds, require_text
from eventhub_checkpoints.dead_letters.dead_letter import (
    DeadLetter,
    StoredDeadLetter,
    all_stored,
    checked_stored,
    in_order,
)
from eventhub_checkpoints.errors import StoreNotReadyError
from eventhub_checkpoints.stores.sql import url as urls
from eventhub_checkpoints.stores.sql._async.engine import Engine
from eventhub_checkpoints.stores.sql._async.store import SqlCheckpointStore
from eventhub_checkpoints.stores.sql.dead_letters import DeadLetterStatements, values_of

T = TypeVar("T")


class DeadLetterTable(
    OfOneProcess, ClosingContext, pickle_instead="pass its URL, and create it in the other process"
):
    """Stores dead letters in a table, one row for each event of a consumer group.

    Args:
        url_or_engine: as for `SqlCheckpointStore`.
        namespace: as for it; the table is `NAMESPACE_dead_letters`.
        schema: as for it.
        credential: as for it.
        entra: as for it.
        timeout: seconds for each call, in which it is tried again if the database is unavailable.
        unreachable_timeout: as for it.

    Raises:
        ConfigurationError: an argument is invalid.
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
        timeout: float = 30.0,
        unreachable_timeout: float | None = None,
    ) -> None:
        require_seconds("timeout", timeout)
        settings: StoreSettings = {"operation_timeout": timeout, "write_timeout": timeout}
        if unreachable_timeout is not None:
            settings["unreachable_timeout"] = unreachable_timeout
        self._store = DeadLetterDatabase(
            url_or_engine,
            namespace=namespace,
            schema=schema,
            credential=credential,
            entra=entra,
            **settings,
        )
        self._sql = self._store.statements

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store.database.shown})"

    async def create(self) -> None:
        """Create the table unless it exists.

        Raises:
            StoreError: it could not be created.
        """
        await self._store.create()

    async def __call__(
        self, context: PartitionContext, event: EventData, error: BaseException
    ) -> None:
        """Store an event that could not be processed.

        Raises:
            StoreError: it could not be stored.
        """
        values = values_of(DeadLetter.of(context, event, error))
        await self._request(self._store.database.write, self._sql.record, values)

    async def dead_letters(self) -> list[StoredDeadLetter]:
        """Return the dead letters in the order of their times.

        Raises:
            StoreError: they could not be read.
        """
        rows = await self._request(self._store.database.rows, self._sql.dead_letters, {})
        return in_order(
            StoredDeadLetter(
                DeadLetter.from_json(text),
                None if redriven is None else datetime.fromtimestamp(redriven, UTC),
                hub,
            )
            for text, redriven, hub in rows
        )

    async def mark_redriven(self, stored: StoredDeadLetter, hub: str) -> None:
        """Record that a dead letter was sent to a hub, unless its event has failed again.

        Raises:
            StoreError: it could not be stored.
        """
        dead_letter = checked_stored(stored).dead_letter
        require_text("hub", hub, "the name of the hub that it was sent to")
        values = {
            "id": dead_letter.id,
            "time": dead_letter.time.timestamp(),
            "redriven_time": time.time(),
            "redriven_to": hub,
        }
        await self._request(self._store.database.write, (self._sql.mark,), values)

    async def discard(self, dead_letters: Iterable[StoredDeadLetter]) -> None:
        """Delete dead letters, except those that have failed again since they were read.

        Raises:
            StoreError: they could not be deleted.
        """
        for dead_letter in map(attrgetter("dead_letter"), all_stored(dead_letters)):
            values = {"id": dead_letter.id, "time": dead_letter.time.timestamp()}
            await self._request(self._store.database.write, (self._sql.delete,), values)

    async def close(self) -> None:
        """Close the engine and the credential that were created here."""
        await self._store.close()

    async def _request(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run a function in a transaction."""
        store = self._store
        try:
            result: T = await uninterrupted(store.settings.operation_timeout, store.run, work, args)
        except StoreNotReadyError as error:
            raise StoreNotReadyError(
                f"{store.database.shown} has no table {store.statements.table}, or does not exist: "
                "create the database, and call create() of a DeadLetterTable"
            ) from error
        return result


class DeadLetterDatabase(SqlCheckpointStore):
    """A database with another table, with the connections, retries and errors of a store."""

    def __init__(self, url_or_engine: str | Engine, **options: Any) -> None:
        super().__init__(url_or_engine, keep_history=False, **options)
        dialect = urls.DIALECTS[self.database.dialect]
        self.statements = DeadLetterStatements(self.database.tables, dialect)

    async def open(self) -> None:
        await self.database.close_left()
        if self.creates:
            await self.database.create_table(self.statements.create)

    async def run(self, work: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> T:
        # Each time: SQLite would create a file that was deleted, without the table.
        self.database.require_database()
        result: T = await self._engine.runner.request(self.database.transact, work, *args)
        return result
