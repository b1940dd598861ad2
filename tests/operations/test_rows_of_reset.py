"""Every reader starts where the rows of a reset say: official clients, this package's, Spark's."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore
from azure.eventhub.extensions.checkpointstoreblobaio import (
    BlobCheckpointStore as AioBlobCheckpointStore,
)

from campaigns import IS_CAMPAIGN
from eventhub_checkpoints import EventProcessor, PartitionProcessor, aio, open_store
from eventhub_checkpoints.arrow import read_batches
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import change_positions, group, plan_reset
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import starting_positions
from operators import INTERVAL, Consumer, Seen
from waiting import eventually

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning"
)

ALL, EXPIRED, NEVER, EMPTY = "0", "1", "2", "3"
"""Partitions: with 20 events; of which the first 10 expired; never used; with expired ones only."""
TARGETS = {"earliest": "earliest", "latest": "latest", "number": 12}
"""Consumer groups, and where each is reset to."""
NEW = [20, 21]
EXPECTED = {
    "earliest": {ALL: [*range(22)], EXPIRED: [*range(10, 22)], NEVER: [0, 1], EMPTY: NEW},
    "latest": {ALL: NEW, EXPIRED: NEW, NEVER: [0, 1], EMPTY: NEW},
    "number": {ALL: [*range(12, 22)], EXPIRED: [*range(12, 22)], NEVER: [0, 1], EMPTY: NEW},
}
"""Events that each group reads, of which two of each partition arrive after the reset."""


@pytest.fixture
def hub(request: pytest.FixtureRequest) -> Iterator[LocalHub]:
    """A hub with the partitions above; the parameter tells whether it is geo-replicated."""
    with LocalHub({"orders": 4}) as running:
        if request.param:
            running.replicate("orders")
        for partition_id in (ALL, EXPIRED, EMPTY):
            running.publish("orders", partition_id, ["event"] * 20)
        running.trim("orders", EXPIRED, 10)
        running.trim("orders", EMPTY, forget_offset=True)
        yield running


def reset(hub: LocalHub, url: str) -> None:
    """Reset each group, and let events arrive."""
    with open_store(url) as store:
        for name, target in TARGETS.items():
            address = HubAddress.from_connection_string(hub.connection_string("orders"), name)
            found = group(store, address.scope())
            plan = plan_reset(target, found, address)
            targets = {each.partition_id: each.after for each in plan}
            change_positions(store, address.scope(), targets, keep=lambda present: None)
    for partition_id in hub.partition_ids("orders"):
        hub.publish("orders", partition_id, ["event"] * 2)


@pytest.fixture
def url(tmp_path: Path) -> str:
    text = f"sqlite:///{tmp_path}/checkpoints.db"
    with open_store(text) as store:
        store.create()
    return text


def read_by_clients(hub: LocalHub, loop: Loop, variant: str, stores: dict[str, Any]) -> None:
    """Run a client in each group, and see what it reads."""
    with ExitStack() as running:
        seen = {name: Seen() for name in TARGETS}
        for name, store in stores.items():
            consumer = Consumer(
                hub.connection_string("orders"),
                store,
                seen[name],
                loop,
                is_aio=variant == "aio",
                group=name,
                # Without a checkpoint, nothing would be read.
                start="@latest",
            )
            running.callback(consumer.close)
        eventually(lambda: {name: dict(each.numbers) for name, each in seen.items()} == EXPECTED)


# Every pair of a variant and a format of offsets only in a campaign, because they do not meet: the
# variants share the code that makes a position of a row.
EACH = pytest.mark.parametrize(
    ("hub", "variant"),
    itertools.product([False, True], ["sync", "aio"])
    if IS_CAMPAIGN
    else [(False, "sync"), (True, "aio")],
    indirect=["hub"],
)


@EACH
def test_official_clients_with_a_store_of_this_package(
    hub: LocalHub, loop: Loop, variant: str, url: str
) -> None:
    reset(hub, url)
    opened = aio.open_store if variant == "aio" else open_store
    read_by_clients(hub, loop, variant, {name: opened(url) for name in TARGETS})


@EACH
def test_official_clients_with_the_official_store(
    hub: LocalHub, loop: Loop, variant: str, blob_container: Any
) -> None:
    reset(hub, blob_container.url)
    kind: Any = AioBlobCheckpointStore if variant == "aio" else BlobCheckpointStore
    text, name = blob_container.connection_string, blob_container.name
    stores = {group: kind.from_connection_string(text, name) for group in TARGETS}
    read_by_clients(hub, loop, variant, stores)


def client(hub: LocalHub, variant: str, name: str) -> Any:
    """Make a client of a group, without its store."""
    kind = AioEventHubConsumerClient if variant == "aio" else EventHubConsumerClient
    return partial(
        kind.from_connection_string,
        hub.connection_string("orders"),
        name,
        load_balancing_interval=INTERVAL,
    )


@EACH
def test_event_processors(hub: LocalHub, loop: Loop, variant: str, url: str) -> None:
    reset(hub, url)
    is_aio = variant == "aio"
    seen = {name: Seen() for name in TARGETS}

    class Sync(PartitionProcessor):
        def process_events(self, events: Any) -> None:
            for event in events:
                seen[self.context.consumer_group].add(self.context, event)

    class Aio(aio.PartitionProcessor):
        async def process_events(self, events: Any) -> None:
            for event in events:
                seen[self.context.consumer_group].add(self.context, event)

    kind: Any = aio.EventProcessor if is_aio else EventProcessor
    with ExitStack() as running:
        for name in TARGETS:
            store: Any = (aio.open_store if is_aio else open_store)(url)
            processor = kind(
                client(hub, variant, name),
                Aio if is_aio else Sync,
                store=store,
                starting_position="@latest",
            )
            running.callback(lambda store=store: loop.finished(store.close()))
            running.callback(lambda processor=processor: loop.finished(processor.stop()))
            loop.finished(processor.start())
        eventually(lambda: {name: dict(each.numbers) for name, each in seen.items()} == EXPECTED)


@pytest.mark.parametrize("hub", [False, True], indirect=True)
def test_arrow_batches_and_the_positions_for_spark(hub: LocalHub, url: str) -> None:
    reset(hub, url)
    for name, expected in EXPECTED.items():
        address = HubAddress.from_connection_string(hub.connection_string("orders"), name)
        numbers: dict[str, list[int]] = {}
        with read_batches(address, address.scope(), url, missing="error") as batches:
            for batch in batches:
                for row in batch.select(["partition", "sequenceNumber"]).to_pylist():
                    numbers.setdefault(row["partition"], []).append(row["sequenceNumber"])
        assert numbers == expected
        starts = starting_positions(url, address.scope(), hub=address, missing="error")
        first = {
            id_: 0 if each.is_start_of_stream else each.sequence_number
            for id_, each in starts.positions.items()
        }
        assert first == {id_: events[0] for id_, events in expected.items()}
