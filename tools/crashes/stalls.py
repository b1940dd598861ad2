"""Stall consumers in every known way, and count what their watchdogs find, and what they imagine.

Each round runs one consumer, sync or aio, a Checkpointer or an EventProcessor, on a local hub, with
a short `stalled_after` in real time. In a round with a cause, the partition has to be reported, at
the right place; once, where it can be healed, it has to go on. In a calm round nothing may be
reported.
"""

import argparse
import asyncio
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

import eventhub_checkpoints as sync_names
from backends.blob import Blob
from counts import at_least_one
from crashes.harness import PROGRAM, Result, seeds_of, table, told
from eventhub_checkpoints import Stall, every
from eventhub_checkpoints import aio as aio_names
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.processing.stall import SHORTEST_SILENCE
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY
from fault_proxy import FaultProxy
from waiting import eventually

CAUSES = {
    "mute link": "link",
    "mute link, reopened": "link",
    "task lost": "link",
    "handler hangs": "handler",
    "store hangs": "store",
    "hub away": "hub",
}
"""What is done to a consumer, and where the watchdog has to see it."""
CALM = ("idle hub", "start", "drain", "slow handler", "rewind", "steady events")
"""What a consumer does in rounds in which nothing has stalled."""
KINDS = ("Checkpointer", "EventProcessor")
COLOURS = ("sync", "aio")
FOUND = (
    *("cause", "rounds", "found at the right place", "elsewhere", "not found", "went on"),
    "found after, median (max) x stalled_after",
)
ROUNDS = 48
HUB = "orders"
PATIENCE = 60.0
CALM_LIMITS = 3
"""Times `stalled_after` that a calm round lasts: what is imagined is reported after two."""


@dataclass
class Outcome:
    """Result of one round.

    Attributes:
        cause: what was done.
        colour, kind: of the consumer.
        found: where the watchdog saw a stall, in order.
        seconds: from the cause to the report, as a multiple of `stalled_after`; None: no report.
        is_healed: whether the partition went on; None: it cannot be healed.
    """

    cause: str
    colour: str
    kind: str
    found: list[str] = field(default_factory=list)
    seconds: float | None = None
    is_healed: bool | None = None

    @property
    def problems(self) -> list[str]:
        """Return what the watchdog has missed or imagined, and whether the partition stayed."""
        expected = [] if self.cause in CALM else [CAUSES[self.cause]]
        who = f"{self.cause}, {self.colour} {self.kind}"
        told = []
        if self.found[:1] != expected:
            told.append(f"{who}: found at {self.found}, expected at {expected}")
        if self.is_healed is False:
            told.append(f"{who}: it has not gone on")
        return told


class Consumer:
    """One consumer of the hub, of either class and colour.

    Attributes:
        numbers: sequence numbers that were processed, of each partition.
        is_free: whether handlers may return.
        pause: seconds that a handler takes for each event.
    """

    def __init__(
        self, colour: str, kind: str, hub: LocalHub, store: Any, limit: float, on_stall: Any
    ) -> None:
        self.is_aio, self.kind = colour == "aio", kind
        self.numbers: dict[str, list[int]] = defaultdict(list)
        self.is_free = threading.Event()
        self.is_free.set()
        self.pause = 0.0
        self.exits = False
        self.store = store
        self._hub, self._names = hub, aio_names if self.is_aio else sync_names
        self._settings = {"stalled_after": limit, "on_stall": on_stall, "drain_timeout": 4 * limit}
        self._opened = ExitStack()
        self._loop = self._opened.enter_context(Loop())

    def start(self) -> None:
        """Start to receive."""
        client: Any = AioEventHubConsumerClient if self.is_aio else EventHubConsumerClient
        make = partial(
            client.from_connection_string,
            self._hub.connection_string(HUB),
            "$Default",
            load_balancing_interval=0.3,
            partition_ownership_expiration_interval=60,
            socket_timeout=0.02,
        )
        policy, names = every(events=1), self._names
        if self.kind == "EventProcessor":
            processor = names.EventProcessor(
                make, self._processor, store=self.store, policy=policy, **self._settings
            )
            self.watched: Any = processor
            self.call(processor.start())
            self.client = processor._client
            return
        self.watched = names.Checkpointer(self.store, policy, **self._settings)
        self.client = self.call(self._made(make)) if self.is_aio else self._make(make)
        self._receiving = ThreadPoolExecutor(1)
        self._received = self._receiving.submit(self._receive)

    def _make(self, make: Callable[..., Any]) -> Any:
        return make(checkpoint_store=self.store)

    async def _made(self, make: Callable[..., Any]) -> Any:
        return make(checkpoint_store=self.store)

    def _receive(self) -> None:
        handler = self._on_event_aio if self.is_aio else self._on_event
        with suppress(SystemExit):
            result = self.client.receive(handler, starting_position="-1", **self.watched.handlers)
            if self.is_aio:
                self._task = asyncio.run_coroutine_threadsafe(result, self._loop._loop)
                with suppress(BaseException):
                    self._task.result()

    def call(self, result: Any) -> Any:
        """Return the result of a call, awaited if it is awaitable."""
        return self._loop.finished(result)

    def _processor(self, context: Any, checkpoints: Any) -> Any:
        return (AioHandler if self.is_aio else Handler)(self, context.partition_id)

    def work(self, partition_id: str, number: int) -> None:
        """Process an event."""
        time.sleep(self.pause)
        self.is_free.wait(PATIENCE)
        self.numbers[partition_id].append(number)

    async def work_aio(self, partition_id: str, number: int) -> None:
        """Process an event."""
        await asyncio.sleep(self.pause)
        while not self.is_free.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.01)
        self.numbers[partition_id].append(number)

    def _on_event(self, context: Any, event: Any) -> None:
        with self.watched.track(context, event):
            self.work(context.partition_id, event.sequence_number)
        if self.exits:
            raise SystemExit

    async def _on_event_aio(self, context: Any, event: Any) -> None:
        async with await self.watched.track(context, event):
            await self.work_aio(context.partition_id, event.sequence_number)

    def stalled(self) -> str | None:
        """Return where a partition hangs now."""
        stats = self.watched.stats().values()
        return next((each.stalled for each in stats if each.stalled), None)

    def has(self, count: int) -> bool:
        """Return whether so many events of partition 0 were processed, and saved."""
        stats = self.watched.stats().get("0")
        is_saved = stats is not None and not stats.lag_events
        return len(self.numbers["0"]) >= count and is_saved

    def lose(self) -> None:
        """End the task, or the thread, in which the client receives."""
        if not self.is_aio:
            self.exits = True
            self._hub.publish(HUB, "0", ["last"])
            self._received.result(PATIENCE)
            return
        (loop,) = self.client._event_processors.values()

        async def nothing(*args: Any) -> None: ...

        async def lose() -> None:
            close, loop._close_consumer = loop._close_consumer, nothing
            task = loop._tasks["0"]
            task.cancel()
            await asyncio.wait([task])
            loop._close_consumer = close

        self.call(lose())

    def find(self) -> None:
        """Let the client forget what it has lost, so that it can be closed."""
        if self.is_aio:
            (loop,) = self.client._event_processors.values()
            self.call(loop._consumers["0"].close())
            del loop._tasks["0"]

    def stop(self) -> None:
        """Stop, within the client's own time."""
        self.is_free.set()
        if self.kind == "EventProcessor":
            with suppress(SystemExit):
                self.call(self.watched.stop())
        else:
            self.call(self.client.close())
            if self.is_aio:
                self._task.cancel()
            self._received.result(PATIENCE)
            self._receiving.shutdown()
            self.call(self.watched.close())

    def end(self) -> None:
        """Release everything."""
        self.call(self.store.close())
        self._opened.close()


class Handler:
    """Processor of one partition."""

    def __init__(self, consumer: Consumer, partition_id: str) -> None:
        self.consumer, self.partition_id = consumer, partition_id

    def process_events(self, events: list[Any]) -> None:
        """Process events one after another."""
        for event in events:
            self.consumer.work(self.partition_id, event.sequence_number)


class AioHandler(Handler):
    """The same for asyncio."""

    async def process_events(self, events: list[Any]) -> None:  # type: ignore[override]
        """Process events one after another."""
        for event in events:
            await self.consumer.work_aio(self.partition_id, event.sequence_number)


@contextmanager
def blob_store(is_aio: bool, limit: float, server: Blob) -> Iterator[tuple[Any, FaultProxy]]:
    """Open a Blob store behind a proxy that can hang, for longer than makes a stall."""
    with FaultProxy(server.azurite.endpoint) as proxy:
        kind = AioBlobCheckpointStore if is_aio else BlobCheckpointStore
        name = f"stalls-{random.SystemRandom().randrange(10**12)}"
        settings: dict[str, Any] = {"create_container": True, "operation_timeout": 2 * limit}
        yield kind(proxy.endpoint, name, credential=EMULATOR_KEY, **settings), proxy


def run_round(seed: int, limit: float, server: Blob) -> Result:
    """Run one round.

    Raises:
        AssertionError: the consumer did not do what it should, apart from its watchdog.
    """
    rng = random.Random(seed)
    causes = [*CAUSES, *CALM]
    outcome = Outcome(causes[seed % len(causes)], rng.choice(COLOURS), rng.choice(KINDS))
    if outcome.cause == "task lost" and outcome.colour == "sync":
        outcome.kind = "Checkpointer"  # the thread of an EventProcessor ends only with it
    found: list[Stall] = []
    with ExitStack() as opened:
        hub = opened.enter_context(LocalHub({HUB: 1}))
        is_aio, proxy = outcome.colour == "aio", None
        if outcome.cause == "store hangs":
            store, proxy = opened.enter_context(blob_store(is_aio, limit, server))
        else:
            store = (aio_names if is_aio else sync_names).MemoryCheckpointStore()
        on_stall = "reopen" if outcome.cause.endswith("reopened") else found.append
        consumer = Consumer(outcome.colour, outcome.kind, hub, store, limit, on_stall)
        opened.callback(consumer.end)
        before = 0 if outcome.cause == "start" else rng.randrange(1, 20)
        hub.publish(HUB, "0", ["event"] * before)
        consumer.start()
        opened.callback(consumer.stop)
        eventually(lambda: consumer.has(before))
        time.sleep(rng.random() * limit)
        if outcome.cause in CALM:
            be_calm(outcome.cause, consumer, hub, before, limit, rng)
        else:
            stall(outcome, consumer, hub, proxy, before, limit, found)
    outcome.found = outcome.found or [each.where for each in found]
    return Result(Counter({outcome.cause: 1}), outcome.problems, outcome)


def stall(
    outcome: Outcome,
    consumer: Consumer,
    hub: LocalHub,
    proxy: FaultProxy | None,
    before: int,
    limit: float,
    found: list[Stall],
) -> None:
    """Do to a consumer what the round is about, wait for the report, and heal it."""
    began, cause, count = time.monotonic(), outcome.cause, before + 3
    if cause.startswith("mute link"):
        hub.mute_receivers(HUB)
    elif cause == "task lost":
        consumer.lose()
    elif cause == "handler hangs":
        consumer.is_free.clear()
    elif proxy is not None:
        proxy.on().hang()
    else:
        hub.refuse_connections()
        hub.drop_connections()
    hub.publish(HUB, "0", ["event"] * 3)
    with suppress(AssertionError):
        eventually(lambda: found or consumer.stalled(), 6 * limit + SHORTEST_SILENCE)
    where = found[0].where if found else consumer.stalled()
    outcome.seconds = (time.monotonic() - began) / limit if where else None
    outcome.found = [where] if where else []
    if cause == "task lost":
        consumer.find()
        return
    if cause == "mute link":
        hub.drop_connections()
    consumer.is_free.set()
    if proxy is not None:
        proxy.heal()
    hub.refuse_connections(False)
    with suppress(AssertionError):
        eventually(lambda: consumer.has(count) and not consumer.stalled(), PATIENCE)
    outcome.is_healed = consumer.has(count) and not consumer.stalled()


def be_calm(
    cause: str, consumer: Consumer, hub: LocalHub, before: int, limit: float, rng: random.Random
) -> None:
    """Let a consumer do something unusual that is not a stall, for several times the limit."""
    if cause in ("idle hub", "start"):
        time.sleep(CALM_LIMITS * limit)
    elif cause == "slow handler":
        # A batch of an EventProcessor has to end in time, not each of its events.
        consumer.pause = 0.6 * limit
        for number in range(5):
            hub.publish(HUB, "0", ["event"])
            eventually(partial(consumer.has, before + number + 1))
    elif cause == "drain":
        consumer.is_free.clear()
        hub.publish(HUB, "0", ["event"])
        time.sleep(0.2)
        with ThreadPoolExecutor(1) as pool:
            freed = pool.submit(free_after, consumer, CALM_LIMITS * limit)
            consumer.call(consumer.client.close())
            freed.result()
    elif cause == "rewind":
        names = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
        scope = (f"{hub.host}:{hub.port}", HUB, "$Default")
        row: dict[str, Any] = dict(zip(names, scope, strict=True))
        row |= {"partition_id": "0", "offset": None, "sequence_number": rng.randrange(before)}
        consumer.call(consumer.store.update_checkpoint(row, force=True))
        hub.detach_receivers(HUB)
        time.sleep(CALM_LIMITS * limit)
    else:
        end, count = time.monotonic() + CALM_LIMITS * limit, before
        while time.monotonic() < end:
            hub.publish(HUB, "0", ["event"])
            count += 1
            time.sleep(rng.random() * limit / 2)
        eventually(lambda: consumer.has(count))


def free_after(consumer: Consumer, seconds: float) -> None:
    """Let handlers return after a while."""
    time.sleep(seconds)
    consumer.is_free.set()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this scenario has."""
    parser.add_argument("--limit", type=float, default=3.0, help="stalled_after, in seconds")
    parser.add_argument(
        "--parallel", type=at_least_one, default=6, metavar="N", help="rounds at once"
    )


def results(chosen: argparse.Namespace, command: str) -> Iterator[Result]:
    """Run the chosen rounds, and yield their results."""
    seeds = seeds_of(chosen)
    with Blob() as server:
        yield from run_rounds(seeds, chosen.limit, chosen.parallel, server, command)


def run_rounds(
    seeds: range, limit: float, parallel: int, server: Blob, command: str = f"{PROGRAM} stalls"
) -> Iterator[Result]:
    """Run rounds, several at once, and yield their results.

    Args:
        seeds: of the rounds.
        limit: `stalled_after`, in seconds.
        parallel: rounds at the same time.
        server: where some of them save.
        command: repeats a round.
    """
    with ThreadPoolExecutor(parallel) as pool:
        yield from pool.map(
            lambda seed: told(command, seed, partial(run_round, seed, limit, server)), seeds
        )


def report(results: Sequence[Result]) -> str:
    """Return what was found by cause, and what was imagined without one."""
    outcomes: list[Outcome] = [result.details for result in results if result.details]
    of_cause = {
        cause: [each for each in outcomes if each.cause == cause] for cause in (*CAUSES, *CALM)
    }
    found = [row(cause, where, of_cause[cause]) for cause, where in CAUSES.items()]
    calm = [
        (cause, str(len(of_cause[cause])), str(sum(bool(each.found) for each in of_cause[cause])))
        for cause in CALM
    ]
    return "\n\n".join(
        [table([FOUND, *found]), table([("without a cause", "rounds", "false alarms"), *calm])]
    )


def row(cause: str, where: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return what was found of one cause."""
    right = sum(each.found[:1] == [where] for each in outcomes)
    missed = sum(not each.found for each in outcomes)
    healed = Counter(each.is_healed for each in outcomes)
    went_on = f"{healed[True]} of {healed[True] + healed[False]}"
    times = [each.seconds for each in outcomes if each.seconds is not None]
    return (
        cause,
        *map(str, (len(outcomes), right, len(outcomes) - right - missed, missed)),
        "ended" if cause == "task lost" else went_on,
        f"{median(times):.2f} ({max(times):.2f})" if times else "",
    )
