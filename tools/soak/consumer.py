"""Process of a consumer: `python -m soak.consumer ORDERS`, ended by SIGTERM."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from azure.eventhub import EventData, EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import EventProcessor, PartitionProcessor, aio, every, open_store
from soak.delivery_tags import forget_delivery_tags
from soak.trend import answer_samples

EXPIRY_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders of one process.

    Attributes:
        variant: `sync` or `aio`, which is also its consumer group.
        connection: of the hub.
        url: of the store.
        journal: path of the file in which it records the events that it has processed.
        interval: seconds between two rounds of load balancing.
        kept: bytes to keep of every event: a leak, which the judgement has to find.
        keeps_tags: whether azure-eventhub keeps a tag of every event, as it does by itself.
        samples: path of the file in which it answers `soak.trend.sample`.
    """

    variant: str
    connection: str
    url: str
    journal: str
    interval: float
    kept: int
    keeps_tags: bool
    samples: str = ""

    def to_json(self) -> str:
        """Return the argument of the process."""
        return json.dumps(asdict(self))


class Records:
    """Records the events of this process in its file, and leaks if it has to."""

    def __init__(self, orders: Orders) -> None:
        self._file = os.open(orders.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._kept = orders.kept
        self._leak: list[bytearray] = []

    def add(self, partition_id: str, events: Sequence[EventData]) -> None:
        """Record a batch, whose numbers have no gaps, in a single write."""
        first, last = events[0].sequence_number, events[-1].sequence_number
        assert first is not None
        assert last == first + len(events) - 1
        os.write(self._file, f"{partition_id} {first} {last}\n".encode())
        if self._kept:
            self._leak.extend(bytearray(self._kept) for _ in events)


class Processing(PartitionProcessor):
    """Records the events of one partition."""

    def __init__(self, records: Records, *made_of: Any) -> None:
        super().__init__(*made_of)
        self._records = records

    def process_events(self, events: list[EventData]) -> None:
        self._records.add(self.context.partition_id, events)


class AioProcessing(aio.PartitionProcessor):
    """Records the events of one partition, in an event loop."""

    def __init__(self, records: Records, *made_of: Any) -> None:
        super().__init__(*made_of)
        self._records = records

    async def process_events(self, events: list[EventData]) -> None:
        self._records.add(self.context.partition_id, events)


def run(orders: Orders) -> None:
    """Process until SIGTERM."""
    if not orders.keeps_tags:
        forget_delivery_tags()
    answer_samples(Path(orders.samples))
    records = Records(orders)
    words: Any = {
        "conn_str": orders.connection,
        "consumer_group": orders.variant,
        "load_balancing_interval": orders.interval,
        "partition_ownership_expiration_interval": EXPIRY_INTERVALS * orders.interval,
    }
    policy = every(events=200, seconds=5)
    if orders.variant == "aio":

        async def run_aio() -> None:
            client = partial(AioEventHubConsumerClient.from_connection_string, **words)
            async with aio.open_store(orders.url) as store:
                processing = partial(AioProcessing, records)
                await aio.EventProcessor(client, processing, store=store, policy=policy).run()

        asyncio.run(run_aio())
    else:
        client = partial(EventHubConsumerClient.from_connection_string, **words)
        with open_store(orders.url) as store:
            EventProcessor(client, partial(Processing, records), store=store, policy=policy).run()


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    run(Orders(**json.loads(sys.argv[1])))
