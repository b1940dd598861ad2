"""Stores by a mapping, in both variants: on every backend, and classes of others."""

import asyncio
import logging
import sys
import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from inspect import iscoroutine
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, StoreNotReadyError, aio, open_store

SECRET = "c2VjcmV0"
NAMES = {
    "fully_qualified_namespace": "ns.servicebus.windows.net",
    "eventhub_name": "orders",
    "consumer_group": "$Default",
}
CHECKPOINT = {**NAMES, "partition_id": "0", "offset": "1", "sequence_number": 1}
MODULE = "stores_of_a_test"
STORES = """
from eventhub_checkpoints import MemoryCheckpointStore, aio

class Store(MemoryCheckpointStore):
    def __init__(self, *, namespace="default", credential=None, **settings):
        super().__init__(**settings)
        self.opened = namespace, credential

class AioStore(aio.MemoryCheckpointStore):
    def __init__(self, *, namespace="default", credential=None, **settings):
        super().__init__(**settings)
        self.opened = namespace, credential

class Plain:
    def list_ownership(self, *names): ...
    def claim_ownership(self, rows): ...
    def list_checkpoints(self, *names): ...
    def update_checkpoint(self, row): ...
"""

Open = Callable[..., Any]
BOTH: list[Any] = [open_store, aio.open_store]
CLASSES = [(open_store, f"{MODULE}.Store"), (aio.open_store, f"{MODULE}.AioStore")]


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An importable module with stores of somebody else."""
    (tmp_path / f"{MODULE}.py").write_text(STORES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, MODULE, None)
    monkeypatch.delitem(sys.modules, MODULE)


async def answer(value: Any) -> Any:
    return await value if iscoroutine(value) else value


def saved_and_listed(open_it: Open, mapping: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Save with one store, list with another that the same mapping opens."""

    async def run() -> Any:
        first, second = open_it(mapping), open_it(mapping)
        try:
            await answer(first.update_checkpoint(CHECKPOINT))
            return await answer(second.list_checkpoints(*NAMES.values()))
        finally:
            await answer(first.close())
            await answer(second.close())

    return asyncio.run(run())


@pytest.mark.parametrize("open_it", BOTH)
def test_a_memory_store_of_a_name_is_shared(open_it: Open) -> None:
    mapping = {"backendType": "memory", "namespace": uuid.uuid4().hex, "create": True}
    assert saved_and_listed(open_it, mapping) == [CHECKPOINT]


@pytest.mark.parametrize("open_it", BOTH)
def test_a_container_is_created_and_used(open_it: Open, azurite: Any) -> None:
    mapping = {
        "backendType": "AzureBlob",
        "namespace": f"test-{uuid.uuid4().hex}",
        "create": True,
        "azureblob": {"useEmulator": True, "endpoint": azurite.endpoint},
    }
    assert saved_and_listed(open_it, mapping) == [CHECKPOINT]


@pytest.mark.parametrize("open_it", BOTH)
def test_an_account_and_its_key_open_a_container(open_it: Open, blob_container: Any) -> None:
    account, key = account_of(blob_container.connection_string)
    mapping = {
        "backendType": "AzureBlob",
        "namespace": blob_container.name,
        "azureblob": {"account": account, "key": key, "endpoint": blob_container.endpoint},
    }
    assert saved_and_listed(open_it, mapping) == [CHECKPOINT]


@pytest.fixture
def made(servers: Any) -> Iterator[Callable[[str], Any]]:
    """Gives a place on a backend, with nothing created yet."""
    with ExitStack() as places:

        def place(name: str) -> Any:
            found = servers(name).place()
            places.callback(found.drop)
            return found

        yield place


@pytest.mark.parametrize("open_it", BOTH)
def test_tables_in_sqlite_are_created_and_used(open_it: Open, made: Any) -> None:
    place = made("sqlite")
    mapping = {"backendType": "Sql", "namespace": "mine", "sql": {"url": place.url}}
    assert saved_and_listed(open_it, {**mapping, "create": True}) == [CHECKPOINT]
    assert place.execute("SELECT sequence_number FROM mine_checkpoint") == [(1,)]


@pytest.mark.parametrize("open_it", BOTH)
def test_tables_in_a_schema_of_postgresql_are_created_and_used(open_it: Open, made: Any) -> None:
    place = made("postgres")
    schema = place.tables.schema
    mapping = {
        "backendType": "Sql",
        "namespace": "mine",
        "create": True,
        "sql": {"url": place.url.partition("?")[0], "schema": schema, "password": SECRET},
    }
    assert saved_and_listed(open_it, mapping) == [CHECKPOINT]
    assert place.execute(f"SELECT sequence_number FROM {schema}.mine_checkpoint") == [(1,)]


@pytest.mark.parametrize("open_it", BOTH)
def test_keys_in_redis_begin_with_the_namespace(open_it: Open, made: Any) -> None:
    place = made("redis")
    mapping = {
        "backendType": "Redis",
        "namespace": place.namespace,
        "redis": {"url": place.url.partition("?")[0]},
    }
    assert saved_and_listed(open_it, mapping) == [CHECKPOINT]
    assert list(place.rows("checkpoint")) == ["0"]


@pytest.mark.parametrize("open_it", BOTH)
def test_a_keyspace_is_created_under_the_name_that_iothub_react_gave_it(
    open_it: Open, made: Any
) -> None:
    place = made("cassandra")
    mapping = {
        "backendType": "Cassandra",
        "namespace": place.keyspace.replace("_", "-").upper(),
        "create": True,
        "rwTimeout": "60s",
        "cassandra": {
            "cluster": place.url.removeprefix("cassandra://").partition("/")[0],
            "replicationFactor": 1,
        },
    }
    assert saved_and_listed(open_it, mapping) == [CHECKPOINT]
    assert list(place.rows("checkpoint")) == ["0"]


@pytest.mark.parametrize("open_it", BOTH)
def test_nothing_is_created_unless_it_is_said(open_it: Open, made: Any) -> None:
    mapping = {"backendType": "Sql", "sql": {"url": made("sqlite").url}}
    with pytest.raises(StoreNotReadyError):
        saved_and_listed(open_it, mapping)


def account_of(connection_string: str) -> tuple[str, str]:
    parts = dict(part.partition("=")[::2] for part in connection_string.split(";"))
    return parts["AccountName"], parts["AccountKey"]


@pytest.mark.parametrize("open_it", BOTH)
def test_a_table_of_a_file_opens_a_store(open_it: Open) -> None:
    text = 'backendType = "Memory"\nrwTimeout = "2s"\n[settings]\nmax_concurrency = 3\n'
    settings = open_it(tomllib.loads(text)).settings
    assert (settings.operation_timeout, settings.write_timeout) == (2.0, 2.0)
    assert settings.max_concurrency == 3


@pytest.mark.parametrize("open_it", BOTH)
def test_any_mapping_will_do(open_it: Open) -> None:
    assert open_it(MappingProxyType({"backendType": "Memory"}), write_timeout=3)


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize(("open_it", "path"), CLASSES)
def test_a_class_of_others_gets_what_was_given(open_it: Open, path: str) -> None:
    store = open_it({"backendType": path})
    assert store.opened == ("default", None)
    mapping = {"backendType": path, "namespace": "mine", "settings": {"write_timeout": 3}}
    store = open_it({**mapping, "create": True}, credential=SECRET, max_concurrency=2)
    assert store.opened == ("mine", SECRET)
    assert (store.settings.write_timeout, store.settings.max_concurrency) == (3, 2)
    assert store.creates


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize("open_it", BOTH)
def test_a_class_of_the_other_variant_names_the_other_function(open_it: Open) -> None:
    path = next(path for other, path in CLASSES if other is not open_it)
    with pytest.raises(ConfigurationError, match=rf"{MODULE}\.\w*Store makes an? \w+ store; open"):
        open_it({"backendType": path})


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (
            {"backendType": "no_such.package.Store"},
            "backendType 'no_such.package.Store' names no store and cannot be imported (No module "
            "named 'no_such'); expected ",
        ),
        (
            {"backendType": f"{MODULE}.Missing"},
            f"backendType '{MODULE}.Missing' names no store and cannot be imported (module ",
        ),
        ({"backendType": "os.sep"}, "os:sep is not callable; expected a factory of a "),
        ({"backendType": "os.getcwd"}, "os.getcwd returned str; expected a checkpoint store"),
        (
            {"backendType": "os.getcwd", "create": True},
            "create is true, but os.getcwd cannot create anything",
        ),
        (
            {"backendType": f"{MODULE}.Plain", "create": True},
            f"create is true, but {MODULE}.Plain cannot create anything",
        ),
        (
            {"backendType": f"{MODULE}.Plain", "namespace": "mine", "rwTimeout": "5s"},
            f"{MODULE}.Plain could not be called with namespace, operation_timeout, write_timeout",
        ),
        (
            {"backendType": f"{MODULE}.Store", "settings": {"write_timout": 5}},
            "write_timout is not a setting of Store; expected one of write_timeout, ",
        ),
    ],
)
def test_a_class_that_is_none_or_cannot_be_made_is_named(mapping: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_store(mapping)
    assert str(failure.value).startswith(said)


@pytest.mark.parametrize("open_it", BOTH)
def test_a_lease_is_warned_of_once(open_it: Open, caplog: pytest.LogCaptureFixture) -> None:
    mapping = {
        "backendType": "AzureBlob",
        "namespace": "positions",
        "azureblob": {"useEmulator": True, "lease": "15s"},
    }

    async def opened_and_closed() -> None:
        await answer(open_it(mapping).close())

    with caplog.at_level(logging.WARNING, "eventhub_checkpoints"):
        asyncio.run(opened_and_closed())
    assert [record.getMessage() for record in caplog.records] == [
        "azureblob.lease is ignored: writes are conditional here, leases are not needed"
    ]


@pytest.mark.parametrize("open_it", BOTH)
def test_what_is_neither_text_nor_mapping_hears_of_both(open_it: Open) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_it(["backendType", "Memory"])
    assert str(failure.value) == (
        "the store URL is of type list; expected a string such as "
        "https://ACCOUNT.blob.core.windows.net/CONTAINER, or a mapping with backendType; "
        "is the environment variable set?"
    )


@pytest.mark.parametrize("open_it", BOTH)
def test_a_key_is_in_no_text_of_the_store(open_it: Open) -> None:
    mapping = {
        "backendType": "AzureBlob",
        "namespace": "positions",
        "azureblob": {"account": "orders", "key": SECRET},
    }

    async def texts() -> str:
        store = open_it(mapping)
        try:
            return f"{store!r} {store} {vars(store)}"
        finally:
            await answer(store.close())

    assert SECRET not in asyncio.run(texts())
