import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client_threads import wait_for_clients
from eventhub_checkpoints import Scope, aio, arrow, open_store
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from waiting import LIMIT


class Sync:
    """`read_batches` as it is."""

    is_async = False
    read_batches = staticmethod(arrow.read_batches)
    open_store = staticmethod(open_store)

    def close(self, store: Any) -> None:
        store.close()


class Aio:
    """`read_batches` of aio with the face of the other, in an event loop that runs by the call."""

    is_async = True
    open_store = staticmethod(aio.open_store)

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def read_batches(self, *args: Any, **kwargs: Any) -> "AioBatches":
        return AioBatches(self._run, aio_arrow.read_batches(*args, **kwargs))

    def close(self, store: Any) -> None:
        self._run(store.close())


class AioBatches:
    def __init__(self, run: Callable[..., Any], batches: aio_arrow.Batches) -> None:
        self._run = run
        self._batches = batches
        self.schema = batches.schema

    def __iter__(self) -> "AioBatches":
        return self

    def __next__(self) -> Any:
        try:
            return self._run(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    async def _next(self) -> Any:
        return await anext(self._batches)

    def commit(self) -> Any:
        return self._run(self._batches.commit())

    def to_table(self) -> Any:
        return self._run(self._batches.to_table())

    def close(self) -> None:
        self._run(self._batches.close())

    def __enter__(self) -> "AioBatches":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture(params=["sync", "aio"])
def variant(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "sync":
        yield Sync()
        return
    with asyncio.Runner() as runner:
        yield Aio(runner.run)


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
    for partition, count in (("0", 100), ("1", 100), ("2", 10)):
        server.publish("orders", partition, [f"event {number}" for number in range(count)])
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
    name = request.node.name
    url = f"memory:{name}" if request.param == "memory" else f"sqlite:///{tmp_path / 'c.db'}"
    kept = Kept(url, scope)
    with kept.held:
        yield kept
