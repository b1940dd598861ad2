"""Lag against the events that a real consumer then gets, by this package and by KEDA's formula."""

import threading
from collections.abc import Iterator

import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.lag import lag
from eventhub_checkpoints.operations.scale import demand
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import SqlCheckpointStore
from keda_formula import Partition, unprocessed


class Site:
    """A hub with one partition, and a consumer of azure-eventhub that saves each checkpoint."""

    def __init__(self, hub: LocalHub, store: SqlCheckpointStore) -> None:
        self.hub = hub
        self.store = store
        self.text = hub.connection_string("orders")
        self.address = HubAddress.from_connection_string(self.text)

    def publish(self, count: int) -> None:
        self.hub.publish("orders", "0", [b"event"] * count)

    def consume(self) -> list[int]:
        """Run the consumer until it has the newest event; return the numbers of what it got."""
        last = self.hub.partition_properties("orders", "0").last_sequence_number
        numbers: list[int] = []
        client = EventHubConsumerClient.from_connection_string(
            self.text, "$Default", checkpoint_store=self.store, load_balancing_interval=0.5
        )

        def process(context, event) -> None:
            numbers.append(event.sequence_number)
            context.update_checkpoint(event)
            if event.sequence_number == last:
                reached.set()

        reached = threading.Event()
        receiving = threading.Thread(
            target=client.receive, args=(process,), kwargs={"starting_position": "-1"}
        )
        receiving.start()
        try:
            assert reached.wait(60)
        finally:
            client.close()
            receiving.join()
        return numbers

    def by_keda(self) -> int:
        properties = self.hub.partition_properties("orders", "0")
        rows = self.store.list_checkpoints(*self.address.scope())
        return unprocessed(
            Partition(
                properties.first_sequence_number,
                properties.last_sequence_number,
                rows[0]["sequence_number"] if rows else None,
            )
        )

    def by_us(self) -> int:
        return demand([lag(self.store, self.address)]).scale


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    with LocalHub({"orders": 1}) as hub, SqlCheckpointStore(url, create_tables=True) as store:
        yield Site(hub, store)


def test_the_lag_is_the_number_of_events_that_a_consumer_gets(site) -> None:
    # A lone event that is not the first ever; nothing is stored.
    site.publish(8)
    site.hub.trim("orders", "0", 7)
    assert (site.by_keda(), site.by_us()) == (0, 1)
    assert site.consume() == [7]
    # What every formula has right.
    site.publish(12)
    assert (site.by_keda(), site.by_us()) == (12, 12)
    assert len(site.consume()) == 12
    assert (site.by_keda(), site.by_us()) == (0, 0)
    # Retention has passed the checkpoint.
    site.publish(30)
    site.hub.trim("orders", "0", 45)
    assert (site.by_keda(), site.by_us()) == (30, 5)
    assert len(site.consume()) == 5
    # Everything behind has expired.
    site.publish(10)
    site.hub.trim("orders")
    assert (site.by_keda(), site.by_us()) == (10, 0)
    # The hub is re-created: the group has to begin anew, as its checkpoint belongs to the old one.
    site.hub.recreate("orders")
    site.publish(3)
    assert (site.by_keda(), site.by_us()) == (0, 3)
    site.store.delete_partition(*site.address.scope(), "0")
    assert len(site.consume()) == 3
