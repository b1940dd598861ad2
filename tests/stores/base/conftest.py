"""Stores of both variants behind one face, with faults between the base class and the hooks."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from eventhub_checkpoints import memory
from eventhub_checkpoints.aio import memory as aio_memory
from eventhub_checkpoints.base import seconds_left
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.memory.rows import MemoryRows

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
LONGEST = 20.0


@dataclass
class Fault:
    """What happens to one call of a hook; by default nothing.

    Attributes:
        error: raised in the place of an answer.
        carried_out: whether the row is changed all the same.
        seconds: how long the call takes.
        hangs: whether it never answers; a sync driver ends it when no time is left.
        gate: the call waits until it is set.
        entered: is set when the call begins; for one that hangs, when it begins to hang.
    """

    error: BaseException | None = None
    carried_out: bool = False
    seconds: float = 0.0
    hangs: bool = False
    gate: threading.Event | None = None
    entered: threading.Event = field(default_factory=threading.Event)


class Faults:
    """What is planned for the next calls of each hook, and which were called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.planned: dict[str, list[Fault]] = defaultdict(list)
        self.always: dict[str, Fault] = {}
        self.before_write: Callable[..., None] = lambda checkpoint, seen: None
        self.running = self.most = 0

    def plan(self, hook: str, fault: Fault, times: int = 1) -> Fault:
        """Let the next calls of a hook meet a fault."""
        self.planned[hook] += [fault] * times
        return fault

    def begin(self, hook: str) -> Fault:
        self.calls.append(hook)
        self.running += 1
        self.most = max(self.most, self.running)
        planned = self.planned[hook]
        fault = planned.pop(0) if planned else self.always.get(hook, Fault())
        if not (fault.hangs and fault.carried_out):
            fault.entered.set()
        return fault

    def end(self) -> None:
        self.running -= 1

    def count(self, hook: str) -> int:
        return self.calls.count(hook)


class SyncStore(memory.MemoryCheckpointStore):
    """A memory store with faults."""

    def __init__(self, rows: MemoryRows, faults: Faults, **settings: Any) -> None:
        super().__init__(rows, **settings)
        self.faults = faults

    def open(self) -> None:
        self._disturbed("open", super().open)

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return self._disturbed("read_ownerships", super().read_ownerships, scope)

    def try_claim(self, proposal: Proposal) -> Won | Lost:
        return self._disturbed("try_claim", super().try_claim, proposal)

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return self._disturbed("read_checkpoints", super().read_checkpoints, scope)

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        self.faults.before_write(checkpoint, seen)
        return self._disturbed("write_checkpoint", super().write_checkpoint, checkpoint, seen)

    def _disturbed(self, hook: str, call: Callable[..., Any], *args: object) -> Any:
        fault = self.faults.begin(hook)
        try:
            time.sleep(fault.seconds)
            if fault.gate is not None:
                assert fault.gate.wait(LONGEST)
            if fault.hangs:
                _ = call(*args) if fault.carried_out else None
                fault.entered.set()
                time.sleep(min(seconds_left(), LONGEST))
                raise TimeoutError
            if fault.error is not None and not fault.carried_out:
                raise fault.error
            answer = call(*args)
            if fault.error is not None:
                raise fault.error
            return answer
        finally:
            self.faults.end()


class AioStore(aio_memory.MemoryCheckpointStore):
    """The same, for asyncio."""

    def __init__(self, rows: MemoryRows, faults: Faults, **settings: Any) -> None:
        super().__init__(rows, **settings)
        self.faults = faults

    async def open(self) -> None:
        await self._disturbed("open", super().open)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return await self._disturbed("read_ownerships", super().read_ownerships, scope)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        return await self._disturbed("try_claim", super().try_claim, proposal)

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return await self._disturbed("read_checkpoints", super().read_checkpoints, scope)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        self.faults.before_write(checkpoint, seen)
        return await self._disturbed("write_checkpoint", super().write_checkpoint, checkpoint, seen)

    async def _disturbed(
        self, hook: str, call: Callable[..., Awaitable[Any]], *args: object
    ) -> Any:
        fault = self.faults.begin(hook)
        try:
            await asyncio.sleep(fault.seconds)
            if fault.gate is not None:
                assert await asyncio.to_thread(fault.gate.wait, LONGEST)
            if fault.hangs:
                _ = await call(*args) if fault.carried_out else None
                fault.entered.set()
                await asyncio.sleep(LONGEST)
            if fault.error is not None and not fault.carried_out:
                raise fault.error
            answer = await call(*args)
            if fault.error is not None:
                raise fault.error
            return answer
        finally:
            self.faults.end()


class Loop:
    """An event loop in a thread of its own; leaving the block ends both."""

    def __enter__(self) -> "Loop":
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaitable, self.loop).result(LONGEST)


class Subject:
    """A store of either variant; every method may be called from any thread, and blocks."""

    def __init__(self, loop: Loop | None, rows: MemoryRows, settings: dict[str, Any]) -> None:
        self.faults = Faults()
        self.rows = rows
        self.scope = SCOPE
        self.is_aio = loop is not None
        self._loop = loop
        kind: Any = AioStore if loop else SyncStore
        self.store = kind(rows, self.faults, **settings)

    def run(self, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self.store, method)(*args, **kwargs)
        return self._loop.run(answer) if self._loop else answer

    def begin(self, method: str, *args: Any) -> Future[Any]:
        """Begin a call of an aio store; to cancel the future is to cancel the task."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(getattr(self.store, method)(*args), self._loop.loop)

    @contextmanager
    def another_loop(self) -> Iterator[None]:
        """Run the calls inside of the block on another event loop."""
        before = self._loop
        with Loop() as self._loop:
            yield
        self._loop = before

    def renew_loop(self) -> None:
        """In a forked process, where the parent's thread does not run."""
        if self._loop:
            self._loop = Loop().__enter__()

    def claim(self, *proposals: dict[str, Any]) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self.run("claim_ownership", list(proposals))
        return answer

    def take(self, partition_id: str = "0", owner_id: str = "me", etag: str = "") -> dict[str, Any]:
        """Claim one partition, and expect to win."""
        (won,) = self.claim(claim_of(partition_id, owner_id, etag))
        return won

    def update(self, number: int, partition_id: str = "0", **kwargs: Any) -> None:
        self.run("update_checkpoint", checkpoint_of(number, partition_id), **kwargs)

    def list_ownership(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.run("list_ownership", *SCOPE.as_dict().values())
        return rows

    def list_checkpoints(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.run("list_checkpoints", *SCOPE.as_dict().values())
        return rows

    def stored(self, partition_id: str = "0") -> int | None:
        """The sequence number in the row, past every store."""
        rows = {row.partition_id: row for row in self.rows.checkpoints(SCOPE).rows}
        return rows[partition_id].sequence_number if partition_id in rows else None

    def owner(self, partition_id: str = "0") -> str | None:
        """The owner in the row, past every store."""
        rows = {row.partition_id: row for row in self.rows.ownerships(SCOPE).rows}
        return rows[partition_id].owner_id if partition_id in rows else None

    def official_write(self, number: int, partition_id: str = "0") -> None:
        """Write as another library does."""
        fields = {"offset": str(100 * number), "sequencenumber": str(number)}
        self.rows.put_raw("checkpoint", SCOPE, partition_id, fields)


def claim_of(partition_id: str = "0", owner_id: str = "me", etag: str = "") -> dict[str, Any]:
    row = SCOPE.as_dict() | {"partition_id": partition_id, "owner_id": owner_id}
    return row | {"etag": etag} if etag else row


def checkpoint_of(number: int, partition_id: str = "0") -> dict[str, Any]:
    return SCOPE.as_dict() | {
        "partition_id": partition_id,
        "offset": str(100 * number),
        "sequence_number": number,
    }


Make = Callable[..., Subject]


@pytest.fixture(params=["sync", "aio"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes stores of one variant; those of one test share their rows."""
    rows = MemoryRows()
    with ExitStack() as stack:
        loop = stack.enter_context(Loop()) if request.param == "aio" else None
        yield lambda **settings: Subject(loop, rows, settings)


@pytest.fixture
def store(make: Make) -> Subject:
    """A store with short bounds, that raises what is stale."""
    return make(operation_timeout=2.0, write_timeout=2.0, on_stale="raise")


@pytest.fixture
def aio_store() -> Iterator[Subject]:
    """A store for asyncio."""
    with Loop() as loop:
        yield Subject(loop, MemoryRows(), {"write_timeout": 2.0, "on_stale": "raise"})


@pytest.fixture
def make_fault() -> type[Fault]:
    """What is planned for a hook."""
    return Fault
