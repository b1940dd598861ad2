"""Arrow batches of either variant with one face, the hub that they read, and their checkpoints.

The fixtures are those of `tests/receive/arrow` and `tests/consume`, which import them.
"""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from client_threads import wait_for_clients
from eventhub_checkpoints import (
    EventProcessor,
    MemoryCheckpointStore,
    Scope,
    aio,
    arrow,
    open_store,
)
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from waiting import LIMIT, eventually

__all__ = ["address", "busy_hub", "hub", "kept", "scope", "server", "text", "variant"]

ALL = {"0": [*range(100)], "1": [*range(100)], "2": [*range(10)]}
"""Sequence numbers of the events that the fixture `hub` has, by partition."""
FAST: dict[str, Any] = {
    "load_balancing_interval": 0.1,
    # No pause of a busy machine makes a live member look dead.
    "partition_ownership_expiration_interval": LIMIT,
    "max_wait": 0.0,
}
"""Settings of members that need not wait for one another."""
PATHS = pytest.mark.parametrize(
    ("variant", "receive_path"), [("sync", "fast"), ("aio", "public")], indirect=["variant"]
)
"""Both paths, which both variants use in the same way: each runs with one of them."""
STORES = pytest.mark.parametrize(
    ("variant", "kept"), [("sync", "sqlite"), ("aio", "memory")], indirect=True
)
"""Both kinds of stores, likewise."""


class Sync:
    """Synchronous batches, as they are."""

    is_async = False
    read_batches = staticmethod(arrow.read_batches)
    consume_batches = staticmethod(arrow.consume_batches)
    client = arrow.BatchConsumerClient
    memory_store = MemoryCheckpointStore
    processor = EventProcessor
    open_store = staticmethod(open_store)

    def finished(self, result: Any) -> Any:
        """Return the result of a call."""
        return result

    def close(self, store: Any) -> None:
        store.close()

    def inner(self, batches: Any) -> Any:
        """Return what users have."""
        return batches


class Aio:
    """Those of aio with the face of the others, in an event loop.

    Args:
        run: runs a coroutine there, and returns its result.
    """

    is_async = True
    client = aio_arrow.BatchConsumerClient
    memory_store = aio.MemoryCheckpointStore
    processor = aio.EventProcessor
    open_store = staticmethod(aio.open_store)

    def __init__(self, run: Callable[..., Any]) -> None:
        self.finished = run

    def read_batches(self, *args: Any, **kwargs: Any) -> "AioBatches":
        return AioBatches(self.finished, aio_arrow.read_batches(*args, **kwargs))

    def consume_batches(self, *args: Any, **kwargs: Any) -> "AioBatches":
        return AioBatches(self.finished, aio_arrow.consume_batches(*args, **kwargs))

    def close(self, store: Any) -> None:
        self.finished(store.close())

    def inner(self, batches: "AioBatches") -> Any:
        """Return what users have."""
        return batches.inner


class AioBatches:
    """Batches of aio that are iterated over as those of the other variant."""

    def __init__(self, run: Callable[..., Any], inner: Any) -> None:
        self._run = run
        self.inner = inner
        self.schema = inner.schema

    @property
    def lost(self) -> dict[str, int]:
        """Return what the last commit has left out."""
        lost: dict[str, int] = self.inner.lost
        return lost

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return self._run(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    async def _next(self) -> Any:
        return await anext(self.inner)

    def commit(self) -> Any:
        return self._run(self.inner.commit())

    def to_table(self) -> Any:
        return self._run(self.inner.to_table())

    def close(self) -> None:
        self._run(self.inner.close())

    def __enter__(self) -> Self:
        self._run(self.inner.__aenter__())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._run(self.inner.__aexit__(*exc_info))


class Kept:
    """Where checkpoints are kept, and how somebody else reads and writes them there."""

    def __init__(self, url: str, scope: Scope) -> None:
        self.url = url
        self._scope = scope
        # Rows in memory last as long as a store of them.
        self.held = open_store(url)
        self.held.create()

    def rows(self) -> dict[str, tuple[int, str]]:
        with open_store(self.url) as store:
            rows = store.list_checkpoints(*self._scope)
        return {row["partition_id"]: (row["sequence_number"], row["offset"]) for row in rows}

    def numbers(self) -> dict[str, int]:
        return {partition: number for partition, (number, _) in self.rows().items()}

    def save(self, partition: str, number: int) -> None:
        row = {**self._scope.as_dict(), "partition_id": partition, "offset": None}
        with open_store(self.url) as store:
            store.update_checkpoint({**row, "sequence_number": number}, force=True)

    def owners(self) -> dict[str, str]:
        """Return the owner of each partition that has one."""
        rows = self.held.list_ownership(*self._scope)
        return {row["partition_id"]: row["owner_id"] for row in rows if row["owner_id"]}

    def claim(self, owner: str, *partitions: str) -> None:
        """Have somebody else claim partitions, from whomever."""

        def is_won(partition: str) -> bool:
            rows = {row["partition_id"]: row for row in self.held.list_ownership(*self._scope)}
            names = {**self._scope.as_dict(), "partition_id": partition}
            row = {**rows.get(partition, names), "owner_id": owner}
            return bool([*self.held.claim_ownership([row])])

        for partition in partitions:
            # Its owner may renew it between the list and the claim.
            eventually(partial(is_won, partition))


@pytest.fixture(params=["sync", "aio"])
def variant(request: pytest.FixtureRequest, loop: Loop) -> Any:
    return Sync() if request.param == "sync" else Aio(loop.finished)


@pytest.fixture(scope="module")
def server() -> Iterator[LocalHub]:
    with LocalHub({"orders": 3}) as running:
        yield running
        wait_for_clients()
    # The client leaves the socket of a broken connection to the collector.
    gc.collect()


@pytest.fixture
def busy_hub() -> Iterator[LocalHub]:
    """A hub that tells how many events it has, and is too busy for any receiver."""
    with LocalHub({"orders": 1}) as hub:
        hub.publish("orders", "0", ["event"])
        properties = HubAddress.open_queries

        def refuse_from_now_on(address: HubAddress) -> Any:
            asking = properties(address)
            asking.ask(["0"], LIMIT)
            hub.refuse_links(10**6, "com.microsoft:server-busy")
            return asking

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HubAddress, "open_queries", refuse_from_now_on)
            yield hub
        hub.refuse_links(0, "com.microsoft:server-busy")
        wait_for_clients()


@pytest.fixture
def hub(server: LocalHub) -> LocalHub:
    """A hub `orders` with 100, 100 and 10 events in its three partitions."""
    server.recreate("orders", 3)
    for partition, numbers in ALL.items():
        server.publish("orders", partition, [f"event {number}" for number in numbers])
    return server


@pytest.fixture
def text(hub: LocalHub) -> str:
    return hub.connection_string("orders")


@pytest.fixture
def address(hub: LocalHub, text: str) -> HubAddress:
    """Address of a class that a test may change."""

    class Address(HubAddress):
        pass

    return Address.from_connection_string(text)


@pytest.fixture
def scope(hub: LocalHub) -> Scope:
    return Scope(hub.endpoint.removeprefix("sb://"), "orders", "$Default")


@pytest.fixture(params=["memory", "sqlite"])
def kept(request: pytest.FixtureRequest, scope: Scope, tmp_path: Path) -> Iterator[Kept]:
    kept = kept_in(request.param, request, scope, tmp_path)
    with kept.held:
        yield kept


def kept_in(kind: str, request: pytest.FixtureRequest, scope: Scope, folder: Path) -> Kept:
    """Return what keeps the checkpoints of a test in memory, or in SQLite."""
    in_memory = f"memory:{request.node.name}"
    return Kept(in_memory if kind == "memory" else f"sqlite:///{folder / 'c.db'}", scope)
