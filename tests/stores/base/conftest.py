"""Stores of both variants behind one face, with faults between the base class and the hooks.

An aio store runs on a simulated clock: what a rule says of seconds is compared exactly. A sync
store waits in real time, so its tests of such rules have the marker `long`: see `timed`.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from eventhub_checkpoints import memory
from eventhub_checkpoints.aio import memory as aio_memory
from eventhub_checkpoints.base import seconds_left
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from simulated_time import DIGITS, Simulation, now, simulation
from waiting import LIMIT, let_pass, takes

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
FOREVER = 10_000.0
"""Simulated seconds for which a hook hangs that never answers."""


class Gate:
    """Lets threads and tasks go on when it is set."""

    def __init__(self) -> None:
        self._for_threads = threading.Event()
        self._for_tasks = asyncio.Event()

    def set(self) -> None:
        self._for_threads.set()
        self._for_tasks.set()

    def is_set(self) -> bool:
        return self._for_threads.is_set()

    def wait(self) -> None:
        """Hold a thread."""
        assert self._for_threads.wait(LIMIT)

    async def opened(self) -> None:
        """Hold a task."""
        await self._for_tasks.wait()


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
    gate: Gate | None = None
    entered: Gate = field(default_factory=Gate)


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
            if fault.seconds:
                let_pass(fault.seconds)
            if fault.gate is not None:
                fault.gate.wait()
            if fault.hangs:
                _ = call(*args) if fault.carried_out else None
                fault.entered.set()
                let_pass(seconds_left())
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
                await fault.gate.opened()
            if fault.hangs:
                _ = await call(*args) if fault.carried_out else None
                fault.entered.set()
                await asyncio.sleep(FOREVER)
            if fault.error is not None and not fault.carried_out:
                raise fault.error
            answer = await call(*args)
            if fault.error is not None:
                raise fault.error
            return answer
        finally:
            self.faults.end()


Script = Generator[tuple[Any, ...], Any, None]
"""Calls one after another: yields a store, a method and its arguments, and is sent the answer."""


class Subject:
    """A store of either variant, whose methods block the test.

    The aio variant runs while the test waits for it: in between, its tasks stand still.

    Attributes:
        simulation: where an aio store runs; None for a sync one.
    """

    def __init__(
        self, simulation: Simulation | None, rows: MemoryRows, settings: dict[str, Any]
    ) -> None:
        self.faults = Faults()
        self.rows = rows
        self.scope = SCOPE
        self.simulation = simulation
        kind: Any = AioStore if simulation else SyncStore
        self.store = kind(rows, self.faults, **settings)

    @property
    def is_aio(self) -> bool:
        return self.simulation is not None

    def limit(self, **settings: Any) -> None:
        """Change settings, such as limits, from here on."""
        self.store.settings = replace(self.store.settings, **settings)

    def run(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._finished(getattr(self.store, method)(*args, **kwargs))

    def _finished(self, answer: Any) -> Any:
        return self.simulation.finished(answer) if self.simulation else answer

    def begin(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Begin a call, in a thread or as a task; `ended` waits for it."""
        call = getattr(self.store, method)
        if self.simulation:
            return self.simulation.begin(call(*args, **kwargs))
        begun: Future[Any] = Future()

        def run() -> None:
            try:
                begun.set_result(call(*args, **kwargs))
            except BaseException as error:
                begun.set_exception(error)

        threading.Thread(target=run).start()
        return begun

    def ended(self, call: Any) -> Any:
        """The result of a call that was begun."""
        return call.result(LIMIT)

    def until(self, gate: Gate) -> None:
        """Wait until a gate is set, such as `entered` of a fault."""
        _ = self._finished(gate.opened()) if self.simulation else gate.wait()

    def let_pass(self, seconds: float) -> None:
        """Wait on the store's clock."""
        _ = self.simulation.elapse(seconds) if self.simulation else let_pass(seconds)

    @contextmanager
    def takes(self, seconds: float) -> Iterator[None]:
        """Check how long the block takes on the store's clock."""
        if self.simulation:
            began = now()
            yield
            assert round(now() - began, DIGITS) == seconds
        else:
            with takes(seconds):
                yield

    def all_at_once(self, scripts: list[Script]) -> None:
        """Run every script in a thread or task of its own."""
        if self.simulation:

            async def follow(script: Script) -> None:
                answer = None
                while True:
                    try:
                        store, method, *args = script.send(answer)
                    except StopIteration:
                        return
                    answer = await getattr(store.store, method)(*args)

            async def all_of_them() -> None:
                await asyncio.gather(*map(follow, scripts))

            self.simulation.finished(all_of_them())
            return
        barrier = threading.Barrier(len(scripts))

        def follow_sync(script: Script) -> None:
            barrier.wait(LIMIT)
            answer = None
            while True:
                try:
                    store, method, *args = script.send(answer)
                except StopIteration:
                    return
                answer = getattr(store.store, method)(*args)

        with ThreadPoolExecutor(len(scripts)) as pool:
            for each in [pool.submit(follow_sync, script) for script in scripts]:
                each.result(LIMIT)

    @contextmanager
    def another_loop(self) -> Iterator[None]:
        """Run the calls inside of the block on another event loop."""
        before = self.simulation
        with simulation() as self.simulation:
            yield
        self.simulation = before

    def in_a_fork(self) -> None:
        """In a forked process, where the parent's event loop is of no use."""
        if self.simulation:
            self._of_the_fork = simulation()
            self.simulation = self._of_the_fork.__enter__()

    def claim(self, *proposals: dict[str, Any]) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self.run("claim_ownership", list(proposals))
        return answer

    def take(self, partition_id: str = "0", owner_id: str = "me", etag: str = "") -> dict[str, Any]:
        """Claim one partition, and expect to win."""
        (won,) = self.claim(claim_of(partition_id, owner_id, etag))
        return won

    def update(self, number: int, partition_id: str = "0", **kwargs: Any) -> None:
        self.run("update_checkpoint", checkpoint_of(number, partition_id), **kwargs)

    def begin_update(self, number: int, partition_id: str = "0") -> Any:
        return self.begin("update_checkpoint", checkpoint_of(number, partition_id))

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


def made(variant: str) -> Iterator[Make]:
    rows = MemoryRows()
    with ExitStack() as stack:
        running = stack.enter_context(simulation()) if variant == "aio" else None
        yield lambda **settings: Subject(running, rows, settings)


@pytest.fixture(params=["sync", "aio"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes stores of one variant; those of one test share their rows."""
    yield from made(request.param)


@pytest.fixture(params=["aio", pytest.param("sync", marks=pytest.mark.long)])
def timed(request: pytest.FixtureRequest) -> Iterator[Make]:
    """The same, for rules about seconds: the aio variant shows them exactly.

    The sync variant is derived from its text, and shows on the real clock that it waits as well.
    """
    yield from made(request.param)


@pytest.fixture
def make_aio() -> Iterator[Make]:
    """Makes stores for asyncio only."""
    yield from made("aio")


@pytest.fixture
def store(make: Make) -> Subject:
    """A store that raises what is stale; no pause of a busy machine reaches its limits."""
    return make(operation_timeout=LIMIT, write_timeout=LIMIT, on_stale="raise")


@pytest.fixture
def aio_store() -> Iterator[Subject]:
    """A store for asyncio."""
    with simulation() as running:
        yield Subject(running, MemoryRows(), {"on_stale": "raise"})


@pytest.fixture
def make_fault() -> type[Fault]:
    """What is planned for a hook."""
    return Fault


@pytest.fixture
def gate() -> Gate:
    """What a call of a hook may wait for."""
    return Gate()
