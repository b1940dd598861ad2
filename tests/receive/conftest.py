from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.address import Stream
from eventhub_checkpoints.receive.columns import Columns
from ports import kept_port
from prompt_client import prompt_client, wait_for_clients
from waiting import LIMIT

__all__ = ["prompt_client"]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalHub]:
    with kept_port() as port, LocalHub({"orders": 2}, port=port) as running:
        yield running
        wait_for_clients()


@pytest.fixture
def hub(server: LocalHub) -> LocalHub:
    """A hub `orders` with two partitions; partition 0 holds 100 events."""
    server.recreate("orders")
    server.publish("orders", "0", [f"event {number}" for number in range(100)])
    return server


@pytest.fixture
def hub_of_one_group() -> Iterator[LocalHub]:
    """A hub `orders` that only the consumer group `known` may read, with 100 events."""
    with LocalHub({"orders": 1}, consumer_groups=["known"]) as running:
        running.publish("orders", "0", ["event"] * 100)
        yield running
        wait_for_clients()


@pytest.fixture
def address(hub: LocalHub) -> HubAddress:
    return HubAddress.from_connection_string(hub.connection_string("orders"))


class PatientStream(Stream):
    """Waits for the events up to a number as long as they take, then as long as its reader says.

    So a reader may have little patience with a silence that a test wants to see.
    """

    def __init__(self, stream: Stream, start: int, last: int) -> None:
        self._stream, self._last, self._seen = stream, last, start - 1

    @property
    def reached(self) -> int:
        return self._stream.reached

    @property
    def trouble(self) -> str:
        return self._stream.trouble

    def next(self, timeout: float) -> Columns | None:
        columns = self._stream.next(timeout if self._seen >= self._last else LIMIT)
        if columns:
            self._seen = max(self._seen, *columns.numbers)
        return columns

    def close(self) -> None:
        self._stream.close()


@pytest.fixture
def patient_until() -> Callable[..., Callable[..., Stream]]:
    """Gives `open_stream` of an address, with streams that are patient up to a number."""

    def opening(address: HubAddress, last: int) -> Callable[..., Stream]:
        def open_stream(partition_id: str, start: int, *rest: Any) -> Stream:
            return PatientStream(address.open_stream(partition_id, start, *rest), start, last)

        return open_stream

    return opening
