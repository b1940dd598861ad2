from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, OffsetRange
from eventhub_checkpoints.receive.batches import read_range
from prompt_client import prompt_client

__all__ = ["prompt_client"]

MAP = pa.map_(pa.string(), pa.string())


@pytest.fixture(scope="module")
def server() -> Iterator[LocalHub]:
    with LocalHub({"orders": 4}) as running:
        yield running


@pytest.fixture
def hub(server: LocalHub) -> Iterator[LocalHub]:
    """An empty hub `orders` with four partitions, and no faults."""
    server.recreate("orders", 4)
    yield server
    server.reject_sends(0, "none")
    server.lose_answers(0)
    server.refuse_tokens(False)
    server.delay(0)


@pytest.fixture
def address(hub: LocalHub) -> HubAddress:
    text = hub.connection_string("orders")
    return HubAddress.from_connection_string(text)


@pytest.fixture
def stored(hub: LocalHub, address: HubAddress) -> Callable[[], dict[str, list[dict[str, Any]]]]:
    """Return what the hub holds, by partition and in order."""

    def read() -> dict[str, list[dict[str, Any]]]:
        return {
            partition: [
                row
                for batch in read_range(address, OffsetRange(partition, 0, end))
                for row in batch.to_pylist()
            ]
            for partition in hub.partition_ids("orders")
            if (end := hub.partition_properties("orders", partition).last_sequence_number + 1)
        }

    return read


@pytest.fixture
def rows() -> Callable[..., pa.RecordBatch]:
    """Make an Arrow batch of bodies and further columns."""

    def make(bodies: Any, **columns: Any) -> pa.RecordBatch:
        arrays = {"body": pa.array(bodies)}
        for name, values in columns.items():
            arrays[name] = pa.array(values, MAP if name == "properties" else pa.string())
        return pa.RecordBatch.from_pydict(arrays)

    return make
