"""A stop while the client lists or claims: nothing stays owned, and nothing is claimed later."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import CheckpointStore
from azure.eventhub.aio import CheckpointStore as AioCheckpointStore

from simulated_time import POLL
from variants import ONLY_SIMULATED
from waiting import LIMIT

CALLS = ("list_ownership", "claim_ownership", "list_checkpoints")


class Gate:
    """Holds back the answers of one method of a store.

    Attributes:
        inner: the store that answers.
        held: the method whose answers are held back; None: they are not.
        reached: set when an answer is held back.
        is_open: set when it may go.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.held: str | None = None
        self.reached = threading.Event()
        self.is_open = threading.Event()

    def hold(self, method: str) -> None:
        self.held = method

    def let_go(self) -> None:
        self.held = None
        self.is_open.set()

    def _is_held(self, method: str) -> bool:
        if method == self.held:
            self.reached.set()
        return method == self.held


class SyncGate(Gate, CheckpointStore):
    def _passed(self, method: str, *args: Any) -> Any:
        answer = getattr(self.inner, method)(*args)
        if self._is_held(method):
            assert self.is_open.wait(LIMIT)
        return answer

    def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        return self._passed("list_ownership", *names)

    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return self._passed("claim_ownership", ownership_list)

    def list_checkpoints(self, *names: str, **kwargs: Any) -> Any:
        return self._passed("list_checkpoints", *names)

    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        self.inner.update_checkpoint(checkpoint)


class AioGate(Gate, AioCheckpointStore):
    async def _passed(self, method: str, *args: Any) -> Any:
        answer = await getattr(self.inner, method)(*args)
        if self._is_held(method):
            while not self.is_open.is_set():  # noqa: ASYNC110 - it is set in another thread
                await asyncio.sleep(POLL)
        return answer

    async def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        return await self._passed("list_ownership", *names)

    async def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return await self._passed("claim_ownership", ownership_list)

    async def list_checkpoints(self, *names: str, **kwargs: Any) -> Any:
        return await self._passed("list_checkpoints", *names)

    async def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        await self.inner.update_checkpoint(checkpoint)


@pytest.fixture
def gate(runs: Any) -> Iterator[Gate]:
    made = (AioGate if runs.stage.is_aio else SyncGate)(runs.stage.store())
    yield made
    made.let_go()


@pytest.fixture
def is_quiet() -> Any:
    """Whether every thread has ended that a client has left behind."""
    before = set(threading.enumerate())
    return lambda: set(threading.enumerate()) <= before


def claims(gate: Gate) -> int:
    return sum(entry[0] == "claim" for entry in gate.inner.log)


@pytest.mark.parametrize("method", CALLS)
def test_a_stop_while_the_first_claim_is_made_leaves_nothing_owned(
    runs: Any, wait: Any, gate: Gate, is_quiet: Any, method: str
) -> None:
    runs.publish(3)
    gate.hold(method)
    run = runs.start(gate)
    wait(gate.reached.is_set)
    before = claims(gate)
    stopping = run.begin("stop")
    wait(lambda: run.processor._callbacks.is_stopping)
    gate.let_go()
    stopping.result(LIMIT)
    assert runs.owned(gate) == []
    wait(is_quiet)
    assert (claims(gate), runs.owned(gate)) == (before, [])
    assert run.seen.opened == run.seen.closed == []


def test_a_stop_waits_no_longer_for_a_claim_than_for_a_write(
    runs: Any, wait: Any, gate: Gate, is_quiet: Any
) -> None:
    runs.publish(3)
    run = runs.start(gate, write_timeout=0.5)
    wait(lambda: run.seen.has(2))
    gate.hold("claim_ownership")
    wait(gate.reached.is_set)
    gate.held = None  # that one hangs on, and the release does not
    began = time.monotonic()
    run.stop()
    # Half a second for the claim, and the SDK's client looks once a second whether all has ended.
    runs.stage.check_seconds(time.monotonic() - began, 1.5)
    assert (runs.saved(gate), runs.owned(gate)) == ({"0": 2}, [])
    gate.let_go()
    wait(is_quiet)


def test_a_stop_before_it_has_started_has_run_return(runs: Any) -> None:
    def start(partition_id: str) -> Any:
        return run.processor.stop()

    runs.publish(3)
    run = runs.make(runs.stage.store(), starting_position=start)
    run.run()
    assert (run.seen.opened, runs.hub.receivers("orders")) == ([], [])


@pytest.mark.parametrize("method", CALLS[:2])
def test_a_partition_that_is_renewed_while_its_handler_ends_is_released_after_the_last_save(
    runs: Any, wait: Any, gate: Gate, is_quiet: Any, method: str
) -> None:
    runs.publish(1)
    run = runs.make(gate)
    run.seen.is_free.clear()
    run.start()
    wait(lambda: run.seen.has(0))
    gate.hold(method)
    wait(gate.reached.is_set)
    stopping = run.begin("stop")
    wait(lambda: run.processor._callbacks.is_stopping)
    before = claims(gate)
    gate.let_go()
    if not runs.stage.is_aio and method == "list_ownership":
        wait(lambda: claims(gate) > before)
    assert runs.owned(gate) == ["0"]
    run.seen.is_free.set()
    stopping.result(LIMIT)
    wait(is_quiet)
    assert (runs.saved(gate), runs.owned(gate)) == ({"0": 0}, [])
    told = [entry for entry in gate.inner.log if entry != ("list",)]
    assert told[-2:] == [("update", "0", 0), ("release", "0")]
    assert run.seen.closed == ["0"]


@pytest.mark.parametrize("method", CALLS)
def test_after_such_a_stop_another_start_works(
    runs: Any, wait: Any, gate: Gate, method: str
) -> None:
    runs.publish(3)
    gate.hold(method)
    run = runs.start(gate)
    wait(gate.reached.is_set)
    stopping = run.begin("stop")
    gate.let_go()
    stopping.result(LIMIT)
    run.start()
    wait(lambda: run.seen.has(2))
    run.stop()
    assert (runs.saved(gate), runs.owned(gate)) == ({"0": 2}, [])
    assert run.seen.events["0"] == [0, 1, 2]


@ONLY_SIMULATED
def test_a_stop_while_the_hub_is_asked_lets_it_answer(runs: Any, wait: Any) -> None:
    asked: list[str] = []
    answered: list[str] = []

    class Asking(runs.client_kind):  # type: ignore[misc,name-defined]
        """Takes its time to tell how far a partition has come."""

        async def get_partition_properties(self, partition_id: str, **kwargs: Any) -> Any:
            asked.append(partition_id)
            found = await super().get_partition_properties(partition_id, **kwargs)
            await asyncio.sleep(0.5)
            answered.append(partition_id)
            return found

    runs.publish(1)
    run = runs.start(runs.stage.store(), runs.maker(Asking))
    wait(lambda: run.seen.has(0))
    wait(lambda: len(asked) > len(answered))
    run.stop()
    assert asked == answered
