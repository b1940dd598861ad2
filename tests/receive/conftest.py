import threading
from collections.abc import Iterator

import pytest

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress

THREADS = ("receive-", "_load_balancing")


def wait_for_clients() -> None:
    """Connections are closed in the background; they must not meet a hub that has stopped."""
    for thread in threading.enumerate():
        if any(name in thread.name for name in THREADS):
            thread.join(10)


@pytest.fixture(scope="module")
def server() -> Iterator[LocalHub]:
    with LocalHub({"orders": 2}) as running:
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
