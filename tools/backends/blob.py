"""Blob Storage on Azurite."""

import uuid
from contextlib import suppress
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient

from azurite import BLOB
from backends.azurite_server import AzuriteServer
from backends.base import Fields, Kind, Place
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY


class BlobPlace(Place):
    """Container of an emulator, for a store with or without a prefix."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self.url = f"{url}?prefix={prefix}" if prefix else url
        self._before = f"{prefix}/" if prefix else ""
        self._container = ContainerClient.from_container_url(url, credential=EMULATOR_KEY)

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        name = f"{self._before}{scope.folded}/{kind}/{partition_id}"
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


class Blob(AzuriteServer):
    """Azurite's service of blobs."""

    name = "blob"
    service = BLOB
    variable = BLOB.variable

    def place(self) -> Place:
        return BlobPlace(f"{self.azurite.endpoint}/test-{uuid.uuid4().hex}")
