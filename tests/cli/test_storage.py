"""Where the demo keeps its checkpoints: checks beforehand, and what is left afterwards."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends import Backend
from eventhub_checkpoints import open_store
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.cli.demo import storage as storage_module
from eventhub_checkpoints.cli.demo.programs import Addresses
from eventhub_checkpoints.cli.demo.stage import Servers
from eventhub_checkpoints.cli.demo.storage import SqliteFile, Storage
from eventhub_checkpoints.cli.demo.story import what_to_try
from eventhub_checkpoints.errors import (
    ConfigurationError,
    StoreAccessError,
    StoreError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import LIMIT

OTHERS = Scope("ns.servicebus.windows.net", "orders", "$default")
OURS = Scope("127.0.0.1:5672", "Orders-0123", "$Default")
REACHED_BY_PROCESSES = ["blob", "table", "sqlite", "postgres", "redis", "cassandra"]


def save(url: str, scope: Scope, number: int) -> None:
    """Own a partition and checkpoint it, as a consumer does."""
    row = scope.as_dict() | {"partition_id": "0"}
    with open_store(url) as store:
        assert store.claim_ownership([row | {"owner_id": "somebody"}])
        store.update_checkpoint(row | {"offset": "1", "sequence_number": number})


@pytest.mark.parametrize("name", REACHED_BY_PROCESSES)
def test_a_users_store_gets_what_is_missing_and_loses_the_rows_of_the_demo_only(
    name: str, servers: Callable[[str], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "ANSWER_SECONDS", LIMIT)
    place = servers(name).place()
    try:
        storage = Storage(place.url, "aio")
        storage.prepare()
        save(place.url, OTHERS, 3)
        with ExitStack() as stack:
            url = storage.start(stack, OURS)
            save(url, OURS, 7)
            assert storage.checkpoints(OURS) == {"0": 7}
        with open_store(place.url) as store:
            assert store.list_scopes() == [OTHERS]
            assert store.list_checkpoints(**OTHERS.as_dict())[0]["sequence_number"] == 3
            assert store.list_ownership(**OTHERS.as_dict())[0]["owner_id"] == "somebody"
    finally:
        place.drop()


def test_the_file_of_the_demo_is_read_past_every_store(tmp_path: Path) -> None:
    storage = SqliteFile(tmp_path, "sync")
    storage.prepare()
    with ExitStack() as stack:
        url = storage.start(stack, OURS)
        assert storage.checkpoints(OURS) == {}
        save(url, OURS, 7)
        save(url, OTHERS, 3)
        assert storage.checkpoints(OURS) == {"0": 7}
        assert str(tmp_path / "checkpoints.db") in storage.source


def test_what_to_try_shows_no_secret_and_no_suite_for_a_store_of_the_users() -> None:
    url = "postgresql://me:hushhush@db.example.org/orders"
    commands = "\n".join(what_to_try(Servers(Addresses("hub", url), Storage(url, "sync"))))
    assert "hushhush" not in commands
    assert "export CHECKPOINT_STORE=...  # the value of --store" in commands
    assert "conformance" not in commands


def refuse(*_: object) -> int:
    raise StoreAccessError("the role lacks a right")


def test_who_may_not_delete_does_not_write_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/mine.db"
    with SqlCheckpointStore(url, create_tables=True) as store:
        assert store.list_scopes() == []
        with monkeypatch.context() as patched:
            patched.setattr(SqlCheckpointStore, "delete_rows", refuse)
            with pytest.raises(StoreAccessError):
                Storage(url, "sync").prepare()
        assert store.list_scopes() == []


def test_who_may_not_create_can_use_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/mine.db"
    monkeypatch.setattr(SqlCheckpointStore, "create", refuse)
    with pytest.raises(StoreAccessError):
        Storage(url, "sync").prepare()
    with SqlCheckpointStore(url, create_tables=True) as store:
        assert store.list_scopes() == []
    Storage(url, "sync").prepare()


def test_rows_that_cannot_be_removed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(f"sqlite:///{tmp_path}/mine.db", "sync")
    storage.prepare()
    stack = ExitStack()
    storage.start(stack, OURS)
    monkeypatch.setattr(SqlCheckpointStore, "delete_rows", refuse)
    with pytest.raises(StoreError) as raised:
        stack.close()
    assert f"under {OURS}: the role lacks a right" in str(raised.value)


class WithoutAbilities(BaseCheckpointStore):
    """A store of a user's own that only does what a client asks for."""

    read_ownerships = read_checkpoints = try_claim = write_checkpoint = refuse  # type: ignore


def test_a_store_that_does_not_delete_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = SimpleNamespace(make=WithoutAbilities)
    monkeypatch.setitem(sys.modules, "stores_of_mine", module)
    with pytest.raises(ConfigurationError, match="WithoutAbilities does not delete"):
        Storage("stores_of_mine:make", "sync").prepare()


def test_a_store_in_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="in one process"):
        Storage("memory:demo", "sync").prepare()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hushhush@127.0.0.1:1/db?password=hushhush",
        "redis://me:hushhush@127.0.0.1:1/0?password=hushhush",
        "cassandra://me:hushhush@127.0.0.1:1/keyspace",
        "https://127.0.0.1:1/devstoreaccount1/container?sig=hushhush",
        "table+https://127.0.0.1:1/devstoreaccount1/table?sig=hushhush",
    ],
    ids=lambda url: url.partition(":")[0],
)
def test_an_unreachable_server_is_reported_soon_and_without_a_secret(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "ANSWER_SECONDS", 0.5)
    storage = Storage(url, "sync")
    with pytest.raises(StoreError) as raised:
        storage.prepare()
    assert "hushhush" not in f"{storage.source} {raised.value}"
