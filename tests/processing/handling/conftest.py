"""Event processors of either variant, whose methods do what a test has written down once."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pytest

from eventhub_checkpoints import EventProcessor, every
from eventhub_checkpoints.aio import EventProcessor as AioEventProcessor
from simulated_time import POLL
from waiting import eventually

INTERVAL = 0.2
"""Seconds between two rounds of load balancing."""
OFTEN = every(events=1)
DRAIN = 5.0
"""Seconds that the end of a test waits for what the test has left unfinished."""

Steps = Generator[Any, Any, None]
"""What a method does: it waits until a function that it yields is true, and gets what an awaitable
that it yields, or a plain value, comes to."""


def run_steps(steps: Steps) -> None:
    value = None
    with suppress(StopIteration):
        while True:
            step = steps.send(value)
            value = None if callable(step) else step
            if callable(step):
                eventually(step)


async def run_aio_steps(steps: Steps) -> None:
    send: Callable[[], Any] = partial(steps.send, None)
    with suppress(StopIteration):
        while True:
            step = send()
            try:
                value = await step if inspect.isawaitable(step) else step
                while callable(step) and not step():  # noqa: ASYNC110 - another thread acts
                    await asyncio.sleep(POLL)
            except (Exception, asyncio.CancelledError) as error:
                send = partial(steps.throw, error)
            else:
                send = partial(steps.send, None if callable(step) else value)


class Deeds:
    """What the methods of processors do, and what they did.

    Attributes:
        log: in order: `(name, partition, ...)` of what was called and ended, and what the store of
            the processors was asked.
        steps: by the name of a method, what it does: given the object and its arguments.
        errors: what `on_error` was given.
        made: the objects, in the order in which they were made.
    """

    def __init__(self, log: list[tuple[Any, ...]]) -> None:
        self.log = log
        self.steps: dict[str, Callable[..., Steps]] = {}
        self.errors: list[tuple[str | None, Exception]] = []
        self.made: list[Any] = []

    def do(self, name: str, one: Any, *args: Any) -> Steps:
        given = [event.sequence_number for event in args[0]] if name == "process_events" else args
        what = given if name == "process_events" else [getattr(a, "name", a) for a in given]
        self.log.append((name, one.partition_id, *what))
        if name in self.steps:
            yield from self.steps[name](one, *args)
        self.log.append((f"{name} ended", one.partition_id, *what))

    def hold(self, name: str, gate: threading.Event) -> None:
        """Have a method wait for a gate."""

        def steps(one: Any, *args: Any) -> Steps:
            yield gate.is_set

        self.steps[name] = steps

    def error(self, partition_id: str | None, error: Exception) -> None:
        self.errors.append((partition_id, error))

    def all(self, name: str, partition_id: str = "0") -> list[tuple[Any, ...]]:
        """The arguments of all calls of a name."""
        return [entry[2:] for entry in list(self.log) if entry[:2] == (name, partition_id)]

    def numbers(self, name: str = "process_events", partition_id: str = "0") -> list[int]:
        """The sequence numbers that were given, or with `process_events ended` processed."""
        return [number for entry in self.all(name, partition_id) for number in entry]

    def names(self) -> list[str]:
        """The names of what was logged, in order."""
        return [entry[0] for entry in list(self.log)]


class One:
    """A processor."""

    def __init__(self, deeds: Deeds, context: Any, checkpoints: Any) -> None:
        self.deeds = deeds
        self.context = context
        self.checkpoints = checkpoints
        self.partition_id = context.partition_id
        deeds.made.append(self)


class SyncOne(One):
    def initialize(self) -> None:
        run_steps(self.deeds.do("initialize", self))

    def process_events(self, events: list[Any]) -> None:
        run_steps(self.deeds.do("process_events", self, events))

    def process_error(self, error: Exception) -> None:
        run_steps(self.deeds.do("process_error", self, error))

    def close(self, reason: Any) -> None:
        run_steps(self.deeds.do("close", self, reason))


class AioOne(One):
    async def initialize(self) -> None:
        await run_aio_steps(self.deeds.do("initialize", self))

    async def process_events(self, events: list[Any]) -> None:
        await run_aio_steps(self.deeds.do("process_events", self, events))

    async def process_error(self, error: Exception) -> None:
        await run_aio_steps(self.deeds.do("process_error", self, error))

    async def close(self, reason: Any) -> None:
        await run_aio_steps(self.deeds.do("close", self, reason))


class Run:
    """An event processor, called from a test.

    Attributes:
        processor: it.
        deeds: what its objects did.
    """

    def __init__(self, processor: Any, deeds: Deeds, stage: Any) -> None:
        self.processor = processor
        self.deeds = deeds
        self._stage = stage

    def call(self, name: str, *args: Any) -> Any:
        """Call a method, and wait for it."""
        return self._stage.finished(getattr(self.processor, name)(*args))

    def begin(self, name: str, *args: Any) -> Any:
        """Call a method beside the test; what has its result."""
        return self._stage.begin(getattr(self.processor, name), *args)


class Site:
    """Where processors of one variant run.

    Attributes:
        hub: what they read.
        is_aio: their variant.
        opened: what is closed after the test.
    """

    def __init__(self, stage: Any, loop: Any, opened: ExitStack) -> None:
        self.stage = stage
        self.hub = stage.hub
        self.is_aio: bool = stage.is_aio
        self.loop = loop
        self.opened = opened

    def processor(self, store: Any, deeds: Deeds | None = None, **options: Any) -> Run:
        """A processor that is stopped after the test; its objects do `deeds`, or are given."""
        deeds = deeds or Deeds(store.log)
        settings = {"load_balancing_interval": INTERVAL, **options.pop("client", {})}
        arguments = self.stage.arguments(None, **settings)
        del arguments["checkpoint_store"]
        client: Any = self.stage.client_kind
        kinds: Any = (AioEventProcessor, AioOne) if self.is_aio else (EventProcessor, SyncOne)
        kind, one = kinds
        options = {"policy": OFTEN, "on_error": deeds.error, "drain_timeout": DRAIN, **options}
        maker: Any = partial(client.from_connection_string, **arguments)
        if callable(connection_string := arguments["conn_str"]):

            def maker(**options: Any) -> Any:
                settings = {**arguments, **options, "conn_str": connection_string()}
                return client.from_connection_string(**settings)

        if "credential" in arguments:
            del arguments["conn_str"]
            maker = partial(client, **{**self.hub.client_arguments("orders"), **arguments})
        objects = options.pop("processor", partial(one, deeds))
        made = kind(maker, objects, store=store, **options)
        run = Run(made, deeds, self.stage)
        self.opened.callback(self._stopped, run)
        return run

    @staticmethod
    def _stopped(run: Run) -> None:
        run.deeds.steps.clear()
        with suppress(Exception, SystemExit):
            run.call("stop")

    def started(self, store: Any, deeds: Deeds | None = None, **options: Any) -> Run:
        """The same, started."""
        run = self.processor(store, deeds, **options)
        run.call("start")
        return run

    def publish(self, count: int, partition_id: str = "0") -> None:
        """So many events more in a partition."""
        self.hub.publish("orders", partition_id, ["event"] * count)

    def row(self, store: Any, partition_id: str = "0") -> Any:
        """The stored position of a partition; None: there is none."""
        for scope in self.loop.finished(store.inner.list_scopes()):
            for row in self.loop.finished(store.inner.list_checkpoints(*scope)):
                if row["partition_id"] == partition_id:
                    return row["sequence_number"]
        return None

    def owners(self, store: Any) -> dict[str, str]:
        """The owner of each partition; `""` where it is released."""
        return {
            row["partition_id"]: row["owner_id"]
            for scope in self.loop.finished(store.inner.list_scopes())
            for row in self.loop.finished(store.inner.list_ownership(*scope))
        }


@pytest.fixture
def site(stage: Any, loop: Any) -> Iterator[Site]:
    with ExitStack() as opened:
        yield Site(stage, loop, opened)


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """Not set; set after the test, so that nothing hangs on."""
    gate = threading.Event()
    yield gate
    gate.set()
