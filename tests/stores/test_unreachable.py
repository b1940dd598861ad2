"""Servers that cannot be reached: every store says what happened, where, and what to do."""

import importlib
import socket
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.records import Scope

SECRET = "c2VjcmV0"
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
REGISTRIES = {"sync": "eventhub_checkpoints.registry", "aio": "eventhub_checkpoints.aio.registry"}
URLS = {
    "blob": "http://{place}/devstoreaccount1/container",
    "blob with a SAS": "https://{place}/devstoreaccount1/container?sv=2022-11-02&sig={secret}",
    "postgresql": "postgresql://app:{secret}@{place}/checkpoints",
    "asyncpg": "postgresql+asyncpg://app:{secret}@{place}/checkpoints",
    "redis": "redis://app:{secret}@{place}/0",
    "rediss": "rediss://:{secret}@{place}/0",
    "cassandra": "cassandra://app:{secret}@{place}/checkpoints",
}
CASES = [
    (colour, name)
    for colour in REGISTRIES
    for name in URLS
    if (colour, name) != ("sync", "asyncpg")
]


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with Loop() as running:
        yield running


@pytest.fixture(scope="module")
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def failure(loop: Loop, colour: str, name: str, place: str) -> StoreUnavailableError:
    url = URLS[name].format(place=place, secret=SECRET)
    opened: Any = importlib.import_module(REGISTRIES[colour])
    store = opened.open_store(url, operation_timeout=1, write_timeout=1)
    client = Client(store, SCOPE, loop)
    try:
        with pytest.raises(StoreUnavailableError) as refused:
            client.call("list_checkpoints", *SCOPE)
    finally:
        client.close()
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    assert SECRET not in repr(store)
    return refused.value


@pytest.mark.parametrize(("colour", "name"), CASES)
def test_a_refused_port_is_named(colour: str, name: str, loop: Loop, closed_port: int) -> None:
    place = f"127.0.0.1:{closed_port}"
    said = str(failure(loop, colour, name, place))
    assert place in said
    assert "refused" in said
    assert "check host" in said
    assert "include=metadata" not in said


@pytest.mark.parametrize(("colour", "name"), CASES)
def test_a_name_that_does_not_resolve_is_named(colour: str, name: str, loop: Loop) -> None:
    place = "nosuch.invalid"
    said = str(failure(loop, colour, name, place))
    assert place in said
    assert "cannot be resolved" in said
    assert "DNS" in said
    assert "include=metadata" not in said
