"""Storage of the demo's checkpoints: a file, Azurite, or a store of the user."""

import asyncio
import sqlite3
import sys
import uuid
from abc import ABC, abstractmethod
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from azure.core.exceptions import AzureError

from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.abilities import Deletes
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.cli.azurite import Azurite
from eventhub_checkpoints.errors import ConfigurationError, StoreError, StoreNotReadyError
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import shown

ANSWER_SECONDS = 15.0
"""Timeout of a server in seconds; a cluster creates tables slowly."""

ROWS = "SELECT partition_id, sequence_number FROM eventhub_checkpoints_checkpoint"
OF_SCOPE = "fully_qualified_namespace = ? AND eventhub_name = ? AND consumer_group = ?"

API_VERSION = "2019-07-07"
"""API version of Blob storage: a running emulator may not support a newer one."""

AZURITE = "azurite"
"""Value of `--store` that is not a URL."""


class Storage(ABC):
    """Storage of the checkpoints.

    Attributes:
        source: human-readable description, without secrets.
        look: a command that shows the stored rows; None if there is none.
        is_own: whether only the demo uses it, so that the user may experiment with it.
    """

    source: str
    look: str | None = None
    is_own = True

    @abstractmethod
    def prepare(self) -> None:
        """Check that it can be used, before anything is started; raises `CheckpointStoreError`."""

    @abstractmethod
    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Prepare it for the rows of a scope, and return its URL.

        The stack stops what is started here, and removes what the demo stores.
        """

    @abstractmethod
    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Return the stored sequence number of each partition's checkpoint."""


class UserStorage(Storage):
    """Store of the user, from which the demo removes only its own rows at the end.

    Created containers and tables are kept: they may be in use by then.
    """

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


class SqliteFile(UserStorage):
    """SQLite file in the demo's folder: needs no installation and no server."""

    is_own = True

    def __init__(self, folder: Path, consumer: str) -> None:
        self._path = folder / "checkpoints.db"
        super().__init__(f"sqlite:///{self._path}", consumer)
        self.source = f"the SQLite file {self._path}"
        rows = f"sqlite3.connect('{self._path}').execute('{ROWS}')"
        self.look = f"{sys.executable} -c \"import sqlite3; print(*{rows}, sep='\\n')\""

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read from the file; `docs/sql.md` describes its tables.

        Not through this package's store, because the demo is to verify that store.
        """
        read_only = f"{self._path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(read_only, uri=True)) as connection:
            return dict(connection.execute(f"{ROWS} WHERE {OF_SCOPE}", tuple(scope.folded)))


class AzuriteStorage(Storage):
    """Azurite, started here or by the user, with a container for this demo.

    Raises:
        AzuriteMissingError: Azurite cannot be run on this machine.
    """

    _container: Any

    def __init__(self) -> None:
        self._azurite = Azurite()
        self.source = f"Azurite, {self._azurite.source}"

    def prepare(self) -> None:
        """Download Azurite, unless it is installed."""
        self._azurite.install()

    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Start Azurite and create a container in it."""
        # Imported here: it needs the extra `blob`, which no other storage of the demo does.
        from azure.storage.blob import ContainerClient

        # Before the start, so that no exception can come between.
        stack.callback(self._azurite.stop)
        self._azurite.start()
        self._container = stack.enter_context(
            ContainerClient.from_connection_string(
                self._azurite.connection_string,
                f"demo-{uuid.uuid4().hex[:8]}",
                api_version=API_VERSION,
                retry_total=1,
            )
        )
        self._container.create_container()
        stack.callback(self._delete)
        return f"{self._azurite.endpoint}/{self._container.container_name}"

    def _delete(self) -> None:
        # The user's emulator keeps running. One that has died has nothing to delete.
        with suppress(AzureError):
            self._container.delete_container()

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read from the blobs.

        Not through this package's store, because the demo is to verify that store.
        """
        stored = {}
        for blob in self._container.list_blobs(include=["metadata"]):
            *_, kind, partition = blob.name.split("/")
            if kind == "checkpoint":
                stored[partition] = int(blob.metadata["sequencenumber"])
        return stored


def storage_of(store: str | None, consumer: str, folder: Path) -> Storage:
    """Return the storage that `--store` names.

    Args:
        store: `azurite` or a URL; None for a SQLite file in `folder`.
        consumer: the client that the consumers use.
        folder: the demo's folder.
    """
    if store == AZURITE:
        return AzuriteStorage()
    return SqliteFile(folder, consumer) if store is None else UserStorage(store, consumer)
