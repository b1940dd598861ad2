"""Storage of the demo's checkpoints: a file, or a store of the user."""

import asyncio
import sqlite3
import sys
import uuid
from contextlib import ExitStack, closing
from pathlib import Path

from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.abilities import Deletes
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import ConfigurationError, StoreError, StoreNotReadyError
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import shown

ANSWER_SECONDS = 15.0
"""Timeout of a server in seconds; a cluster creates tables slowly."""

ROWS = "SELECT partition_id, sequence_number FROM eventhub_checkpoints_checkpoint"
OF_SCOPE = "fully_qualified_namespace = ? AND eventhub_name = ? AND consumer_group = ?"


class Storage:
    """Store of the user, from which the demo removes only its own rows at the end.

    Created containers and tables are kept: they may be in use by then.

    Attributes:
        source: human-readable description, without secrets.
        look: a command that shows the stored rows; None if there is none.
        is_own: whether only the demo uses it, so that the user may experiment with it.
    """

    look: str | None = None
    is_own = False
    _reader: BaseCheckpointStore

    def __init__(self, url: str, consumer: str) -> None:
        self.source = shown(url)
        self._url, self._consumer = url, consumer

    def prepare(self) -> None:
        """Create what is missing, and check that rows can be written, read and deleted."""
        rehearsal = Scope("ehcp-demo", f"rehearsal-{uuid.uuid4().hex[:12]}", "$Default")
        with self._opened() as store:
            if isinstance(store, MemoryCheckpointStore):
                raise ConfigurationError("its rows are in one process, but there are two consumers")
            # First, so that nothing is written without the privilege to delete it.
            self._delete_or_create(store, rehearsal)
            row = {"partition_id": "0", "offset": "", "sequence_number": 0}
            try:
                store.update_checkpoint(rehearsal.as_dict() | row)
            finally:  # Ctrl-C too
                self._remover(store).delete_scope(*rehearsal)
        if self._consumer == "aio":
            asyncio.run(self._list_as_the_consumers_will(rehearsal))

    def _delete_or_create(self, store: BaseCheckpointStore, scope: Scope) -> None:
        try:
            self._remover(store).delete_scope(*scope)
        except StoreNotReadyError:
            # Only if needed: the user may lack the privilege to create tables that exist already.
            store.create()
            self._remover(store).delete_scope(*scope)

    async def _list_as_the_consumers_will(self, scope: Scope) -> None:
        # The aio store has another driver, which may be missing.
        store = aio.open_store(self._url, operation_timeout=ANSWER_SECONDS)
        async with store:
            await store.list_checkpoints(*scope)

    def _opened(self) -> BaseCheckpointStore:
        return open_store(self._url, operation_timeout=ANSWER_SECONDS)

    def _remover(self, store: BaseCheckpointStore) -> Deletes:
        if not isinstance(store, Deletes):
            raise ConfigurationError(
                f"{type(store).__name__} does not delete (see eventhub_checkpoints.abilities), "
                "and the demo has to remove its rows in the end"
            )
        return store

    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Open a store to read from, and register the removal of the rows."""
        stack.callback(self._remove, scope)
        self._reader = stack.enter_context(self._opened())
        return self._url

    def _remove(self, scope: Scope) -> None:
        try:
            # A new store: a signal may have interrupted the reader's last call.
            with self._opened() as store:
                self._remover(store).delete_scope(*scope)
        except StoreError as error:
            raise StoreError(
                f"the demo's rows are left in {self.source}, under {scope}: {error}"
            ) from error

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read through a second store, because direct access differs between servers.

        It shares no memory with the stores of the consumers, so it returns what is really stored.
        """
        rows = self._reader.list_checkpoints(*scope)
        return {row["partition_id"]: row["sequence_number"] for row in rows}


class SqliteFile(Storage):
    """SQLite file in the demo's folder: needs no installation and no server."""

    is_own = True

    def __init__(self, folder: Path, consumer: str) -> None:
        self._path = folder / "checkpoints.db"
        super().__init__(f"sqlite:///{self._path}", consumer)
        self.source = f"SQLite, {self._path}"
        rows = f"sqlite3.connect('{self._path}').execute('{ROWS}')"
        self.look = f"{sys.executable} -c \"import sqlite3; print(*{rows}, sep='\\n')\""

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read from the file; `docs/reference/sql.md` describes its tables.

        Not through this package's store, because the demo is to verify that store.
        """
        read_only = f"{self._path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(read_only, uri=True)) as connection:
            return dict(connection.execute(f"{ROWS} WHERE {OF_SCOPE}", tuple(scope.folded)))


def storage_of(store: str | None, consumer: str, folder: Path) -> Storage:
    """Return the storage that `--store` names.

    Args:
        store: a URL; None for a SQLite file in `folder`.
        consumer: the client that the consumers use.
        folder: the demo's folder.
    """
    return SqliteFile(folder, consumer) if store is None else Storage(store, consumer)
