"""OpenTelemetry is told what `stats()` says, and keeps nothing alive."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from eventhub_checkpoints import Checkpointer, MemoryCheckpointStore, every
from eventhub_checkpoints.processing.statistics import create_instruments
from waiting import LIMIT

NAMES = {"saved", "refused", "failed", "pending", "lag_events", "lag_seconds"}
NAMES |= {"stalls", "stalled_seconds"}
GROUP = "measured"
"""What else this process has running is of another consumer group."""


@pytest.fixture(scope="module")
def reader() -> InMemoryMetricReader:
    """A provider of its own: that of the process would slow the tests that follow."""
    reader = InMemoryMetricReader()
    assert create_instruments(MeterProvider([reader], shutdown_on_exit=False))
    return reader


def read(reader: InMemoryMetricReader) -> dict[str, Any]:
    """Instruments by the end of their names, with their points."""
    data = reader.get_metrics_data()
    prefix = "eventhub_checkpoints."
    return {
        metric.name.removeprefix(prefix): metric
        for resource in (data.resource_metrics if data else [])
        for scope in resource.scope_metrics
        if scope.scope.name == "eventhub_checkpoints"
        for metric in scope.metrics
        if metric.name.startswith(prefix)
    }


def test_the_figures_are_those_of_stats(
    stage: Any, wait: Callable[..., Any], reader: InMemoryMetricReader
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=2))
    stage.publish(5)
    consumer = stage.start(store, checkpointer, consumer_group=GROUP)
    wait(lambda: consumer.has("0", 5))
    for number in range(3):
        consumer.tracked["0"][number].done()
        wait(lambda number=number: len(store.saved["0"]) >= (number + 1) // 2)
    wait(lambda: checkpointer.stats()["0"].saved)
    found = read(reader)
    assert found.keys() == NAMES
    stats = checkpointer.stats()["0"]
    for name in NAMES:
        points = found[name].data.data_points
        (point,) = [one for one in points if one.attributes["consumer_group"] == GROUP]
        if name == "lag_seconds":
            assert 0 < point.value <= stats.lag_seconds
        else:
            assert point.value == getattr(stats, name)
        assert dict(point.attributes) == {
            "partition_id": "0",
            "eventhub_name": "orders",
            "consumer_group": GROUP,
        }
    assert found["lag_events"].unit == "{event}"
    assert found["lag_seconds"].unit == "s"
    assert found["saved"].data.is_monotonic


def test_a_checkpointer_is_not_kept_for_its_figures(reader: InMemoryMetricReader) -> None:
    store = MemoryCheckpointStore()
    checkpointer = Checkpointer(store)
    saver = weakref.ref(checkpointer._sessions.writer)
    read(reader)
    del checkpointer
    gc.collect()
    assert saver() is None


@pytest.mark.waits
def test_without_the_package_nothing_happens() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from types import SimpleNamespace
from eventhub_checkpoints import Checkpointer, MemoryCheckpointStore
names = {
    "fully_qualified_namespace": "ns", "eventhub_name": "orders", "consumer_group": "g",
    "partition_id": "0",
}
store = MemoryCheckpointStore()
with Checkpointer(store) as checkpointer:
    event = SimpleNamespace(sequence_number=7, offset="7")
    with checkpointer.track(SimpleNamespace(**names), event):
        pass
    assert checkpointer.flush()
assert store.claim_ownership([{**names, "owner_id": "me"}])
assert store.list_checkpoints("ns", "orders", "g")[0]["sequence_number"] == 7
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
