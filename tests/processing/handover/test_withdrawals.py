"""A consumer that stops withdraws what it has asked others for."""

from functools import partial
from typing import Any

import pytest

from eventhub_checkpoints.aio import (
    Checkpointer,
    EventProcessor,
    HandoverStore,
    MemoryCheckpointStore,
    PartitionProcessor,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from simulated_hub import HUB, NAMESPACE, SimulatedHub
from simulated_time import Simulation, quiet, simulation

SCOPE = Scope(NAMESPACE, HUB, "$Default")
INTERVAL = 1.0


class Nothing(PartitionProcessor):
    """Processes nothing."""

    async def process_events(self, events: Any) -> None:
        """Receive events, of which there are none."""


class Consumer:
    """A client with hand-over, which an owner of both partitions does not answer."""

    def __init__(self, rows: MemoryRows, hub: SimulatedHub) -> None:
        self.store = MemoryCheckpointStore(rows)
        self.arguments = {
            "conn_str": hub.connection_string(HUB),
            "consumer_group": SCOPE.consumer_group,
            "load_balancing_interval": INTERVAL,
        }
        self.make = partial(hub.client.from_connection_string, **self.arguments)


class WithProcessor(Consumer):
    """An `EventProcessor`."""

    async def start(self) -> None:
        """Start it."""
        self.processor = EventProcessor(self.make, Nothing, store=self.store)
        await self.processor.start()

    async def stop(self) -> None:
        """Stop it."""
        await self.processor.stop()


class WithCheckpointer(Consumer):
    """A client with a `Checkpointer`, which is closed before the client, as in the docs."""

    async def start(self) -> None:
        """Do one round of the client."""
        handover = HandoverStore(self.store, expires_after=6 * INTERVAL)
        self.checkpointer = Checkpointer(handover)
        rows = list(await handover.list_ownership(*SCOPE))
        await handover.claim_ownership([{**rows[0], "owner_id": "client"}])

    async def stop(self) -> None:
        """Close the checkpointer."""
        await self.checkpointer.close()


@pytest.mark.parametrize("kind", [WithProcessor, WithCheckpointer])
def test_a_consumer_that_stops_leaves_no_hand_over_request(kind: Any) -> None:
    rows, hub = MemoryRows(), SimulatedHub(2)
    owner = MemoryCheckpointStore(rows)

    def handover_requests(running: Simulation) -> list[str]:
        listed = running.finished(owner.list_ownership(*SCOPE.handover_requests))
        return [row["owner_id"] for row in listed]

    with simulation() as running, quiet():
        claims = [{**SCOPE.as_dict(), "partition_id": key, "owner_id": "owner"} for key in "01"]
        running.finished(owner.claim_ownership(claims))
        consumer = kind(rows, hub)
        running.finished(consumer.start())
        running.eventually(lambda: handover_requests(running))
        assert [each.endswith(">owner") for each in handover_requests(running)] == [True]
        running.finished(consumer.stop())
        assert handover_requests(running) == [""]
