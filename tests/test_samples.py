"""Every sample runs without Azure, as a reader runs it; a second run goes on after the first."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from otlp_collector import Collector, attributes

pytestmark = pytest.mark.long

SAMPLES = sorted((Path(__file__).resolve().parent.parent / "samples").glob("*.py"))
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

    def publish(self, count: int) -> None:
        """So many events in each partition."""
        for partition_id in PARTITIONS:
            self.hub.publish("orders", partition_id, ["event"] * count)

    def save(self, sequence_number: int) -> None:
        """Checkpoint every partition, as a consumer would."""
        row = {
            "fully_qualified_namespace": self.hub.endpoint.removeprefix("sb://"),
            "eventhub_name": "orders",
            "consumer_group": "$Default",
        }
        with open_store(self.store_url) as store:
            store.create()
            for partition_id in PARTITIONS:
                position = {"offset": None, "sequence_number": sequence_number}
                store.update_checkpoint(row | position | {"partition_id": partition_id})

    def run(self, sample: Path, *arguments: str, logs: str | None = None) -> str:
        """What a sample prints until it ends.

        Args:
            sample: its file.
            arguments: what it is started with.
            logs: the one error whose tracebacks it logs; None: it logs no traceback.
        """
        return self._printed(self._start(sample, *arguments), logs)

    def run_until_sigterm(self, sample: Path) -> str:
        """What a sample prints that is told to end while it works on every partition."""
        process = self._start(sample)
        assert process.stdout is not None
        first = "".join(process.stdout.readline() for _ in PARTITIONS)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        return first + self._printed(process)

    def _start(self, sample: Path, *arguments: str) -> "subprocess.Popen[str]":
        env = {
            **os.environ,
            "EVENTHUB_CONNECTION_STRING": self.hub.connection_string("orders"),
            "CHECKPOINT_STORE": self.store_url,
            "RESULTS_DATABASE": "sqlite:///results.db",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return subprocess.Popen(
            [sys.executable, sample, *arguments],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _printed(self, process: "subprocess.Popen[str]", logs: str | None = None) -> str:
        with process:
            try:
                output, errors = process.communicate()
            finally:
                process.kill()
        assert process.returncode == 0, output + errors
        expected = 0 if logs is None else errors.count(logs)
        assert errors.count("Traceback") == expected, errors
        return output


@pytest.fixture
def place(blob_container: Any, tmp_path: Path) -> Any:
    with LocalHub({"orders": len(PARTITIONS)}) as hub:
        yield Place(hub, blob_container, tmp_path)


def consumes(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    assert began(place.run(sample)) == {"0": 0, "1": 0}
    place.publish(SECOND)
    assert began(place.run(sample)) == {"0": FIRST, "1": FIRST}


def consumes_with_a_file(place: Place, sample: Path) -> None:
    place.store_url = "sqlite:///checkpoints.db"
    consumes(place, sample)
    assert (place.folder / "checkpoints.db").exists()


def began(printed: str) -> dict[str, int]:
    found = re.findall(r"^partition (\d+): began at (\d+)$", printed, re.MULTILINE)
    return {partition_id: int(number) for partition_id, number in found}


def coalesces(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    printed = place.run(sample)
    assert began(printed) == {"0": 0, "1": 0}
    [(asked, written)] = re.findall(r"(\d+) checkpoints, (\d+) writes", printed)
    assert int(asked) == len(PARTITIONS) * FIRST
    assert len(PARTITIONS) <= int(written) <= 2 * len(PARTITIONS)
    place.publish(SECOND)
    assert began(place.run(sample)) == {"0": FIRST, "1": FIRST}


def finishes_in_any_order(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    printed = place.run(sample)
    assert began(printed) == {"0": 0, "1": 0}
    assert "40 events, " in printed
    assert "40 events, 0 of" not in printed
    place.publish(SECOND)
    assert began(place.run(sample)) == {"0": FIRST, "1": FIRST}


def buries_what_fails(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    assert "0 dead letters" in place.run(sample)
    place.hub.publish("orders", "0", ["event", "poison", "event"])
    printed = place.run(sample, logs="ValueError: nobody can process this event")
    assert began(printed) == {"0": FIRST}
    assert "partition 0: 2 events, SHUTDOWN" in printed
    assert f"1 dead letters: [('0', {FIRST + 1})]" in printed


def ends_on_sigterm(place: Place, sample: Path) -> None:
    """The second run begins right behind what the first has finished."""
    place.publish(3000)
    first = place.run_until_sigterm(sample)
    second = place.run_until_sigterm(sample)
    assert began(first) == {"0": 0, "1": 0}
    assert began(second) == {
        partition_id: int(last) + 1
        for partition_id, last in re.findall(r"partition (\d): finished \d+ to (\d+)", first)
    }


def hands_partitions_over(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    printed = place.run(sample)
    assert re.search(r"^second: partition \d from \d+$", printed, re.MULTILINE)
    [(events, twice)] = re.findall(r"(\d+) events, processed twice: (\d+)", printed)
    assert int(events) > len(PARTITIONS) * FIRST
    assert twice == "0"


def keeps_files(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    assert "processed 40 events, first ('0', 0)" in place.run(sample, "files")
    place.publish(SECOND)
    assert f"processed 10 events, first ('0', {FIRST})" in place.run(sample, "files")
    assert list((place.folder / "files").rglob("checkpoint/*.json"))


def hands_over_to_spark(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    place.save(11)
    printed = place.run(sample)
    assert "partition 0: 8 events, 12 to 19" in printed
    assert "16 events after the checkpoints" in printed


def hands_back_to_consumers(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    place.save(11)
    printed = place.run(sample)
    assert "Spark has left 2 checkpoints, 2 with offset" in printed
    assert "nothing is left" in printed


def tells_kafka_options(place: Place, sample: Path) -> None:
    place.publish(FIRST)
    place.save(11)
    printed = place.run(sample)
    options = json.loads(printed)
    assert json.loads(options["startingOffsets"]) == {"orders": {"0": 12, "1": 12}}
    assert options["kafka.bootstrap.servers"].endswith(":9093")
    assert "SharedAccessKey" not in printed


def backfills(place: Place, sample: Path) -> None:
    ten = datetime(2026, 11, 21, 10, tzinfo=UTC)
    for hour in range(3):
        for partition_id in PARTITIONS:
            when = ten + timedelta(hours=hour)
            place.hub.publish("orders", partition_id, ["event"] * FIRST, enqueued_time=when)
    printed = place.run(sample, "2026-11-21T10:30Z", "2026-11-21T12:00Z", "backfill")
    assert "partition 0: 20 events" in printed
    assert "40 events in backfill" in printed


def writes_files(place: Place, sample: Path) -> None:
    place.store_url = "sqlite:///checkpoints.db"
    ten = datetime(2026, 11, 21, 10, tzinfo=UTC)
    for hour in (-11, 0, 1, 14):
        for partition_id in PARTITIONS:
            when = ten + timedelta(hours=hour)
            place.hub.publish("orders", partition_id, ["event"] * FIRST, enqueued_time=when)
    printed = place.run(sample, "2026-11-21", "events")
    assert "80 events more in events" in printed
    assert "21 10:00: 40 events, 200 bytes\n2026-11-21 11:00: 40 events" in printed
    printed = place.run(sample, "2026-11-22", "events")
    assert "40 events more in events" in printed
    assert len(list((place.folder / "events").iterdir())) == 2 * len(PARTITIONS)
    # As if it had been killed before it committed.
    (place.folder / "checkpoints.db").unlink()
    assert "11:00: 40 events" in place.run(sample, "2026-11-21", "events")


def counts_once(place: Place, sample: Path) -> None:
    """The positions that count are those beside the results."""
    place.store_url = f"sqlite:///{place.folder / 'results.db'}"
    for partition_id in PARTITIONS:
        events = ["event"] * FIRST
        place.hub.publish("orders", partition_id, events, properties={"device": "lamp"})
    place.save(11)
    assert "lamp: 16 events" in place.run(sample)


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


EXPECTED: dict[str, Callable[[Place, Path], None]] = {
    "coalesced.py": coalesces,
    "consume_aio.py": consumes,
    "consume_sync.py": consumes_with_a_file,
    "consumer_to_spark.py": hands_over_to_spark,
    "custom_store.py": keeps_files,
    "graceful_stop.py": ends_on_sigterm,
    "hand_over.py": hands_partitions_over,
    "hub_to_parquet.py": writes_files,
    "kafka_options.py": tells_kafka_options,
    "processor.py": buries_what_fails,
    "spark_backfill.py": backfills,
    "spark_exactly_once.py": counts_once,
    "spark_to_consumer.py": hands_back_to_consumers,
    "traced.py": traces,
    "worker_pool.py": finishes_in_any_order,
}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_does_what_it_says(place: Place, sample: Path) -> None:
    assert sample.name in EXPECTED, f"say in {Path(__file__).name} what {sample.name} does"
    EXPECTED[sample.name](place, sample)


def test_every_expectation_has_its_sample() -> None:
    assert EXPECTED.keys() == {sample.name for sample in SAMPLES}
