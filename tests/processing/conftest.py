"""Clients over stores that write down what they are asked; `variants` says which clients."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import CheckpointStore, EventHubConsumerClient
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore
from azure.eventhub.aio import CheckpointStore as AioCheckpointStore
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from azure.eventhub.aio._eventprocessor.in_memory_checkpoint_store import (
    InMemoryCheckpointStore as AioInMemoryCheckpointStore,
)

from eventhub_checkpoints import Checkpointer, MemoryCheckpointStore
from eventhub_checkpoints.aio import Checkpointer as AioCheckpointer
from eventhub_checkpoints.aio import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.processing._async import watchdog as aio_watchdog
from eventhub_checkpoints.processing._sync import watchdog
from prompt_client import prompt_client
from simulated_hub import SimulatedHub
from simulated_time import DIGITS, Simulation, simulation
from variants import LONG_SYNC, SIMULATED
from waiting import LIMIT as LONGEST
from waiting import eventually, let_pass

__all__ = ["prompt_client"]

LIMIT = 60.0
"""Seconds that make a stall, on a clock that a test moves."""
LOOK = 0.02
"""Seconds of real time between two looks of a watchdog."""
SLACK = 8.0
"""Seconds that the machine may take for itself where a test compares real ones."""
INTERVAL, EXPIRY = 0.4, 60.0
"""Seconds between two rounds of load balancing, and until an ownership ends by itself."""
LONGEST_LOOK = 1.2
"""Seconds of real time, two such rounds or more, for which a test looks whether nothing happens."""


@pytest.fixture(params=[SIMULATED, LONG_SYNC])
def variant(request: pytest.FixtureRequest) -> str:
    """The clients of a test that names none; see `variants`."""
    return request.param


@pytest.fixture(scope="session")
def real_loop() -> Iterator[Loop]:
    with Loop() as running:
        yield running


@pytest.fixture
def loop(variant: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Where the calls of aio stores and clients run."""
    if variant == SIMULATED:
        with simulation() as running:
            yield running
    else:
        yield request.getfixturevalue("real_loop")


@pytest.fixture
def wait(loop: Any) -> Any:
    """Waits for a condition, in simulated seconds where time is simulated."""
    return loop.eventually if isinstance(loop, Simulation) else eventually


@pytest.fixture
def elapse(loop: Any) -> Any:
    """Lets time pass, in which nothing may happen; of real time, at most `LONGEST_LOOK`."""
    if isinstance(loop, Simulation):
        return loop.elapse
    return lambda seconds: let_pass(min(seconds, LONGEST_LOOK))


class Recorded:
    """What a store was asked, in order, and how it has to answer.

    Attributes:
        inner: the store that answers.
        log: what was asked: `("list",)`, `("claim", partition)`, `("release", partition)`, and
            `("update", partition, sequence number)` when that had an answer.
        saved: sequence numbers that were stored, of each partition.
        begun: updates that were begun.
        error: what every update raises; None: nothing.
        is_open: whether updates are answered; where it is not set they hang.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.log: list[tuple[Any, ...]] = []
        self.saved: dict[str, list[int]] = defaultdict(list)
        self.begun = 0
        self.error: Exception | None = None
        self.is_open = threading.Event()
        self.is_open.set()

    @property
    def store(self) -> Any:
        """What it wraps, as wrappers name it."""
        return self.inner

    @property
    def forward_only(self) -> bool:
        """As a wrapper has to pass it on."""
        return getattr(self.inner, "forward_only", False)

    def _claims(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        given = list(rows)
        for row in given:
            kind = "claim" if row["owner_id"] else "release"
            self.log.append((kind, row["partition_id"]))
        return given

    def _begin(self) -> None:
        self.begun += 1
        if self.error is not None:
            raise self.error

    def _updated(self, row: dict[str, Any]) -> None:
        partition_id, number = row["partition_id"], row["sequence_number"]
        self.log.append(("update", partition_id, number))
        self.saved[partition_id].append(number)


class SyncRecorded(Recorded, CheckpointStore):
    def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        self.log.append(("list",))
        return self.inner.list_ownership(*names, **kwargs)

    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return self.inner.claim_ownership(self._claims(ownership_list), **kwargs)

    def list_checkpoints(self, *names: str, **kwargs: Any) -> Any:
        return self.inner.list_checkpoints(*names, **kwargs)

    def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        self._begin()
        assert self.is_open.wait(LONGEST)
        self.inner.update_checkpoint(checkpoint, **kwargs)
        self._updated(checkpoint)


class AioRecorded(Recorded, AioCheckpointStore):
    async def list_ownership(self, *names: str, **kwargs: Any) -> Any:
        self.log.append(("list",))
        return await self.inner.list_ownership(*names, **kwargs)

    async def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        return await self.inner.claim_ownership(self._claims(ownership_list), **kwargs)

    async def list_checkpoints(self, *names: str, **kwargs: Any) -> Any:
        return await self.inner.list_checkpoints(*names, **kwargs)

    async def update_checkpoint(self, checkpoint: Any, **kwargs: Any) -> None:
        self._begin()
        while not self.is_open.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.01)
        await self.inner.update_checkpoint(checkpoint, **kwargs)
        self._updated(checkpoint)


class Consumer:
    """A running client that tracks each event and leaves it to the test to finish it.

    Attributes:
        tracked: of each partition, by sequence number; of an event that came again, the last.
        arrived: sequence numbers in the order of arrival.
        opened: contexts of partitions, as often as they were opened.
        closed: partitions and reasons, each when its close handler had ended.
        seconds: that closing each partition took.
        errors: what the client reported, with the partition or None.
        finishes: whether an event is finished as soon as it has arrived.
        raises: what the handler of the next event raises, once.
    """

    def __init__(self, checkpointer: Any, finishes: bool) -> None:
        self.checkpointer = checkpointer
        self.tracked: dict[str, dict[int, Any]] = defaultdict(dict)
        self.arrived: dict[str, list[int]] = defaultdict(list)
        self.opened: list[Any] = []
        self.closed: list[tuple[str, str]] = []
        self.seconds: dict[str, float] = {}
        self.errors: list[tuple[str | None, Exception]] = []
        self.finishes = finishes
        self.raises: Exception | None = None
        self.is_closed = False

    def _arrived(self, context: Any, event: Any, tracked: Any) -> None:
        number = event.sequence_number
        self.tracked[context.partition_id][number] = tracked
        if self.finishes:
            tracked.done()
        self.arrived[context.partition_id].append(number)
        if self.raises is not None:
            error, self.raises = self.raises, None
            raise error

    def _error(self, context: Any, error: Exception) -> None:
        self.errors.append((context and context.partition_id, error))

    def has(self, partition_id: str, count: int) -> bool:
        """Whether so many events have arrived."""
        return len(self.arrived[partition_id]) >= count


class SyncConsumer(Consumer):
    def __init__(
        self, arguments: dict[str, Any], checkpointer: Any, finishes: bool, loop: Any
    ) -> None:
        super().__init__(checkpointer, finishes)
        self.client = arguments.pop("kind").from_connection_string(**arguments)
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def _receive(self) -> None:
        self.client.receive(
            self._on_event,
            starting_position="-1",
            on_partition_initialize=self._initialize,
            on_partition_close=self._close,
            on_error=self._error,
        )

    def _initialize(self, context: Any) -> None:
        self.checkpointer.on_initialize(context)
        self.opened.append(context)

    def _close(self, context: Any, reason: Any) -> None:
        began = time.monotonic()
        self.checkpointer.on_close(context, reason)
        self.seconds[context.partition_id] = time.monotonic() - began
        self.closed.append((context.partition_id, reason.name))

    def _on_event(self, context: Any, event: Any) -> None:
        self._arrived(context, event, self.checkpointer.track(context, event))

    def end(self) -> None:
        self.client.close()
        self._thread.join(LONGEST)
        assert not self._thread.is_alive()


class AioConsumer(Consumer):
    def __init__(
        self, arguments: dict[str, Any], checkpointer: Any, finishes: bool, loop: Any
    ) -> None:
        super().__init__(checkpointer, finishes)
        self._loop = loop
        self._closing: set[asyncio.Task[Any]] = set()
        loop.finished(self._start(arguments))

    async def _start(self, arguments: dict[str, Any]) -> None:
        self.client = arguments.pop("kind").from_connection_string(**arguments)
        self._task = asyncio.create_task(
            self.client.receive(
                self._on_event,
                starting_position="-1",
                on_partition_initialize=self._initialize,
                on_partition_close=self._close,
                on_error=self._failed,
            )
        )

    async def _initialize(self, context: Any) -> None:
        await self.checkpointer.on_initialize(context)
        self.opened.append(context)

    async def _close(self, context: Any, reason: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._closing.add(task)
        began = time.monotonic()
        await self.checkpointer.on_close(context, reason)
        self.seconds[context.partition_id] = time.monotonic() - began
        self.closed.append((context.partition_id, reason.name))

    async def _failed(self, context: Any, error: Exception) -> None:
        self._error(context, error)

    async def _on_event(self, context: Any, event: Any) -> None:
        self._arrived(context, event, await self.checkpointer.track(context, event))

    async def end(self) -> None:
        await self.client.close()
        self._task.cancel()  # or it would go on until its load balancing has slept
        with suppress(asyncio.CancelledError):
            await self._task
        # In azure-eventhub 5.15.1, `receive` stops the client a second time when its load balancing
        # wakes, and then forgets the tasks that still close a partition: `close` returns too soon.
        if self._closing:
            await asyncio.wait(self._closing, timeout=LONGEST)


class Stage:
    """Where clients of one variant run.

    Attributes:
        is_aio: whether they are asynchronous.
        hub: what they read.
    """

    def __init__(self, variant: str, loop: Any, hub: Any, opened: ExitStack) -> None:
        self.is_simulated = variant == SIMULATED
        self.is_aio = variant != "sync"
        self.hub = hub
        self.client_kind: Any = EventHubConsumerClient
        if self.is_aio:
            self.client_kind = hub.client if self.is_simulated else AioEventHubConsumerClient
        self.finished = loop.finished
        self.eventually = loop.eventually if self.is_simulated else eventually
        self._loop = loop
        self._opened = opened

    def begin(self, function: Any, *args: Any) -> Any:
        """Call a function, async for an aio client, beside the test; what has its result."""
        if self.is_simulated:
            return self._loop.begin(function(*args))
        if self.is_aio:
            return asyncio.run_coroutine_threadsafe(function(*args), self._loop._loop)
        pool = ThreadPoolExecutor(1)
        begun = pool.submit(function, *args)
        pool.shutdown(wait=False)  # its thread ends with the call
        return begun

    @property
    def namespace(self) -> str:
        """As the client spells it."""
        return self.hub.host if self.is_simulated else f"{self.hub.host}:{self.hub.port}"

    def check_seconds(self, seconds: float, expected: float) -> None:
        """Compare how long something took: exactly where time is simulated."""
        if self.is_simulated:
            assert round(seconds, DIGITS) == expected
        else:
            assert seconds < expected + SLACK

    def store(self, rows: Any = None, **settings: Any) -> Recorded:
        """A store of ours, recorded; several share their rows."""
        kind = AioMemoryCheckpointStore if self.is_aio else MemoryCheckpointStore
        return self.recorded(kind(rows, **settings))

    def foreign_store(self) -> Recorded:
        """The official store in memory, recorded: it lets a checkpoint go back."""
        inner = AioInMemoryCheckpointStore() if self.is_aio else InMemoryCheckpointStore()
        return self.recorded(inner)

    def recorded(self, inner: Any) -> Recorded:
        """Any store, recorded."""
        return AioRecorded(inner) if self.is_aio else SyncRecorded(inner)

    def checkpointer(self, store: Any, *args: Any, **settings: Any) -> Any:
        """A checkpointer; it is closed after the test, and waits little for what that left."""
        kind = AioCheckpointer if self.is_aio else Checkpointer
        made = kind(store, *args, **{"drain_timeout": 0.1, **settings})
        self._opened.callback(lambda: self.finished(made.close()))
        return made

    def arguments(self, store: Any, **settings: Any) -> dict[str, Any]:
        """What a client of this hub is made of."""
        return {
            "conn_str": self.hub.connection_string("orders"),
            "consumer_group": "$Default",
            "checkpoint_store": store,
            "load_balancing_interval": INTERVAL,
            "partition_ownership_expiration_interval": EXPIRY,
            "socket_timeout": 0.02,
            **settings,
        }

    def client(self, store: Any, **settings: Any) -> Any:
        """A client that the caller closes."""
        return self.client_kind.from_connection_string(**self.arguments(store, **settings))

    def start(
        self, store: Any, checkpointer: Any, *, finishes: bool = False, **settings: Any
    ) -> Consumer:
        """A consumer; it is closed after the test, if the test does not."""
        kind = AioConsumer if self.is_aio else SyncConsumer
        arguments = {**self.arguments(store, **settings), "kind": self.client_kind}
        consumer = kind(arguments, checkpointer, finishes, self._loop)
        self._opened.callback(self.close, consumer)
        return consumer

    def close(self, consumer: Any) -> None:
        """Close a consumer, once."""
        if not consumer.is_closed:
            consumer.is_closed = True
            self.finished(consumer.end())

    def begin_close(self, consumer: Any) -> Any:
        """Close a consumer beside the test; what has the result."""
        consumer.is_closed = True
        return self.begin(consumer.end)

    def publish(self, count: int, partition_id: str = "0") -> None:
        """So many events more in a partition."""
        self.hub.publish("orders", partition_id, ["event"] * count)


class Clock:
    """What a watchdog takes for the time; it stands still until the test moves it."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return self._now

    def look(self) -> None:
        """Wait until a watchdog has looked, and begun to look again."""
        looks = self._looks
        eventually(lambda: self._looks > looks + 1)

    def pass_time(self, watchdog: Any, limits: float) -> None:
        """Let time pass, in steps in which the watchdog looks and the hub answers."""
        for _ in range(round(limits * 5)):
            self._now += LIMIT / 5
            self.look()
            eventually(lambda: not watchdog._queries)

    def jump(self, seconds: float) -> None:
        """Let time pass at once, whatever is under way."""
        self._now += seconds


class SimulatedClock:
    """The same where time is simulated: everything takes the time that passes."""

    def __init__(self, loop: Simulation) -> None:
        self._loop = loop

    def look(self) -> None:
        self._loop.elapse(LIMIT / watchdog.LOOKS)

    def pass_time(self, watchdog: Any, limits: float) -> None:
        self._loop.elapse(limits * LIMIT)

    def jump(self, seconds: float) -> None:
        self._loop.elapse(seconds)


@pytest.fixture
def clock(loop: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock for watchdogs, which look at it all the time."""
    if isinstance(loop, Simulation):
        return SimulatedClock(loop)
    clock = Clock()
    for module in (watchdog, aio_watchdog):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic))
        monkeypatch.setattr(module, "LOOKS", LIMIT / LOOK)
    return clock


HUB_PARTITIONS = 1
"""Of the hub, where the module of the test does not set another number; a module that sets
`CONSUMER_GROUPS` has a real hub without others."""


@pytest.fixture
def hub(variant: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    partitions = getattr(request.module, "HUB_PARTITIONS", HUB_PARTITIONS)
    if variant == SIMULATED:
        yield SimulatedHub(partitions)
    else:
        groups = getattr(request.module, "CONSUMER_GROUPS", None)
        with LocalHub({"orders": partitions}, consumer_groups=groups) as running:
            yield running


@pytest.fixture
def stage(variant: str, loop: Any, hub: Any) -> Iterator[Stage]:
    with ExitStack() as opened:
        yield Stage(variant, loop, hub, opened)
