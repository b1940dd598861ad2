"""Every sample runs without Azure, as a reader runs it; a second run goes on after the first."""

import json
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from otlp_collector import Collector, attributes
from running import Running
from waiting import eventually

pytestmark = pytest.mark.long

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
PARTITIONS = ["0", "1"]
FIRST, SECOND = 20, 5
"""Events of each partition before the first run, and after it."""


class Place:
    """A hub and a container, and how a sample is run against them."""

    def __init__(self, hub: LocalHub, container: Any, folder: Path) -> None:
        self.hub = hub
        self.container = container
        self.folder = folder
        self.store_url = container.url

    def publish(self, count: int, enqueued_time: datetime | None = None, **options: Any) -> None:
        """So many events in each partition."""
        options["enqueued_time"] = enqueued_time
        for partition_id in PARTITIONS:
            self.hub.publish("orders", partition_id, ["event"] * count, **options)

    def save(self, url: str, sequence_number: int) -> None:
        """Checkpoint every partition, as a consumer would."""
        row = {
            "fully_qualified_namespace": self.hub.endpoint.removeprefix("sb://"),
            "eventhub_name": "orders",
            "consumer_group": "$Default",
        }
        with open_store(url) as store:
            store.create()
            for partition_id in PARTITIONS:
                position = {"offset": None, "sequence_number": sequence_number}
                store.update_checkpoint(row | position | {"partition_id": partition_id})

    @contextmanager
    def started(self, *words: str | Path, logs: str | None = None) -> Iterator[Running]:
        """A Python program that runs, and that is to end without an error.

        Args:
            words: its file, and what it is started with.
            logs: the one error whose tracebacks it logs; None: it logs no traceback.
        """
        environment = {
            "EVENTHUB_CONNECTION_STRING": self.hub.connection_string("orders"),
            "CHECKPOINT_STORE": self.store_url,
            "RESULTS_DATABASE": "sqlite:///results.db",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONUNBUFFERED": "1",
        }
        with (self.folder / "errors").open("w+") as file:
            with Running([sys.executable, *words], self.folder, environment, file) as running:
                yield running
            file.seek(0)
            errors = file.read()
        assert running.process.returncode == 0, running.printed + errors
        expected = 0 if logs is None else errors.count(logs)
        assert errors.count("Traceback") == expected, errors

    def run(self, *words: str | Path) -> str:
        """What a program prints that ends by itself."""
        with self.started(*words) as running:
            running.end()
        return running.printed

    def run_to(
        self,
        last: int,
        *words: str | Path,
        partitions: Sequence[str] = PARTITIONS,
        logs: str | None = None,
    ) -> str:
        """What a consumer prints that gets Ctrl-C once it has processed these partitions so far."""
        with self.started(*words, logs=logs) as running:
            running.until(
                lambda printed: all(last in processed(printed)[each] for each in partitions)
            )
            running.stop(signal.SIGINT)
        return running.printed


@pytest.fixture
def place(blob_container: Any, tmp_path: Path) -> Any:
    with LocalHub({"orders": len(PARTITIONS)}) as hub:
        yield Place(hub, blob_container, tmp_path)


def processed(printed: str) -> defaultdict[str, list[int]]:
    """The sequence numbers that a consumer has printed, by partition."""
    found = defaultdict(list)
    lines = re.findall(r"^partition (\d+): (\d+)(?: to (\d+))?$", printed, re.MULTILINE)
    for partition_id, first, last in lines:
        found[partition_id] += range(int(first), int(last or first) + 1)
    return found


def all_from(begin: int, end: int) -> dict[str, list[int]]:
    """Every sequence number before the end, of each partition."""
    return {partition_id: [*range(begin, end)] for partition_id in PARTITIONS}


def consumes(place: Place, sample: Path, *arguments: str) -> str:
    """What the first run has printed."""
    place.publish(FIRST)
    printed = place.run_to(FIRST - 1, sample, *arguments)
    assert processed(printed) == all_from(0, FIRST)
    place.publish(SECOND)
    end = FIRST + SECOND
    assert processed(place.run_to(end - 1, sample, *arguments)) == all_from(FIRST, end)
    return printed


def consumes_with_a_file(place: Place, sample: Path) -> None:
    place.store_url = "sqlite:///checkpoints.db"
    consumes(place, sample)
    assert (place.folder / "checkpoints.db").exists()


def coalesces(place: Place, sample: Path) -> None:
    summary = rf"partition (\d): {FIRST} checkpoints, [12] writes"
    assert sorted(re.findall(summary, consumes(place, sample))) == PARTITIONS


def finishes_in_any_order(place: Place, sample: Path) -> None:
    for begin, count in ((0, FIRST), (FIRST, SECOND)):
        place.publish(count)
        printed = processed(place.run_to(begin + count - 1, sample))
        in_order = {partition_id: sorted(numbers) for partition_id, numbers in printed.items()}
        assert in_order == all_from(begin, begin + count)
        assert count == SECOND or printed != in_order


def buries_what_fails(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    assert "0 dead letters" in place.run_to(FIRST - 1, sample)
    place.hub.publish("orders", "0", ["event", "poison", "event"])
    logs = "ValueError: nobody can process this event"
    printed = place.run_to(FIRST + 2, sample, partitions=["0"], logs=logs)
    assert processed(printed) == {"0": [FIRST, FIRST + 2]}
    assert "partition 0: 2 events, SHUTDOWN" in printed
    assert f"1 dead letters: [('0', {FIRST + 1})]" in printed


def ends_on_sigterm(place: Place, sample: Path) -> None:
    """The second run begins right behind what the first has finished."""
    place.publish(3000)
    first, second = (stopped_while_it_works(place, sample) for _ in range(2))
    assert began(first) == {"0": 0, "1": 0}
    assert began(second) == {
        partition_id: int(last) + 1
        for partition_id, last in re.findall(r"partition (\d): finished \d+ to (\d+)", first)
    }


def stopped_while_it_works(place: Place, sample: Path) -> str:
    """What it prints that is told to end while it works on every partition."""
    with place.started(sample) as running:
        running.until(lambda printed: len(began(printed)) == len(PARTITIONS))
        running.stop(signal.SIGTERM)
    return running.printed


def began(printed: str) -> dict[str, int]:
    found = re.findall(r"^partition (\d+): began at (\d+)$", printed, re.MULTILINE)
    return {partition_id: int(number) for partition_id, number in found}


def hands_partitions_over(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    printed = place.run(sample)
    assert re.search(r"^second: partition \d from \d+$", printed, re.MULTILINE)
    [(events, twice)] = re.findall(r"(\d+) events, processed twice: (\d+)", printed)
    assert int(events) > len(PARTITIONS) * FIRST
    assert twice == "0"


def keeps_files(place: Place, sample: Path) -> None:
    consumes(place, sample, "files")
    assert list((place.folder / "files").rglob("checkpoint/*.json"))


def tells_kafka_options(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    place.save(place.store_url, 11)
    printed = place.run(sample)
    options = json.loads(printed)
    assert json.loads(options["startingOffsets"]) == {"orders": {"0": 12, "1": 12}}
    assert options["kafka.bootstrap.servers"].endswith(":9093")
    assert "SharedAccessKey" not in printed


def writes_files(place: Place, sample: Path) -> None:
    place.store_url = "sqlite:///checkpoints.db"
    ten = datetime(2026, 11, 21, 10, tzinfo=UTC)
    for hour in (-11, 0, 1, 14):
        place.publish(FIRST, ten + timedelta(hours=hour))
    printed = place.run(sample, "2026-11-21", "events")
    assert "80 events more in events" in printed
    assert "21 10:00: 40 events, 200 bytes\n2026-11-21 11:00: 40 events" in printed
    printed = place.run(sample, "2026-11-22", "events")
    assert "40 events more in events" in printed
    assert len(list((place.folder / "events").iterdir())) == 2 * len(PARTITIONS)
    # As if it had been killed before it committed.
    (place.folder / "checkpoints.db").unlink()
    assert "11:00: 40 events" in place.run(sample, "2026-11-21", "events")


def traces(place: Place, sample: Path) -> None:
    """The producer's spans are links of the handler's, and the collector gets what is printed."""
    place.store_url = "sqlite:///checkpoints.db"
    with Collector() as collector, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        printed = place.run(sample)
    created = {span.span_id: span.trace_id for span in collector.spans("EventHubs.message")}
    assert len(created) == 3
    processed = collector.spans("process orders")
    links = [link for span in processed for link in span.links]
    assert {link.span_id: link.trace_id for link in links} == created
    assert all("messaging.eventhubs.message.enqueued_time" in attributes(link) for link in links)
    ids = {span.span_id for span in processed}
    assert {collector.spans(f"ship order {n + 1}")[0].parent_span_id for n in range(3)} <= ids
    saved = collector.spans("checkpoint orders")[-1]
    assert saved.parent_span_id in ids
    assert attributes(saved)["eventhub_checkpoints.sequence_number"] == 2
    for span_id in created:
        assert re.search(rf"^process orders.*(\n  .*)*\n  -> .* {span_id.hex()}$", printed, re.M)
    assert re.search(r"^process orders.*(\n  .*)*\n  checkpoint orders  CLIENT", printed, re.M)
    assert {
        "messaging.process.duration",
        "messaging.client.consumed.messages",
        "messaging.client.operation.duration",
    } <= collector.metrics()


def rotates_files(place: Place, sample: Path) -> None:
    """Files are committed when they are complete: with so many rows, at the end, and when lost."""
    place.store_url = "sqlite:///checkpoints.db"
    folder = place.folder / "events"

    def has_unfinished() -> bool:
        return len([*folder.glob("*.part")]) == len(PARTITIONS)

    place.publish(FIRST)
    files = files_of(0, FIRST)
    with place.started(sample, "events", str(FIRST)) as running:
        running.until(lambda printed: all(f"{file}: 20 rows" in printed for file in files))
        place.publish(SECOND)
        eventually(has_unfinished)
        running.stop(signal.SIGTERM)
    more = files_of(FIRST, SECOND)
    assert all(f"{file}: 5 rows" in running.printed for file in more)
    assert {path.name for path in folder.iterdir()} == {*files, *more}
    with place.started(sample, "events") as running:
        place.publish(SECOND)
        eventually(has_unfinished)
        with place.started(sample, "events") as joining:
            lost = files_of(FIRST + SECOND, SECOND)
            running.until(lambda printed: any(file in printed for file in lost))
            joining.stop(signal.SIGTERM)
        running.stop(signal.SIGINT)
    assert {path.name for path in folder.iterdir()} == {*files, *more, *lost}


def files_of(first: int, count: int) -> set[str]:
    """Return the file of each partition with so many events from the first on."""
    last = first + count - 1
    return {f"{partition}-{first:019}-{last:019}.parquet" for partition in PARTITIONS}


def aggregates(place: Place, sample: Path) -> None:
    place.store_url = "sqlite:///checkpoints.db"
    place.publish(FIRST)
    with place.started(sample, "0.5") as running:
        running.until(lambda printed: events_of(printed) == {"0": FIRST, "1": FIRST})
        running.until(lambda printed: "\n0 events in all" in printed)
        running.stop(signal.SIGINT)
    place.publish(SECOND)
    with place.started(sample, "0.5") as running:
        running.until(lambda printed: events_of(printed) == {"0": SECOND, "1": SECOND})
        running.stop(signal.SIGTERM)


def events_of(printed: str) -> dict[str, int]:
    """The events that were counted of each partition."""
    counted: defaultdict[str, int] = defaultdict(int)
    for partition_id, events in re.findall(r"^(\d): (\d+) events", printed, re.MULTILINE):
        counted[partition_id] += int(events)
    return dict(counted)


def shares(place: Place, sample: Path) -> None:
    place.store_url = "sqlite:///checkpoints.db"
    with place.started(sample, "2") as running:
        running.until(lambda printed: {"A A", "B B"} & {*printed.splitlines()})
        running.until(lambda printed: {"A B", "B A"} & {*printed.splitlines()})
        running.stop(signal.SIGINT)


EXPECTED: dict[str, Callable[[Place, Path], object]] = {
    "coalesced.py": coalesces,
    "consume_aio.py": consumes,
    "consume_sync.py": consumes_with_a_file,
    "consume_to_parquet.py": rotates_files,
    "consume_together.py": shares,
    "consume_with_duckdb.py": aggregates,
    "custom_store.py": keeps_files,
    "graceful_stop.py": ends_on_sigterm,
    "hand_over.py": hands_partitions_over,
    "hub_to_parquet.py": writes_files,
    "kafka_options.py": tells_kafka_options,
    "processor.py": buries_what_fails,
    "traced.py": traces,
    "worker_pool.py": finishes_in_any_order,
}


ON_SPARK = {
    "spark_backfill.py": ["2026-11-21T10:30Z", "2026-11-21T12:00Z", "backfill"],
    "consumer_to_spark.py": [],
    "spark_exactly_once.py": [],
    "spark_to_consumer.py": [],
}
"""Samples with a Spark session, and what they are started with; the last one gets Ctrl-C."""
RUN_ALL = """
import json, os, runpy, sys
from unittest.mock import patch
for sample, *arguments in json.loads(sys.argv[1]):
    with patch.dict(os.environ), patch.object(sys, "argv", [sample, *arguments]):
        runpy.run_path(sample, run_name="__main__")
"""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_does_what_it_says(place: Place, name: str) -> None:
    EXPECTED[name](place, SAMPLES / name)


def test_the_samples_on_spark_do_what_they_say(place: Place) -> None:
    """In one process, so that Java starts once; each has a Spark session of its own."""
    ten = datetime(2026, 11, 21, 10, tzinfo=UTC)
    end = 3 * FIRST
    for hour in range(3):
        place.publish(FIRST, ten + timedelta(hours=hour), properties={"device": "lamp"})
    for url in (place.store_url, f"sqlite:///{place.folder / 'results.db'}"):
        place.save(url, 51)
    samples = [[str(SAMPLES / name), *arguments] for name, arguments in ON_SPARK.items()]
    with place.started("-c", RUN_ALL, json.dumps(samples)) as running:
        # The consumer of the last sample reads what arrives after Spark has ended.
        running.until(lambda printed: "Spark has left 2 checkpoints, 2 with offset\n" in printed)
        place.publish(SECOND)
        running.until(lambda printed: processed(printed) == all_from(end, end + SECOND))
        running.stop(signal.SIGINT)
    assert running.printed.splitlines()[:7] == [
        "partition 0: 20 events",
        "partition 1: 20 events",
        "40 events in backfill",
        "partition 0: 8 events, 52 to 59",
        "partition 1: 8 events, 52 to 59",
        "16 events after the checkpoints",
        "lamp: 16 events",
    ]
    assert processed(running.printed) == all_from(end, end + SECOND)


def test_each_sample_is_run() -> None:
    names = {sample.name for sample in SAMPLES.glob("*.py")}
    assert names == {*EXPECTED, *ON_SPARK}, f"say in {Path(__file__).name} what the others do"
