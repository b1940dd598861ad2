"""Partitions that are lost or handed over at bad moments: during a commit, an end, or a signal."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import CloseReason

from arrow_rows import numbers, take
from arrow_variants import ALL, FAST, Kept
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
from waiting import eventually


class Rows:
    """Store of a group, in memory, that does as a test says when a checkpoint is written.

    Attributes:
        store: for `consume_batches`.
        on_write: called with the partition before each write; it may raise.
    """

    def __init__(self, variant: Any) -> None:
        self.on_write: Any = lambda partition_id: None
        rows = self

        class Store(MemoryCheckpointStore):
            def write_checkpoint(self, checkpoint: Any, *args: Any) -> Any:
                rows.on_write(checkpoint.partition_id)
                return super().write_checkpoint(checkpoint, *args)

        class AioStore(aio.MemoryCheckpointStore):
            async def write_checkpoint(self, checkpoint: Any, *args: Any) -> Any:
                rows.on_write(checkpoint.partition_id)
                return await super().write_checkpoint(checkpoint, *args)

        self.store: Any = AioStore() if variant.is_async else Store()


class Batches:
    """Batches of either variant, with a partition that a test loses.

    No hub is contacted: what it would deliver is put into the inbox.
    """

    def __init__(self, variant: Any, store: Any) -> None:
        self._inbox: Any = aio_inbox if variant.is_async else inbox
        self.finished = variant.finished
        text = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b"
        batches = variant.consume_batches(f"{text};EntityPath=orders", store=store)
        self.inner = variant.inner(batches)
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
def rows(variant: Any) -> Rows:
    return Rows(variant)


@pytest.fixture
def batches(variant: Any, rows: Rows) -> Batches:
    made = Batches(variant, rows.store)
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
    variant: Any, rows: Rows, positions: Positions
) -> None:
    written: list[str] = []

    def lose(partition_id: str) -> None:
        written.append(partition_id)
        positions.forget("1")

    rows.on_write = lose
    scope = Scope("ns", "orders", "$Default")
    save: Any = aio_committed if variant.is_async else committed
    assert variant.finished(save(rows.store, scope, positions)) == {"0": 5}
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


class Counted(MemoryCheckpointStore):
    """Store that counts the rounds of load balancing."""

    rounds = 0

    def read_ownerships(self, scope: Scope) -> Any:
        self.rounds += 1
        return super().read_ownerships(scope)


@pytest.mark.parametrize("variant", ["sync"], indirect=True)
def test_a_loop_that_a_signal_ends_can_commit_what_is_being_handed_over(
    member: Any, address: Any, hub: LocalHub, kept: Kept
) -> None:
    own = Counted(kept.held.rows)
    with arrow.consume_batches(address, store=own, **FAST) as batches:
        returned = numbers(take(batches, 210))
        follower = member().start()
        asked = partial(is_handing_over, batches._client.store, *batches._client.scope)
        eventually(lambda: any(map(asked, ALL)))
        batches._request_end()
        assert not [*batches]
        rounds = own.rounds
        eventually(lambda: own.rounds > rounds + 2)
        batches.commit()
        assert batches.lost == {}
    for each in ALL:
        hub.publish("orders", each, ["event"] * 10)
    eventually(lambda: follower.count >= 30)
    assert {each: returned[each] + follower.numbers(each) for each in ALL} == {
        each: [*range(len(before) + 10)] for each, before in ALL.items()
    }


class Watched(aio.MemoryCheckpointStore):
    """Store that tells when somebody else was listed as an owner three times."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.listed = 0
        self.is_known = asyncio.Event()

    async def read_ownerships(self, scope: Scope) -> Any:
        rows = await super().read_ownerships(scope)
        self.listed += any(row.owner_id == "somebody else" for row in rows.rows)
        if self.listed > 2:
            self.is_known.set()
        return rows


async def closed_although_lost(text: str, kept: Kept) -> list[str]:
    """Lose partitions while they are being closed for another reason; return how that went on."""
    store, log, closing = Watched(kept.held.rows), list[str](), list[str]()
    released = asyncio.Event()

    async def on_batch(context: Any, batch: Any) -> None:
        raise ValueError("bad row")

    async def on_close(context: Any, reason: Any) -> None:
        closing.append(context.partition_id)
        try:
            await released.wait()
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        log.append(reason.name)

    client = aio_arrow.BatchConsumerClient(text, checkpoint_store=store, **FAST)
    receiving = asyncio.create_task(client.receive_batch(on_batch, on_partition_close=on_close))
    await asyncio.to_thread(eventually, lambda: len(closing) == len(ALL))
    await asyncio.to_thread(kept.claim, "somebody else", *ALL)
    await store.is_known.wait()
    released.set()
    await client.close()
    await receiving
    return log


def test_a_partition_that_is_lost_while_it_is_being_closed_is_closed_to_the_end(
    text: str, kept: Kept, loop: Loop
) -> None:
    assert loop.finished(closed_although_lost(text, kept)) == ["OWNERSHIP_LOST"] * 3
