"""A coalescing store in another place than before: a forked process, or the next event loop."""

import asyncio
import threading
from typing import Any

import pytest

from eventhub_checkpoints import (
    CoalescingCheckpointStore,
    MemoryCheckpointStore,
    StoreAccessError,
    aio,
    every,
)
from eventhub_checkpoints._shared.wrapping import declares
from forks import in_a_child
from waiting import LIMIT, eventually


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("begins_with", ["save", "flush", "list_checkpoints", "release", "close"])
def test_a_forked_child_writes_its_own_and_not_its_parents(make_sync, begins_with) -> None:
    kept = make_sync(every(events=3))
    won = kept.take("0", "me")
    kept.save("0", 7)
    kept.save("1", 8)
    eventually(lambda: kept.store.healthy())

    def works_in_the_child() -> bool:
        if begins_with == "release":
            kept.release(won)
        elif begins_with != "save":
            getattr(kept, begins_with)()
        saved_by_parent = list(kept.below.writes)
        for number in range(20, 24):
            kept.save("1", number)
        eventually(lambda: kept.below.writes)
        kept.close()
        return not saved_by_parent and kept.below.stored("0") is None and kept.position("1") == 23

    assert in_a_child(works_in_the_child) == 0
    assert kept.below.writes == []
    kept.close()
    assert sorted(kept.below.writes) == [("write", "0", 7), ("write", "1", 8)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_the_parents_locks_are_held_can_write(make_sync) -> None:
    kept = make_sync()
    kept.save("0", 7)
    (one,) = kept.store._buffer.sessions_of()

    def works_in_the_child() -> bool:
        kept.save("0", 8)
        return kept.position("0") == 8

    with one.guard, kept.store._buffer._guard, kept.store._buffer._changing:
        assert in_a_child(works_in_the_child) == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_several_threads_of_a_child_begin_anew_together(make_sync) -> None:
    kept = make_sync()
    kept.save("0", 7)

    def works_in_the_child() -> bool:
        threads = [threading.Thread(target=kept.save, args=[str(n), n]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept.close()
        return len(kept.below.writes) == 8

    assert in_a_child(works_in_the_child) == 0


def row(number: int) -> dict[str, Any]:
    return {
        "fully_qualified_namespace": "ns.servicebus.windows.net",
        "eventhub_name": "orders",
        "consumer_group": "$Default",
        "partition_id": "0",
        "offset": "1",
        "sequence_number": number,
    }


class Telling(aio.MemoryCheckpointStore):
    """Says when a checkpoint was written."""

    wrote: asyncio.Event

    async def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        answer = await super().write_checkpoint(checkpoint, seen)
        self.wrote.set()
        return answer

    async def written(self) -> None:
        """Wait for the next."""
        self.wrote = asyncio.Event()
        async with asyncio.timeout(LIMIT):
            await self.wrote.wait()


def test_a_store_serves_one_event_loop_after_another() -> None:
    below = Telling()
    store = aio.CoalescingCheckpointStore(below, every(events=2))

    async def saved() -> int:
        (found,) = await below.list_checkpoints(*list(row(0).values())[:3])
        return int(found["sequence_number"])

    async def leave_one() -> None:
        await store.update_checkpoint(row(7))

    async def go_on() -> int:
        await store.update_checkpoint(row(8))
        await below.written()
        await store.update_checkpoint(row(9))
        return await saved()

    async def end() -> int:
        below.wrote = asyncio.Event()
        await store.close()
        return await saved()

    asyncio.run(leave_one())
    assert asyncio.run(go_on()) == 8
    assert asyncio.run(end()) == 9


def test_an_event_loop_that_was_left_with_a_write_under_way_keeps_nothing_back() -> None:
    class Hanging(aio.MemoryCheckpointStore):
        hangs = True
        begun = asyncio.Event()

        async def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
            if self.hangs:
                self.begun.set()
                await asyncio.Event().wait()
            return await super().write_checkpoint(checkpoint, seen)

    below = Hanging()
    store = aio.CoalescingCheckpointStore(below, every(events=1))

    async def leave() -> None:
        await store.update_checkpoint(row(7))
        await below.begun.wait()

    async def flush() -> bool:
        return await store.flush()

    asyncio.run(leave())
    below.hangs = False
    assert asyncio.run(flush())


def test_an_event_loop_that_is_kept_but_not_run_keeps_nothing_back() -> None:
    below = Telling()
    store = aio.CoalescingCheckpointStore(below, every(events=2))

    async def save(number: int) -> None:
        await store.update_checkpoint(row(number))

    async def go_on() -> None:
        for number in (8, 9):
            await save(number)
        await below.written()
        await store.close()

    idle = asyncio.new_event_loop()
    try:
        idle.run_until_complete(save(7))
        asyncio.run(go_on())
    finally:
        left = asyncio.all_tasks(idle)
        for task in left:
            task.cancel()
        idle.run_until_complete(asyncio.wait(left))
        idle.close()


def test_a_wrapper_in_a_wrapper_writes_all_the_same() -> None:
    below = MemoryCheckpointStore()
    inner = CoalescingCheckpointStore(below, every(events=10**6))
    outer = CoalescingCheckpointStore(inner, every(events=10**6))
    assert declares(outer, "forward_only")
    outer.update_checkpoint(row(7))
    outer.close()
    inner.close()
    assert len(below.list_checkpoints(*list(row(0).values())[:3])) == 1


def test_errors_of_the_store_below_are_the_callers_in_lists() -> None:
    class Away(MemoryCheckpointStore):
        def read_checkpoints(self, scope: Any) -> Any:
            raise StoreAccessError("no permission")

    store = CoalescingCheckpointStore(Away())
    with pytest.raises(StoreAccessError):
        store.list_checkpoints("ns", "orders", "$Default")
    store.close()
