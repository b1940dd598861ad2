"""A group moves from Blob to SQL while real consumers run, with the official store or with ours."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.eventhub.extensions import checkpointstoreblob, checkpointstoreblobaio

from backends import Backend, Place
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER
from eventhub_checkpoints.operations.move import Move, Stage
from eventhub_checkpoints.receive import HubAddress

# The move waits for the consumers' rounds of load balancing, whose length it can only assume.
pytestmark = pytest.mark.long

PARTITIONS = ["0", "1"]
EXPIRY = 60.0
SETTLE = 4.0
"""Ten times the consumers' interval of load balancing: they are late on a busy machine."""


@pytest.fixture
def place(servers: Callable[[str], Backend]) -> Iterator[Place]:
    with servers("sqlite").place() as created:
        yield created


@pytest.fixture
def end_load(hub: LocalHub) -> Iterator[Callable[[], None]]:
    """Publish events all the time, until it is called, no faster than a busy machine saves them."""
    is_over = threading.Event()

    def publish() -> None:
        while not is_over.wait(0.2):
            for partition_id in PARTITIONS:
                hub.publish("orders", partition_id, ["event"])

    def end() -> None:
        is_over.set()
        thread.join()

    thread = threading.Thread(target=publish)
    thread.start()
    yield end
    end()


def official(site: Any, container: Any) -> Any:
    """The official store on a container."""
    package = checkpointstoreblobaio if site.is_aio else checkpointstoreblob
    return package.BlobCheckpointStore.from_connection_string(
        container.connection_string, container.name
    )


def ours(site: Any, container: Any) -> Any:
    return site.store(container)


# A move takes many rounds of load balancing: each store once, and each client once.
@pytest.mark.parametrize(("opened", "site"), [(official, "sync"), (ours, "aio")], indirect=["site"])
def test_a_group_moves_while_its_consumers_run(
    site: Any,
    hub: LocalHub,
    blob_container: Any,
    place: Place,
    end_load: Callable[[], None],
    opened: Callable[..., Any],
    wait: Callable[..., Any],
) -> None:
    scope = HubAddress.from_connection_string(hub.connection_string("orders")).scope()
    old = [site.start(opened(site, blob_container)) for _ in PARTITIONS]
    for consumer in old:
        consumer.saves = lambda event: True
    wait(lambda: all(consumer.total > 5 for consumer in old))
    new: list[Any] = []
    with (
        BlobCheckpointStore.from_url(blob_container.url) as source,
        place.open("sync") as target,
    ):
        move = Move(source, target, scope, PARTITIONS, expires_after=EXPIRY, settle=SETTLE)
        # Only the pauses between rounds count as time to settle.
        for made in move.run(0.5, threading.Event()):
            if not new and all(each.stage is Stage.PREPARED for each in made.partitions):
                new.append(site.start(site.open(place)))
                new[0].saves = lambda event: True
        left = {row["sequence_number"] for row in source.list_checkpoints(*scope)}
    assert left == {CLOSED_NUMBER}
    idle = [consumer.total for consumer in old]
    end_load()
    last = {id_: hub.partition_properties("orders", id_).last_sequence_number for id_ in PARTITIONS}
    wait(lambda: all(new[0].events[id_][-1:] == [last[id_]] for id_ in PARTITIONS))
    assert [consumer.total for consumer in old] == idle, "the old store's consumers went on"
    for id_ in PARTITIONS:
        before = [number for consumer in old for number in consumer.events[id_]]
        assert {*before, *new[0].events[id_]} == set(range(last[id_] + 1)), "an event is lost"
        # An asyncio handler is cancelled when its partition is lost, and its event comes again.
        again = set(before) & set(new[0].events[id_])
        assert len(again) <= site.is_aio
