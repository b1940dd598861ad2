"""Callers of a hub: each is prepared while the hub is there, and calls it while it is away."""

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient
from typer.testing import CliRunner

from backends import Variant
from eventhub_checkpoints import EventProcessor, MemoryCheckpointStore, aio, open_store
from eventhub_checkpoints.arrow import read_batches
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.receive import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.ranges import ReceivePath
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.arrow import send_batches
from outages.place import EVENTS, HUB, Place
from outages.result import FOREVER, GIVEN_UP, Result

BATCH = 20
READING = ReadSettings(rows_per_batch=BATCH, prefetch=BATCH)
RANGES = tuple(OffsetRange(partition, 0, EVENTS) for partition in "01")
ROWS = [f"<{number}>" for number in range(EVENTS)]


def numbers(batches: Any) -> Counter[tuple[str, int]]:
    """Return how often each event came."""
    seen: Counter[tuple[str, int]] = Counter()
    for batch in batches:
        ids, found = batch["partition"].to_pylist(), batch["sequenceNumber"].to_pylist()
        seen.update(zip(ids, found, strict=True))
    return seen


def judge_read(seen: Counter[tuple[str, int]], result: Result) -> None:
    """Count events that were lost or read twice."""
    result.lost = len(RANGES) * EVENTS - len(seen)
    result.twice = sum(seen.values()) - len(seen)


Prepared = Callable[[Result], None]
"""Makes the call while the server is away."""


def driver(place: Place) -> Prepared:
    """Ask for the end of the next batch, over a connection that was used before."""
    from eventhub_checkpoints.spark.source.options import SourceOptions
    from eventhub_checkpoints.spark.source.stream import EventHubStreamReader

    options = {**place.options, "consumerGroup": "known", "startingPosition": "earliest"}
    reader = EventHubStreamReader(SourceOptions.parse(options))
    start = reader.latestOffset(reader.initialOffset())

    def act(result: Result) -> None:
        with suppress(LookupError):
            place.hub.publish(HUB, "0", ["more"])
        end = reader.latestOffset(start)
        result.lost = int(json.dumps(end) == json.dumps(start))

    return act


def driver_at_start(place: Place) -> Prepared:
    """Ask where a query without a checkpoint begins."""
    from eventhub_checkpoints.spark.source.options import SourceOptions
    from eventhub_checkpoints.spark.source.stream import EventHubStreamReader

    options = {**place.options, "consumerGroup": "known", "startingPosition": "earliest"}

    def act(result: Result) -> None:
        EventHubStreamReader(SourceOptions.parse(options)).initialOffset()

    return act


def task(place: Place, path: ReceivePath = "auto") -> Prepared:
    """Read ranges as a task of Spark does, over a connection that another task used before."""
    from eventhub_checkpoints.spark.source.batches import RangeTask, read_task

    settings = replace(READING, receive_path=path)
    address = place.address()
    list(read_task(RangeTask(address, (OffsetRange("0", 0, BATCH),), settings)))

    def act(result: Result) -> None:
        judge_read(numbers(read_task(RangeTask(address, RANGES, settings))), result)

    return act


def task_midway(place: Place) -> Prepared:
    """Go on with ranges that were begun before."""
    from eventhub_checkpoints.spark.source.batches import RangeTask, read_task

    batches = read_task(RangeTask(place.address(), RANGES, READING))
    seen = numbers([next(batches)])

    def act(result: Result) -> None:
        seen.update(numbers(batches))
        judge_read(seen, result)

    return act


def judge_sent(place: Place, result: Result) -> None:
    """Count events that are not in the hub, or more than once."""
    try:
        found = Counter(place.bodies())
    except LookupError:  # there is no hub any more
        return
    result.lost = EVENTS - len(found)
    result.twice = sum(found.values()) - len(found)


def sink(place: Place, path: str = "auto") -> Prepared:
    """Send rows as a task of Spark does, over a connection that another task used before."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from eventhub_checkpoints.spark.sink.writer import Writing

    schema = StructType([StructField("body", BinaryType())])
    own = {"sendPath": path, "bytesPerBatch": "500"}
    writing = Writing({**place.options, **own}, schema)
    writing.send([pa.RecordBatch.from_pydict({"body": [b"warm"]})])

    def act(result: Result) -> None:
        try:
            writing.send([pa.RecordBatch.from_pydict({"body": [row.encode() for row in ROWS]})])
        finally:
            judge_sent(place, result)

    return act


def arrow_reading(place: Place, path: ReceivePath) -> Prepared:
    """Read the hub with `read_batches`."""

    def act(result: Result) -> None:
        settings = replace(READING, receive_path=path)
        with read_batches(place.address(), settings=settings) as batches:
            judge_read(numbers(batches), result)

    return act


def arrow_sending(place: Place, path: str) -> Prepared:
    """Send rows with `send_batches`."""

    def act(result: Result) -> None:
        settings = SendSettings(send_path=path, bytes_per_batch=500)  # type: ignore[arg-type]
        try:
            send_batches(place.address(), [pa.RecordBatch.from_pydict({"body": ROWS})], settings)
        finally:
            judge_sent(place, result)

    return act


def command(place: Place) -> Prepared:
    """Run `ehcp lag`."""
    folder = tempfile.TemporaryDirectory()
    url = f"sqlite:///{folder.name}/positions.db"
    with open_store(url) as store:
        store.create()

    def act(result: Result) -> None:
        hub = place.options["connectionString"]
        words = ["lag", "--store", url, "--hub", hub, "--group", "known"]
        with folder:
            found = CliRunner().invoke(app, words, catch_exceptions=True)
        if found.exit_code:
            raise found.exception or RuntimeError(found.output)

    return act


class Readings:
    """What a consumer that never gives up has read, and when it said what.

    Attributes:
        seen: how often each event came.
        times: seconds after which something was said first, by what was said.
    """

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, int]] = Counter()
        self.times: dict[str, float] = {}
        self._began = time.monotonic()

    def say(self, what: str) -> None:
        """Keep when something is said for the first time."""
        self.times.setdefault(what, time.monotonic() - self._began)

    def report(self, _partition: Any, _error: Exception) -> None:
        """Keep when `on_error` was called first."""
        self.say("told")

    def wait(self, result: Result, is_healthy: Callable[[], bool]) -> None:
        """Wait until all events came; if they never can, until that was said."""
        until = self._began + (GIVEN_UP - 30 if result.seconds == FOREVER else GIVEN_UP)
        while len(self.seen) < len(RANGES) * EVENTS and time.monotonic() < until:
            if not is_healthy():
                self.say("unhealthy")
                if result.seconds == FOREVER:
                    break
            time.sleep(0.05)
        if result.seconds != FOREVER:
            judge_read(self.seen, result)

    def __str__(self) -> str:
        return ", ".join(f"{key} after {value:.0f} s" for key, value in self.times.items())


def processor(place: Place, variant: Variant) -> Prepared:
    """Start an event processor, and look when it is unhealthy and reports that."""

    def act(result: Result) -> None:
        reading = Readings()

        class Keeping:
            def __init__(self, context: Any, _checkpoints: Any) -> None:
                self._id = context.partition_id

            def keep(self, events: list[Any]) -> None:
                reading.seen.update((self._id, event.sequence_number) for event in events)

        class Processing(Keeping):
            def process_events(self, events: list[Any]) -> None:
                self.keep(events)

        class AioProcessing(Keeping):
            async def process_events(self, events: list[Any]) -> None:
                self.keep(events)

        make: Any = EventProcessor if variant == "sync" else aio.EventProcessor
        store: Any = MemoryCheckpointStore if variant == "sync" else aio.MemoryCheckpointStore
        kind = EventHubConsumerClient if variant == "sync" else AioConsumerClient
        with Loop() as loop:
            running = make(
                partial(place.consumer, kind, load_balancing_interval=5),
                Processing if variant == "sync" else AioProcessing,
                store=store(),
                on_error=reading.report,
            )

            async def healthy() -> bool:
                return bool(running.healthy())

            loop.finished(running.start())
            try:
                reading.wait(result, lambda: loop.finished(healthy()))
            finally:
                result.notes = str(reading)
                loop.finished(running.stop())

    return act


def consumer(place: Place) -> Prepared:
    """Receive with the client and one of our stores, and save each position."""

    def act(result: Result) -> None:
        reading = Readings()

        def keep(context: Any, event: Any) -> None:
            reading.seen[context.partition_id, event.sequence_number] += 1
            context.update_checkpoint(event)

        client = place.consumer(
            EventHubConsumerClient,
            checkpoint_store=MemoryCheckpointStore(),
            load_balancing_interval=5,
        )
        receive = partial(client.receive, keep, on_error=reading.report, starting_position="-1")
        running = threading.Thread(target=receive, daemon=True)
        running.start()
        try:
            # The client has no health; what it has is `on_error`.
            reading.wait(result, lambda: "told" not in reading.times)
        finally:
            result.notes = str(reading)
            client.close()
            running.join()

    return act


HUB_CALLERS: dict[str, Callable[[Place], Prepared]] = {
    "driver": driver,
    "driver at start": driver_at_start,
    "task": task,
    "task midway": task_midway,
    "task, public path": partial(task, path="public"),
    "sink": sink,
    "sink, public path": partial(sink, path="public"),
    "read_batches": partial(arrow_reading, path="auto"),
    "send_batches": partial(arrow_sending, path="auto"),
    "ehcp lag": command,
    "EventProcessor": partial(processor, variant="sync"),
    "aio EventProcessor": partial(processor, variant="aio"),
    "consumer": consumer,
}
PATIENT = ("EventProcessor", "aio EventProcessor", "consumer")
"""Callers that wait for ever, and say so."""
