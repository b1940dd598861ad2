"""`ehcp reset --force` while real clients read, on several stores."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
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
from eventhub_checkpoints import EventProcessor, PartitionProcessor, aio, every, open_store
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from operators import INTERVAL, Consumer, Saving, Seen, ehcp, ehcp_json
from waiting import eventually

# The client leaves the sockets of links that were refused to the garbage collector.
pytestmark = [
    # Consumers have to notice on the real clock that their partitions were taken.
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

PARTITIONS = ["0", "1", "2", "3"]
EVENTS = 30
NEXT = 10
BOTH = ["sync", "aio"]
ONLY_SYNC = pytest.mark.parametrize("variant", BOTH if IS_CAMPAIGN else ["sync"])
ONLY_AIO = pytest.mark.parametrize("variant", BOTH if IS_CAMPAIGN else ["aio"])
"""Both variants in campaigns."""
HOLD = "2.5"
"""Seconds: more than the consumers need, which balance every 0.4 s."""


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": len(PARTITIONS)}) as running:
        yield running


@pytest.fixture
def start(hub: LocalHub, loop: Loop, variant: str) -> Iterator[Callable[..., Consumer]]:
    """Starts consumers, which are closed after the test."""
    with ExitStack() as running:

        def started(store: Any, seen: Seen, **options: Any) -> Consumer:
            consumer = Consumer(
                hub.connection_string("orders"),
                store,
                seen,
                loop,
                is_aio=variant == "aio",
                **options,
            )
            running.callback(consumer.close)
            return consumer

        yield started


@pytest.fixture
def named(hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Names store and hub to the commands."""

    def name(url: str) -> None:
        monkeypatch.setenv("EHCP_STORE", url)
        monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
        monkeypatch.setenv("EHCP_STATE_DIR", str(tmp_path / "state"))

    return name


@pytest.fixture
def url(tmp_path: Path, named: Callable[[str], None]) -> str:
    """A SQLite store, which is named to the commands."""
    text = f"sqlite:///{tmp_path}/checkpoints.db"
    with open_store(text) as store:
        store.create()
    named(text)
    return text


RESET = ["reset", "--to-sequence-number", str(NEXT), "--through", "operators", "--execute"]


def is_read(seen: Seen, times: int, end: int = EVENTS) -> bool:
    """Whether every event from `NEXT` on was received so often."""
    return all(
        seen.times(id_, number) >= times for id_ in PARTITIONS for number in range(NEXT, end)
    )


def publish(hub: LocalHub, count: int) -> None:
    for partition_id in PARTITIONS:
        hub.publish("orders", partition_id, ["event"] * count)


def check_reset(hub: LocalHub, url: str, seen: Seen, consumers: int) -> None:
    """Reset the group of running consumers, and see that they read again from there.

    A single consumer reads each event exactly once more. Of several, one claims all partitions as
    soon as they are released, and the others take theirs from it, which is not exact.
    """
    scope = HubAddress.from_connection_string(hub.connection_string("orders")).scope()
    with open_store(url) as store:

        def saved() -> dict[str, int]:
            rows = store.list_checkpoints(*scope)
            return {row["partition_id"]: row["sequence_number"] for row in rows}

        def owners() -> set[str]:
            """Return who owns an equal share: until then partitions move, and are released."""
            shares = Counter(row["owner_id"] for row in store.list_ownership(*scope))
            is_balanced = [*shares.values()] == [len(PARTITIONS) // consumers] * consumers
            return set(shares) if is_balanced and "" not in shares else set()

        running = eventually(owners)
        eventually(lambda: len(hub.receivers("orders")) == len(PARTITIONS))
        publish(hub, EVENTS)
        eventually(lambda: is_read(seen, 1))
        eventually(lambda: saved() == dict.fromkeys(PARTITIONS, EVENTS - 1))
        refused = ehcp(*RESET)
        assert refused.exit_code == 4
        assert all(owner in refused.stderr for owner in running)
        before = {id_: Counter(seen.numbers[id_]) for id_ in PARTITIONS}

        done = ehcp_json(*RESET, "--force", "--hold", HOLD)
        assert done["executed"]
        publish(hub, 5)
        end = EVENTS + 5
        eventually(lambda: saved() == dict.fromkeys(PARTITIONS, end - 1))
        eventually(lambda: owners() == running)
    for id_ in PARTITIONS:
        more = [seen.times(id_, number) - before[id_][number] for number in range(end)]
        assert all(more[NEXT:]), id_
        if consumers == 1:
            assert more == [0] * NEXT + [1] * (end - NEXT), id_


@pytest.mark.parametrize(
    ("variant", "saving", "consumers"),
    [("sync", "directly", 2), ("aio", "checkpointer", 1)]
    if not IS_CAMPAIGN
    else itertools.product(BOTH, ["directly", "checkpointer"], [1, 2]),
)
def test_consumers_read_again_from_the_position(
    hub: LocalHub,
    start: Callable[..., Consumer],
    variant: str,
    url: str,
    saving: Saving,
    consumers: int,
) -> None:
    seen = Seen()
    for _ in range(consumers):
        opened = aio.open_store(url) if variant == "aio" else open_store(url)
        start(opened, seen, saving=saving)
    check_reset(hub, url, seen, consumers)


# Of two consumers, the one that loses a partition may overwrite a later checkpoint of the other, as
# the official store does not compare them; then nothing tells when everything was read again.
@ONLY_AIO
def test_consumers_with_the_official_blob_store_read_again_from_the_position(
    hub: LocalHub,
    start: Callable[..., Consumer],
    named: Callable[[str], None],
    variant: str,
    blob_container: Any,
) -> None:
    named(blob_container.url)
    kind: Any = AioBlobCheckpointStore if variant == "aio" else BlobCheckpointStore
    seen = Seen()
    text, name = blob_container.connection_string, blob_container.name
    start(kind.from_connection_string(text, name), seen)
    check_reset(hub, blob_container.url, seen, consumers=1)


@ONLY_SYNC
def test_an_event_processor_reads_again_from_the_position(
    hub: LocalHub, loop: Loop, variant: str, url: str
) -> None:
    seen = Seen()

    class Sync(PartitionProcessor):
        def process_events(self, events: Any) -> None:
            for event in events:
                seen.add(self.context, event)

    class Aio(aio.PartitionProcessor):
        async def process_events(self, events: Any) -> None:
            for event in events:
                seen.add(self.context, event)

    is_aio = variant == "aio"
    opened: Any = aio.open_store(url) if is_aio else open_store(url)
    client: Any = AioEventHubConsumerClient if is_aio else EventHubConsumerClient
    processor: Any = (aio.EventProcessor if is_aio else EventProcessor)(
        partial(
            client.from_connection_string,
            hub.connection_string("orders"),
            "$Default",
            load_balancing_interval=INTERVAL,
        ),
        Aio if is_aio else Sync,
        store=opened,
        policy=every(events=1),
    )
    loop.finished(processor.start())
    try:
        check_reset(hub, url, seen, consumers=1)
    finally:
        loop.finished(processor.stop())
        loop.finished(opened.close())


@ONLY_AIO
def test_what_a_coalescing_store_remembers_does_not_undo_a_reset(
    hub: LocalHub,
    start: Callable[..., Consumer],
    variant: str,
    url: str,
) -> None:
    seen = Seen()
    opened = aio.open_store(url) if variant == "aio" else open_store(url)
    start(opened, seen, saving="coalescing")
    publish(hub, EVENTS)
    eventually(lambda: is_read(seen, 1))
    ehcp_json(*RESET, "--force", "--hold", HOLD)
    # Not by `late_checkpoints`: a partition may be written between its claim and its first reset.
    history = ehcp_json("history")
    replaced = {
        (row["partition_id"], row["sequence_number"])
        for row in history
        if row["kind"] == "replaced"
    }
    assert replaced == {(id_, EVENTS - 1) for id_ in PARTITIONS}, (
        "each was written when it was lost"
    )
    eventually(lambda: is_read(seen, 2))
    for id_ in PARTITIONS:
        assert [seen.times(id_, number) for number in range(EVENTS)] == [1] * NEXT + [2] * 20


@ONLY_SYNC
def test_a_consumer_under_load_reads_again_from_the_position(
    hub: LocalHub,
    start: Callable[..., Consumer],
    variant: str,
    url: str,
) -> None:
    seen, ended = Seen(), threading.Event()

    def keep_publishing() -> None:
        while not ended.wait(0.05):
            publish(hub, 1)

    publishing = threading.Thread(target=keep_publishing)
    publishing.start()
    try:
        start(aio.open_store(url) if variant == "aio" else open_store(url), seen)
        eventually(lambda: is_read(seen, 1))
        end = {id_: max(seen.numbers[id_]) for id_ in PARTITIONS}
        ehcp_json("reset", "--to-earliest", "--execute", "--force", "--hold", HOLD)
    finally:
        ended.set()
        publishing.join()
    last = {id_: hub.partition_properties("orders", id_).last_sequence_number for id_ in PARTITIONS}
    eventually(lambda: all(seen.times(id_, last[id_]) for id_ in PARTITIONS))
    for id_ in PARTITIONS:
        assert all(seen.times(id_, number) == 2 for number in range(end[id_])), id_
