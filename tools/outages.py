"""Try what each caller does while a hub or a store is away, or refuses: how long, and what is said.

    python -m outages                                               every cell: more than an hour
    python -m outages --callers driver sink --faults refused --seconds 12

A trial makes one call through a gate in front of a server. The gate fails in one way, and recovers
after some seconds or never. A line says how long the call took, how it ended, what the log said,
and how many events were lost or came twice; `problems` compares that with what is documented.
"""

import argparse
import asyncio
import json
import logging
import multiprocessing
import socket
import struct
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pyarrow as pa
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient
from typer.testing import CliRunner

from backends import BACKENDS, VARIANTS, Variant
from counts import at_least_one
from eventhub_checkpoints import EventProcessor, MemoryCheckpointStore, aio, open_store
from eventhub_checkpoints.arrow import read_batches
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.ranges import ReceivePath
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.arrow import send_batches
from tcp_servers import HOST, Passage

HUB, EVENTS, BATCH = "orders", 200, 20
NAMESPACE = "outages.servicebus.windows.net"
KEY = "SharedAccessKeyName=n;SharedAccessKey=a2V5"
FOREVER = float("inf")
GIVEN_UP = 200.0
"""Seconds after which a call that does not end is abandoned."""
OPERATION, REACH = 60.0, 5.0
"""Documented limits: of an operation, and of a person's wait for a server that is not there."""
SLACK = 15.0
"""Seconds that a busy machine, and the last attempt, may add."""

AWAY = ("refused", "reset", "mute", "unknown", "handshake")
"""Faults that are an outage: refused and reset connections, silence, a host name that does not
resolve, and something that does not speak TLS."""
ANSWERS = ("key", "hub", "untrusted")
"""Refusals: of the key, of a hub that does not exist; and a certificate that is not trusted."""


class Gate(Passage):
    """Forwards connections to a server, unless it fails in one of the ways in `AWAY`.

    Attributes:
        attempts: connections that were accepted while it failed.
    """

    def __init__(self, backend: tuple[str, int]) -> None:
        self._flow = asyncio.Event()
        self._fault = ""
        self.attempts = 0
        super().__init__(backend)
        self._loop.call_soon_threadsafe(self._flow.set)

    def fail(self, fault: str) -> None:
        """Begin to fail; open connections are affected, too."""
        self._fault = fault
        if fault == "mute":
            self._loop.call_soon_threadsafe(self._flow.clear)
            return
        self.down()
        if fault in ("reset", "handshake"):
            self.up()

    def heal(self) -> None:
        """Forward connections again; what a mute gate has kept is forwarded, too."""
        self._fault = ""
        self._loop.call_soon_threadsafe(self._flow.set)
        self.up()

    @property
    def is_unknown(self) -> bool:
        """Return whether no name resolves."""
        return self._fault == "unknown"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts += bool(self._fault)
        if self._fault == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        elif self._fault == "handshake":
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
            await writer.drain()
        else:
            await super()._serve(reader, writer)

    async def _inwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        await self._carried(source, sink)

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        await self._carried(source, sink)

    async def _carried(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(self._piece):
            await self._flow.wait()
            sink.write(data)
            await sink.drain()


@contextmanager
def resolving(gate: Gate) -> Iterator[None]:
    """Let no name resolve while the gate says so."""
    resolve = socket.getaddrinfo

    def unless_unknown(*arguments: Any, **named: Any) -> Any:
        if gate.is_unknown:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(*arguments, **named)

    with patch.object(socket, "getaddrinfo", unless_unknown):
        yield


@dataclass
class Result:
    """What came of a trial.

    Attributes:
        caller, fault, seconds: of the trial.
        took: seconds from the fault until the call ended.
        error: what it said; "" if it succeeded.
        said: lines in the log, of WARNING and above.
        lost, twice: numbers of events.
        notes: more that the caller observed, such as when it was unhealthy.
    """

    caller: str
    fault: str
    seconds: float
    took: float = 0.0
    error: str = ""
    said: list[str] = field(default_factory=list)
    lost: int = 0
    twice: int = 0
    notes: str = ""

    def __str__(self) -> str:
        lasted = "for ever" if self.seconds == FOREVER else f"{self.seconds:g} s"
        ended = self.error or "went on"
        said = f"; log: {len(self.said)} x {self.said[0]}" if self.said else "; log: nothing"
        counts = f"lost {self.lost}, twice {self.twice}"
        notes = f"; {self.notes}" if self.notes else ""
        return (
            f"{self.caller:<22} {self.fault:<10} {lasted:<8} {self.took:6.1f} s  {counts}{notes}; "
            f"{ended}{said}"
        )


class LogLines(logging.Handler):
    """Keeps what this package says in the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@dataclass
class Place:
    """Hub behind a gate, with events, and how callers reach it.

    Attributes:
        hub: the hub.
        gate: in front of it.
        options: of Spark, for an address through the gate.
    """

    hub: LocalHub
    gate: Gate
    options: dict[str, str]

    def address(self, group: str = "known") -> HubAddress:
        """Return the address through the gate."""
        from eventhub_checkpoints.spark.options import parse_hub

        address = parse_hub({**self.options, "consumerGroup": group})
        assert isinstance(address, HubAddress)
        return address

    def consumer(self, kind: Any, **own: Any) -> Any:
        """Return a client of a kind through the gate."""
        return self.address()._open_consumer(kind, **own)

    def bodies(self) -> list[str]:
        """Return what was sent to the hub, besides its own events."""

        def work(server: Any) -> list[bytes]:
            hub = server.find(HUB)
            logs = [hub.partition(each) for each in hub.partition_ids]
            return [payload for log in logs for payload in log.payloads]

        payloads = b"".join(self.hub._call(work))
        return [
            name
            for name in (f"<{n}>" for n in range(EVENTS))
            for _ in range(payloads.count(name.encode()))
        ]


@contextmanager
def opened(fault: str) -> Iterator[Place]:
    """Yield a hub behind a gate; it speaks TLS if the fault is one of TLS."""
    tls = fault in ("handshake", "untrusted")
    with ExitStack() as stack:
        hub = stack.enter_context(
            LocalHub({HUB: 2}, consumer_groups=["known"], tls=tls, namespace=NAMESPACE)
        )
        gate = stack.enter_context(Gate((HOST, hub.port)))
        stack.enter_context(resolving(gate))
        for partition in hub.partition_ids(HUB):
            hub.publish(HUB, partition, [f"event {number}" for number in range(EVENTS)])
        if not tls:
            text = hub.connection_string(HUB).replace(f":{hub.port};", f":{gate.port};")
            yield Place(hub, gate, {"connectionString": text})
            return
        yield Place(
            hub,
            gate,
            {
                "fullyQualifiedNamespace": NAMESPACE,
                "eventHubName": HUB,
                "credential": KEY,
                "transportType": "Amqp",
                "customEndpointAddress": f"sb://{HOST}:{gate.port}",
                "connectionVerify": hub.ca_file,
            },
        )


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
PERSON = ("ehcp lag", "create", "verify")
"""Callers that wait for a refused connection or an unknown host no longer than `REACH`."""

STORES = ("blob", "postgres", "redis")
CALLS = ("create", "verify", "list", "write")
STORE_CALLERS = [" ".join(words) for words in product(STORES, VARIANTS, CALLS)]


def store_call(
    name: str, variant: Variant, call: str, *, stack: ExitStack
) -> tuple[Gate, Prepared]:
    """Return a gate in front of a server, and a call of a store behind it."""
    place = stack.enter_context(stack.enter_context(BACKENDS[name]()).place())
    address = urlsplit(place.url)
    gate = stack.enter_context(Gate((address.hostname or HOST, address.port or 0)))
    stack.enter_context(resolving(gate))
    url = place.url.replace(f"{address.hostname}:{address.port}", f"{HOST}:{gate.port}", 1)
    loop = stack.enter_context(Loop())
    store: Any = (aio.open_store if variant == "aio" else open_store)(url)
    client = Client(store, Scope("ns", HUB, "$Default"), loop)
    stack.callback(client.close)

    def act(result: Result) -> None:
        if call == "list":
            client.list_checkpoints()
        elif call == "write":
            client.save("0", 1)
        else:
            client.call(call)

    return gate, act


def refuse(place: Place, fault: str, stack: ExitStack) -> None:
    """Let the hub refuse what the fault says, now and on open connections."""
    if fault == "key":
        place.hub.refuse_tokens()
    elif fault == "hub":
        place.hub.delete(HUB)
    elif fault == "untrusted":
        other = SelfMadeAuthority([HOST, NAMESPACE])
        stack.callback(other.close)
        stranger = socket.create_server((HOST, 0))
        stack.callback(stranger.close)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = stranger.accept()
                    with suppress(OSError):
                        other.context().wrap_socket(accepted, server_side=True).close()

        threading.Thread(target=serve, daemon=True).start()
        place.gate.backend = (HOST, stranger.getsockname()[1])
    place.gate.down()
    place.gate.up()


def try_one(caller: str, fault: str, seconds: float) -> Result:
    """Make one trial, and return what came of it."""
    result, lines = Result(caller, fault, seconds), LogLines()
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if caller in HUB_CALLERS:
            place = stack.enter_context(opened(fault))
            gate, act = place.gate, HUB_CALLERS[caller](place)
        else:
            name, variant, call = caller.split()
            gate, act = store_call(name, variant, call, stack=stack)  # type: ignore[arg-type]
        logging.getLogger("eventhub_checkpoints").addHandler(lines)
        if fault in AWAY:
            gate.fail(fault)
        else:
            refuse(place, fault, stack)
        timer = threading.Timer(0 if seconds == FOREVER else seconds, gate.heal)
        if seconds != FOREVER and fault in AWAY:
            timer.start()
            stack.callback(timer.join)
            stack.callback(timer.cancel)
        ended = threading.Event()

        def run() -> None:
            try:
                act(result)
            except Exception as error:
                # What an error reports is not lost: it can be read or sent again.
                result.error, result.lost = f"{type(error).__name__}: {error}", 0
            result.took = time.monotonic() - began
            ended.set()

        began = time.monotonic()
        threading.Thread(target=run, daemon=True).start()
        if not ended.wait(GIVEN_UP):
            result.took, result.error = GIVEN_UP, "did not end"
        result.said = list(lines.lines)
        gate.heal()
    return result


def limits(caller: str, fault: str) -> float:
    """Return the documented seconds for which a caller waits out a fault."""
    if caller in PATIENT:
        return FOREVER
    of_store = 10.0 if caller.endswith("write") else 30.0
    longest = OPERATION if caller in HUB_CALLERS else of_store
    is_person = caller.endswith(PERSON)
    return REACH if is_person and fault in ("refused", "unknown") else longest


def problems(result: Result) -> list[str]:
    """Return in what a result differs from what is documented."""
    found = []
    limit = limits(result.caller, result.fault)
    if result.caller in PATIENT and result.seconds == FOREVER:
        if "unhealthy" not in result.notes:
            found.append("what waits for ever says so")
    elif result.fault in ANSWERS:
        if not result.error or result.took > SLACK:
            found.append("a refusal is an error at once")
    elif result.seconds < limit - SLACK:
        if result.error:
            found.append(f"an outage of {result.seconds:g} s is waited out")
        if result.lost:
            found.append(f"{result.lost} events are lost")
        if result.twice and "sink" not in result.caller and "send" not in result.caller:
            found.append(f"{result.twice} events came twice")
    elif (
        result.seconds == FOREVER
        and limit != FOREVER
        and (not result.error or result.took > 2 * limit + SLACK)
    ):
        found.append(f"an outage that stays is an error after {limit:g} s")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Try the chosen cells, several at a time; return how many differ from what is documented."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    callers = [*HUB_CALLERS, *STORE_CALLERS]
    parser.add_argument("--callers", nargs="+", choices=callers, default=callers)
    parser.add_argument("--faults", nargs="+", choices=[*AWAY, *ANSWERS], default=[*AWAY, *ANSWERS])
    parser.add_argument("--seconds", nargs="+", type=float, default=[3, 12, 45, FOREVER])
    parser.add_argument("--at-once", type=at_least_one, default=4, help="trials at the same time")
    chosen = parser.parse_args(arguments)
    cells = [
        (caller, fault, seconds)
        for caller, fault in product(chosen.callers, chosen.faults)
        for seconds in (chosen.seconds if fault in AWAY else [FOREVER])
        if caller in HUB_CALLERS or fault in AWAY[:4]
        if caller != "ehcp lag" or fault not in ("handshake", "untrusted")
    ]
    spawn = multiprocessing.get_context("spawn")
    count = 0
    with ProcessPoolExecutor(chosen.at_once, mp_context=spawn, max_tasks_per_child=1) as pool:
        for future in [pool.submit(try_one, *cell) for cell in cells]:
            result = future.result()
            wrong = problems(result)
            count += bool(wrong)
            print(result, *(f"\n    WRONG: {each}" for each in wrong), flush=True)
    print(f"{len(cells)} trials, {count} of them differ from what is documented")
    return min(count, 1)


if __name__ == "__main__":
    raise SystemExit(main())
