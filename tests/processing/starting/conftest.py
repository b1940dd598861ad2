"""Event processors of either variant on a local hub: where they start, go on, and end."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from eventhub_checkpoints import EventProcessor, every
from eventhub_checkpoints.aio import EventProcessor as AioEventProcessor
from eventhub_checkpoints.processing._async import position_validator as aio_position_validator
from eventhub_checkpoints.processing._sync import position_validator
from simulated_time import POLL
from variants import SIMULATED
from waiting import LIMIT

OFTEN = every(events=1)
INTERVAL = 0.2
AGAIN = 0.1
"""Seconds of real time before a hub is asked again whether it lacks a position."""


class Seen:
    """What the processors of one run were told.

    Attributes:
        events: sequence numbers of each partition, in the order of arrival.
        opened: partitions as they were opened.
        closed: partitions as they were closed.
        errors: what `on_error` was given.
        is_free: whether handlers may return.
    """

    def __init__(self) -> None:
        self.events: dict[str, list[int]] = defaultdict(list)
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.errors: list[tuple[str | None, Exception]] = []
        self.is_free = threading.Event()
        self.is_free.set()

    def has(self, *numbers: int, partition_id: str = "0") -> bool:
        """Whether these events have arrived."""
        return set(numbers) <= set(self.events[partition_id])

    def error(self, partition_id: str | None, error: Exception) -> None:
        self.errors.append((partition_id, error))


class Handler:
    def __init__(self, seen: Seen, context: Any, checkpoints: Any) -> None:
        self.seen = seen
        self.partition_id = context.partition_id

    def initialize(self) -> None:
        self.seen.opened.append(self.partition_id)

    def process_events(self, events: list[Any]) -> None:
        self.seen.events[self.partition_id].extend(event.sequence_number for event in events)
        assert self.seen.is_free.wait(LIMIT)

    def close(self, reason: Any) -> None:
        self.seen.closed.append(self.partition_id)


class AioHandler(Handler):
    async def initialize(self) -> None:  # type: ignore[override]
        super().initialize()

    async def process_events(self, events: list[Any]) -> None:  # type: ignore[override]
        self.seen.events[self.partition_id].extend(event.sequence_number for event in events)
        while not self.seen.is_free.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(POLL)

    async def close(self, reason: Any) -> None:  # type: ignore[override]
        super().close(reason)


class Run:
    """One event processor over a store.

    Attributes:
        seen: what its handlers were told; it lives over several starts.
        store: where it saves.
        default: makes handlers that tell `seen`.
        processor: the event processor.
    """

    def __init__(self, stage: Any, store: Any, client: Any, **options: Any) -> None:
        self._finished, self._begin = stage.finished, stage.begin
        self.seen = Seen()
        options = {"policy": OFTEN, "on_error": self.seen.error, **options}
        kind = AioEventProcessor if stage.is_aio else EventProcessor
        self.store = store
        self.default = partial(AioHandler if stage.is_aio else Handler, self.seen)
        handler = options.pop("handler", self.default)
        self.processor: Any = kind(client, handler, store=store, **options)

    def start(self) -> "Run":
        self._finished(self.processor.start())
        return self

    def stop(self, timeout: float | None = None) -> None:
        self._finished(self.processor.stop(timeout))

    def begin(self, name: str, *args: Any) -> Any:
        """Call a method beside the test; what has its result."""
        return self._begin(getattr(self.processor, name), *args)

    def run(self) -> None:
        self._finished(self.processor.run())


class Runs:
    """Makes event processors of one variant, and stores for them."""

    def __init__(self, stage: Any, opened: ExitStack, group: str = "$Default") -> None:
        self.stage = stage
        self.hub = stage.hub
        self.names = {
            "fully_qualified_namespace": stage.namespace,
            "eventhub_name": "orders",
            "consumer_group": group,
        }
        self.client_kind: Any = stage.client_kind
        self._opened = opened

    def within(self, group: str) -> "Runs":
        """The same in another consumer group."""
        return Runs(self.stage, self._opened, group)

    def maker(self, kind: Any = None, **settings: Any) -> Callable[..., Any]:
        """What makes a client of the hub, given its store."""
        settings = {"consumer_group": self.names["consumer_group"], **settings}
        settings = {"load_balancing_interval": INTERVAL, **settings}
        arguments = self.stage.arguments(None, **settings)
        del arguments["checkpoint_store"]
        return partial((kind or self.client_kind).from_connection_string, **arguments)

    def ready(self, store: Any) -> Any:
        """A client that is closed after the test."""
        made = self.maker()(checkpoint_store=store)
        self._opened.callback(lambda: self.stage.finished(made.close()))
        return made

    def make(self, store: Any, client: Any = None, **options: Any) -> Run:
        """An event processor; it is stopped after the test, if the test does not."""
        run = Run(self.stage, store, client or self.maker(), **options)

        def stop() -> None:
            run.seen.is_free.set()
            run.stop()

        self._opened.callback(stop)
        return run

    def start(self, store: Any, client: Any = None, **options: Any) -> Run:
        """The same, started."""
        return self.make(store, client, **options).start()

    def publish(self, count: int, partition_id: str = "0") -> str:
        """So many events; the offset of the last."""
        self.stage.publish(count, partition_id)
        return str(self.hub.partition_properties("orders", partition_id).last_offset)

    def save(self, store: Any, number: int, offset: str | None, partition_id: str = "0") -> None:
        """Store a position as another process did earlier."""
        row = {"partition_id": partition_id, "sequence_number": number, "offset": offset}
        self.stage.finished(store.update_checkpoint({**self.names, **row}))

    def saved(self, store: Any) -> dict[str, int]:
        """Sequence numbers that are stored, by partition."""
        rows = self.stage.finished(store.list_checkpoints(*self.names.values()))
        return {row["partition_id"]: row["sequence_number"] for row in rows}

    def owned(self, store: Any) -> list[str]:
        """Partitions that somebody owns."""
        rows = self.stage.finished(store.list_ownership(*self.names.values()))
        return sorted(row["partition_id"] for row in rows if row["owner_id"])

    def take(self, store: Any, owner: str, partition_id: str = "0") -> None:
        """Have another owner take a partition, or leave it: `""`."""

        def claimed() -> Any:
            rows = self.stage.finished(store.list_ownership(*self.names.values()))
            claims = [
                {**row, "owner_id": owner} for row in rows if row["partition_id"] == partition_id
            ]
            return self.stage.finished(store.claim_ownership(claims))

        self.stage.eventually(
            claimed
        )  # a claim is lost where the owner renews between the list and it


@pytest.fixture(autouse=True)
def asks_soon(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the local hub again soon: it counts an event before it delivers it."""
    if variant != SIMULATED:
        for module in (position_validator, aio_position_validator):
            monkeypatch.setattr(module, "CONFIRM_AFTER", AGAIN)


@pytest.fixture
def runs(stage: Any) -> Iterator[Runs]:
    with ExitStack() as opened:
        yield Runs(stage, opened)
