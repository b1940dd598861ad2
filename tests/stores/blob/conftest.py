"""Blob stores of both variants on a real Azurite, called the same way."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from importlib import import_module
from typing import Any

import pytest
from azure.storage.blob import ContainerClient, generate_container_sas

from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY

OURS = {
    "sync": "eventhub_checkpoints.blob",
    "aio": "eventhub_checkpoints.aio.blob",
}
OFFICIAL = {
    "sync": "azure.eventhub.extensions.checkpointstoreblob",
    "aio": "azure.eventhub.extensions.checkpointstoreblobaio",
}
DRIVERS = {"sync": "azure.storage.blob", "aio": "azure.storage.blob.aio"}
REGISTRIES = {"sync": "eventhub_checkpoints.registry", "aio": "eventhub_checkpoints.aio.registry"}
LEAVE = {"sync": "__exit__", "aio": "__aexit__"}


@dataclass
class Variant:
    """One of sync and aio: its classes, and where its calls run."""

    name: str
    loop: Loop
    scope: Scope
    lean: bool = True
    opened: ExitStack = field(default_factory=ExitStack)

    @property
    def store(self) -> Any:
        """Our class, which sends requests itself, or through the driver."""
        ours = import_module(OURS[self.name]).BlobCheckpointStore
        return ours if self.lean else through_driver(ours)

    @property
    def official(self) -> Any:
        """The class of the official package."""
        return import_module(OFFICIAL[self.name]).BlobCheckpointStore

    @property
    def driver(self) -> Any:
        """The driver's container client."""
        return import_module(DRIVERS[self.name]).ContainerClient

    @property
    def open_store(self) -> Callable[..., Any]:
        """Our stores by URL."""
        ours = import_module(REGISTRIES[self.name]).open_store
        return ours if self.lean else partial(ours, lean=False)

    def client(self, store: Any, scope: Scope | None = None) -> Client:
        """The store in the hands of a client; it is closed after the test."""
        client = Client(store, scope or self.scope, self.loop)
        self.opened.callback(client.call, LEAVE[self.name], None, None, None)
        return client

    def open(self, container: Any, **settings: Any) -> Client:
        """A store of ours on a container."""
        text = container.connection_string
        return self.client(self.store.from_connection_string(text, container.name, **settings))

    def open_official(self, container: Any) -> Client:
        """A store of the official package on a container."""
        text = container.connection_string
        return self.client(self.official.from_connection_string(text, container.name))

    def in_pages(self, container: Any, size: int) -> Callable[..., Any]:
        """For `connect=`: a client whose lists come in pages of this size."""

        class Paged(self.driver):
            def list_blobs(self, **kwargs: Any) -> Any:
                return super().list_blobs(results_per_page=size, **kwargs)

        text = container.connection_string
        return partial(Paged.from_connection_string, text, container.name)

    def finished(self, result: Any) -> Any:
        """What a call of the driver comes to."""
        return self.loop.finished(result)


@cache
def through_driver(store: type) -> type:
    """The class with `lean=False` as its default."""

    class ThroughDriver(store):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{"lean": False, **kwargs})

    return ThroughDriver


@pytest.fixture(params=["sync", "aio", "sync-driver", "aio-driver"])
def variant(request: pytest.FixtureRequest, loop: Loop, scope: Scope) -> Iterator[Variant]:
    name, _, path = request.param.partition("-")
    made = Variant(name, loop, scope, lean=not path)
    with made.opened:
        yield made


@pytest.fixture
def raw(blob_container: Any) -> Iterator[ContainerClient]:
    """The container as another program sees it."""
    with blob_container.client() as client:
        yield client


@pytest.fixture
def empty(raw: ContainerClient) -> Callable[[], None]:
    """Deletes every blob."""

    def delete() -> None:
        for name in raw.list_blob_names():
            raw.delete_blob(name)

    return delete


@pytest.fixture
def proxied(blob_container: Any, proxy: Any) -> Any:
    """The container behind the fault proxy."""
    return blob_container.through(proxy.endpoint)


@pytest.fixture
def client(variant: Variant, blob_container: Any) -> Client:
    """A store of ours, straight on Azurite."""
    return variant.open(blob_container)


@pytest.fixture
def watched(variant: Variant, proxied: Any) -> Client:
    """A store of ours behind the fault proxy."""
    return variant.open(proxied)


@pytest.fixture
def rival(variant: Variant, blob_container: Any) -> Client:
    """Another client's store, past the proxy."""
    return variant.open(blob_container)


@pytest.fixture
def sas(blob_container: Any) -> Callable[[str], str]:
    """Makes a signature with so few rights."""

    def make(permission: str) -> str:
        return generate_container_sas(
            EMULATOR_ACCOUNT,
            blob_container.name,
            account_key=EMULATOR_KEY,
            permission=permission,
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )

    return make
