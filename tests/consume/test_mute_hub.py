"""A client of Arrow batches whose hub says nothing: its end waits for no answer."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from eventhub_checkpoints import HubUnavailableError, MemoryCheckpointStore, aio, arrow
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.conformance.clients import Loop
from waiting import LIMIT

TEXT = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b"


class MuteQueries:
    """Queries that are never answered, until a test ends."""

    def __init__(self) -> None:
        self.asked, self.is_over = threading.Event(), threading.Event()

    def get_partition_ids(self) -> list[str]:
        self.asked.set()
        self.is_over.wait()
        return []

    def get_partition_properties(self, partition_id: str) -> dict[str, Any]:
        return dict.fromkeys(self.get_partition_ids(), "")

    def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def queries() -> Iterator[MuteQueries]:
    made = MuteQueries()
    yield made
    made.is_over.set()


@pytest.fixture(params=["sync", "aio"])
def client(request: pytest.FixtureRequest, queries: MuteQueries) -> Any:
    module: Any = aio_arrow if request.param == "aio" else arrow
    store: Any = aio.MemoryCheckpointStore() if request.param == "aio" else MemoryCheckpointStore()
    made = module.BatchConsumerClient(f"{TEXT};EntityPath=orders", checkpoint_store=store)
    made._queries = queries
    return made


def test_a_client_is_closed_although_its_hub_says_nothing(
    client: Any, queries: MuteQueries, loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    receiving = threading.Thread(
        target=lambda: loop.finished(client.receive_batch(lambda *_: None)), daemon=True
    )
    receiving.start()
    assert queries.asked.wait(LIMIT)
    loop.finished(client.close())
    receiving.join(LIMIT)
    assert not receiving.is_alive()
    assert not caplog.records


def test_a_query_of_a_closed_client_says_so(client: Any, loop: Loop) -> None:
    loop.finished(client.close())
    with pytest.raises(HubUnavailableError, match=r"orders has not answered before the end$"):
        loop.finished(client.get_partition_properties("0"))
