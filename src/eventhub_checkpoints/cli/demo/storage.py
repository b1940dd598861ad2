"""Where the demo keeps its checkpoints: a file, Azurite, or a store of the user's."""

import asyncio
import sqlite3
import sys
import uuid
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Protocol

from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient

from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.abilities import Deletes
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.cli.azurite import Azurite
from eventhub_checkpoints.errors import ConfigurationError, StoreError, StoreNotReadyError
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import shown

ANSWER_SECONDS = 15.0
"""How long a server may be silent before the demo says so; a cluster creates tables slowly."""

ROWS = "SELECT partition_id, sequence_number FROM eventhub_checkpoints_checkpoint"
OF_SCOPE = "fully_qualified_namespace = ? AND eventhub_name = ? AND consumer_group = ?"


class GivenStorage:
    """A store of the user's, where the demo removes its own rows in the end and nothing else.

    What it had to create stays: containers and tables may be in use by then.
    """

    look: str | None = None
    is_own = False
    _reader: BaseCheckpointStore

    def __init__(self, url: str, consumer: str) -> None:
        self.source = shown(url)
        self._url, self._consumer = url, consumer

    def prepare(self) -> None:
        """Create what is missing, and show that rows can be written, read and deleted there."""
        rehearsal = Scope("ehcp-demo", f"rehearsal-{uuid.uuid4().hex[:12]}", "$Default")
        with self._opened() as store:
            if isinstance(store, MemoryCheckpointStore):
                raise ConfigurationError("its rows are in one process, and the consumers are two")
            # First, for who may not delete shall not write either.
            self._delete_or_create(store, rehearsal)
            row = {"partition_id": "0", "offset": "", "sequence_number": 0}
            try:
                store.update_checkpoint(rehearsal.as_dict() | row)
            finally:  # Ctrl-C too
                self._remover(store).delete_scope(*rehearsal)
        if self._consumer == "aio":
            asyncio.run(self._ask_as_the_consumers_will(rehearsal))

    def _delete_or_create(self, store: BaseCheckpointStore, scope: Scope) -> None:
        try:
            self._remover(store).delete_scope(*scope)
        except StoreNotReadyError:
            # Only now: who may not create can use what somebody else has created.
            store.create()
            self._remover(store).delete_scope(*scope)

    async def _ask_as_the_consumers_will(self, scope: Scope) -> None:
        # It has a driver of its own, which may be missing where the other one is not.
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
        """Open a store to read with, and see to it that the rows are removed."""
        stack.callback(self._remove, scope)
        self._reader = stack.enter_context(self._opened())
        return self._url

    def _remove(self, scope: Scope) -> None:
        try:
            # A new one: a signal may have ended the reader's last call in the middle.
            with self._opened() as store:
                self._remover(store).delete_scope(*scope)
        except StoreError as error:
            raise StoreError(
                f"the demo's rows are left in {self.source}, under {scope}: {error}"
            ) from error

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Asked through a second store: how to read past it, each kind of server has its own way.

        It shares no memory with the stores of the consumers, so that what it says is stored.
        """
        rows = self._reader.list_checkpoints(*scope)
        return {row["partition_id"]: row["sequence_number"] for row in rows}


class SqliteFile(GivenStorage):
    """A SQLite file in the demo's own folder: nothing to install, and no server."""

    is_own = True

    def __init__(self, folder: Path, consumer: str) -> None:
        self._path = folder / "checkpoints.db"
        super().__init__(f"sqlite:///{self._path}", consumer)
        self.source = f"the SQLite file {self._path}"
        rows = f"sqlite3.connect('{self._path}').execute('{ROWS}')"
        self.look = f"{sys.executable} -c \"import sqlite3; print(*{rows}, sep='\\n')\""

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read from the file; `docs/sql.md` describes its tables.

        Past our store on purpose: the demo does not ask the witness that is on trial.
        """
        read_only = f"{self._path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(read_only, uri=True)) as connection:
            return dict(connection.execute(f"{ROWS} WHERE {OF_SCOPE}", tuple(scope.folded)))


API_VERSION = "2019-07-07"
"""The one that the store speaks: an emulator that runs already may know no newer one."""


class AzuriteStorage:
    """Azurite, whoever runs it, with a container for this demo.

    Raises:
        AzuriteMissingError: there is no way to an Azurite on this machine.
    """

    look: str | None = None
    is_own = True
    _container: ContainerClient

    def __init__(self) -> None:
        self._azurite = Azurite()
        self.source = f"Azurite, {self._azurite.source}"

    def prepare(self) -> None:
        """Fetch Azurite, if it is not here yet."""
        self._azurite.install()

    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Start Azurite and create a container in it."""
        # First, so that nothing can come between the start and this.
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
        # An emulator that ran before goes on after. One that has died has nothing to delete.
        with suppress(AzureError):
            self._container.delete_container()

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read from the blobs.

        Past our store on purpose: the demo does not ask the witness that is on trial.
        """
        found = {}
        for blob in self._container.list_blobs(include=["metadata"]):
            *_, kind, partition = blob.name.split("/")
            if kind == "checkpoint":
                found[partition] = int(blob.metadata["sequencenumber"])
        return found


AZURITE = "azurite"
"""What `--store` takes besides URLs."""


class Storage(Protocol):
    """What holds the checkpoints.

    Attributes:
        source: what it is, for a human; no secret.
        look: a command that shows what is stored; None where there is none.
        is_own: whether it is the demo's alone, so that the user may try things on it.
    """

    source: str
    look: str | None
    is_own: bool

    def prepare(self) -> None:
        """Find out what is missing, before anything is started.

        Raises:
            CheckpointStoreError: it cannot be used.
        """

    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Make it ready for the rows of a scope, and return its URL.

        Args:
            stack: ends what is started here, and removes what the demo stores.
            scope: the hub and the consumer group of this demo.
        """

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """The sequence number of each partition's checkpoint, as it is stored."""


def chosen(store: str | None, consumer: str, folder: Path) -> Storage:
    """The storage that `--store` names.

    Args:
        store: `azurite` or a URL; None for a SQLite file in `folder`.
        consumer: the client that the consumers use.
        folder: the demo's own.

    Raises:
        MissingDriverError: its driver is not installed.
    """
    # Each needs its driver, and a demo needs the one that it uses.
    if store == AZURITE:
        from eventhub_checkpoints.cli.demo.storage import AzuriteStorage

        return AzuriteStorage()
    from eventhub_checkpoints.cli.demo.storage import GivenStorage, SqliteFile

    return SqliteFile(folder, consumer) if store is None else GivenStorage(store, consumer)
