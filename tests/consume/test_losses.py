"""Partitions that are lost or handed over at bad moments: during a commit, an end, or a signal."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import CloseReason

from eventhub_checkpoints import MemoryCheckpointStore, Scope, aio, arrow
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.consume._async import inbox as aio_inbox
from eventhub_checkpoints.consume._sync import inbox
from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.processing._sync.handover import is_handing_over
from eventhub_checkpoints.receive.arrow._async.batches import committed as aio_committed
from eventhub_checkpoints.receive.arrow._sync.batches import committed
from eventhub_checkpoints.receive.arrow.plan import Positions
from eventhub_checkpoints.receive.read_plan import CheckpointPosition
from waiting import LIMIT, eventually

QUICK: dict[str, Any] = {
    "max_wait": 0.0,
    "load_balancing_interval": 0.1,
    "partition_ownership_expiration_interval": LIMIT,
}


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 2}) as running:
        yield running


@pytest.fixture
def text(hub: LocalHub) -> str:
    """Connection string of a hub whose two partitions have ten events each."""
    hub.recreate("orders", 2)
    for partition in ("0", "1"):
        hub.publish("orders", partition, [b"event"] * 10)
    return hub.connection_string("orders")


@pytest.fixture(params=["sync", "aio"])
def is_aio(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "aio")


class Rows:
    """Store of a group, in memory, that does as a test says when a checkpoint is written.

    Attributes:
        store: for `consume_batches`.
        on_write: called with the partition before each write; it may raise.
    """

    def __init__(self, is_aio: bool) -> None:
        self.on_write: Callable[[str], None] = lambda partition_id: None
        rows = self

        class Store(MemoryCheckpointStore):
            def write_checkpoint(self, checkpoint: Any, *args: Any) -> Any:
                rows.on_write(checkpoint.partition_id)
                return super().write_checkpoint(checkpoint, *args)

        class AioStore(aio.MemoryCheckpointStore):
            async def write_checkpoint(self, checkpoint: Any, *args: Any) -> Any:
                rows.on_write(checkpoint.partition_id)
                return await super().write_checkpoint(checkpoint, *args)

        self.store: Any = AioStore() if is_aio else Store()


class Batches:
    """Batches of either variant, with a partition that a test loses.

    No hub is contacted: what it would deliver is put into the inbox.
    """

    def __init__(self, is_aio: bool, store: Any, loop: Loop) -> None:
        module: Any = aio_arrow if is_aio else arrow
        self._inbox: Any = aio_inbox if is_aio else inbox
        self.finished = loop.finished
        text = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b"
        self.inner = module.consume_batches(f"{text};EntityPath=orders", store=store)
        self.inner._worker = object()
        self.sessions: dict[str, Any] = {}

    def open(self, partition_id: str) -> None:
        self.sessions[partition_id] = self._inbox.Session(partition_id)
        self.inner._sessions[partition_id] = self.sessions[partition_id]

    def returned(self, partition_id: str, number: int) -> None:
        """Have the loop get an event."""
        position = CheckpointPosition(number, str(number))
        self.inner._positions.reach(partition_id, position)

    def lose(self, partition_id: str) -> None:
        context = SimpleNamespace(partition_id=partition_id)
        self.finished(self.inner._stopped(context))
        self.finished(self.inner._closed(context, CloseReason.OWNERSHIP_LOST))

    def commit(self) -> Any:
        return self.finished(self.inner.commit())


@pytest.fixture
def rows(is_aio: bool) -> Rows:
    return Rows(is_aio)


@pytest.fixture
def batches(is_aio: bool, rows: Rows, loop: Loop) -> Batches:
    made = Batches(is_aio, rows.store, loop)
    for partition_id in ("0", "1"):
        made.open(partition_id)
        made.returned(partition_id, 5)
    return made


def test_a_commit_that_fails_leaves_the_lost_partitions_to_the_next_one(
    batches: Batches, rows: Rows
) -> None:
    batches.lose("1")

    def fail(partition_id: str) -> None:
        raise StoreError("away")

    rows.on_write = fail
    with pytest.raises(StoreError):
        batches.commit()
    rows.on_write = lambda partition_id: None
    assert batches.commit() == {"0": 5}
    assert batches.inner.lost == {"1": 5}
    assert batches.commit() == {}
    assert batches.inner.lost == {}


@pytest.fixture
def positions() -> Positions:
    found = Positions()
    for partition_id in ("0", "1"):
        found.reach(partition_id, CheckpointPosition(5, "5"))
    return found


def test_a_partition_that_is_lost_during_a_commit_is_not_written_any_more(
    is_aio: bool, rows: Rows, positions: Positions, loop: Loop
) -> None:
    written: list[str] = []

    def lose(partition_id: str) -> None:
        written.append(partition_id)
        positions.forget("1")

    rows.on_write = lose
    scope = Scope("ns", "orders", "$Default")
    save: Any = aio_committed if is_aio else committed
    assert loop.finished(save(rows.store, scope, positions)) == {"0": 5}
    assert written == ["0"]


def test_what_is_saved_of_a_partition_that_is_lost_meanwhile_settles_nothing(
    positions: Positions,
) -> None:
    positions.forget("0")
    positions.settle("0", CheckpointPosition(5, "5"))
    assert positions.is_settled("0")
    positions.reach("0", CheckpointPosition(3, "3"))
    positions.settle("0", CheckpointPosition(5, "5"))
    assert not positions.is_settled("0")
    positions.settle("0", CheckpointPosition(3, "3"))
    assert positions.is_settled("0")


class Follower(threading.Thread):
    """Member that joins while another one holds everything, and commits each batch.

    Attributes:
        numbers: of the events that came, by partition.
    """

    def __init__(self, batches: Any) -> None:
        super().__init__(name="follower", daemon=True)
        self._batches = batches
        self.numbers: dict[str, list[int]] = {"0": [], "1": []}

    def run(self) -> None:
        for batch in self._batches:
            (partition,) = set(batch.column("partition").to_pylist())
            self.numbers[partition] += batch.column("sequenceNumber").to_pylist()
            self._batches.commit()


class Counted(MemoryCheckpointStore):
    """Store that counts the rounds of load balancing."""

    rounds = 0

    def read_ownerships(self, scope: Scope) -> Any:
        self.rounds += 1
        return super().read_ownerships(scope)


def test_a_loop_that_a_signal_ends_can_commit_what_is_being_handed_over(
    hub: LocalHub, text: str
) -> None:
    kept = MemoryCheckpointStore()

    def join(store: Any) -> Any:
        return arrow.consume_batches(text, store=store, **QUICK)

    own = Counted(kept.rows)
    first, second = join(own), join(MemoryCheckpointStore(kept.rows))
    returned: dict[str, list[int]] = {}
    while len(returned) < 2:
        batch = next(first)
        (partition,) = set(batch.column("partition").to_pylist())
        returned[partition] = batch.column("sequenceNumber").to_pylist()
    follower = Follower(second)
    try:
        follower.start()
        asked = partial(is_handing_over, first._client.store, *first._client.scope)
        eventually(lambda: asked("0") or asked("1"))
        first._request_end()
        assert not [*first]
        rounds = own.rounds
        eventually(lambda: own.rounds > rounds + 2)
        first.commit()
        assert first.lost == {}
        first.close()
        for partition in ("0", "1"):
            hub.publish("orders", partition, [b"event"] * 10)
        eventually(lambda: all(19 in numbers for numbers in follower.numbers.values()))
    finally:
        first.close()
        second.close()
        follower.join(LIMIT)
    assert {one: [*returned[one], *follower.numbers[one]] for one in returned} == {
        "0": [*range(20)],
        "1": [*range(20)],
    }


class Watched(aio.MemoryCheckpointStore):
    """Store that tells when another owner was listed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.listed = 0
        self.is_known = asyncio.Event()

    async def read_ownerships(self, scope: Scope) -> Any:
        rows = await super().read_ownerships(scope)
        self.listed += any(row.owner_id == "thief" for row in rows.rows)
        if self.listed > 2:
            self.is_known.set()
        return rows


async def closed_although_lost(text: str) -> list[str]:
    """Lose a partition while it is being closed for another reason; return how that went on."""
    store, log = Watched(), list[str]()
    closing, released = asyncio.Event(), asyncio.Event()

    async def on_batch(context: Any, batch: Any) -> None:
        raise ValueError("bad row")

    async def on_close(context: Any, reason: Any) -> None:
        closing.set()
        try:
            await released.wait()
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        log.append(reason.name)

    client = aio_arrow.BatchConsumerClient(text, checkpoint_store=store, **QUICK)
    receiving = asyncio.create_task(client.receive_batch(on_batch, on_partition_close=on_close))
    await closing.wait()
    stolen: set[str] = set()
    while len(stolen) < 2:  # the owner may renew between the list and the claim
        rows = await store.list_ownership(*client.scope)
        claims = [{**row, "owner_id": "thief"} for row in rows if row["owner_id"] != "thief"]
        stolen |= {row["partition_id"] for row in await store.claim_ownership(claims)}
    await store.is_known.wait()
    released.set()
    await client.close()
    await receiving
    return log


def test_a_partition_that_is_lost_while_it_is_being_closed_is_closed_to_the_end(
    text: str, loop: Loop
) -> None:
    assert loop.finished(closed_although_lost(text)) == ["OWNERSHIP_LOST"] * 2
