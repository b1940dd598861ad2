"""Drivers that are killed: a short run of `python -m crashes spark`."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from backends import Backend
from crashes.spark.cells import FEW, Job
from crashes.spark.driver import go_on_together
from crashes.spark.rounds import DRIVER_SECONDS, run_round
from eventhub_checkpoints.base import Checkpoint, Conflict, Seen, Written
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import CheckpointPublisher
from waiting import LIMIT

pytestmark = pytest.mark.long

SEED = 535
"""Of a round whose queries die in their second batch at the latest, two with a slow store."""


@pytest.mark.timeout(2 * DRIVER_SECONDS)
def test_no_driver_that_is_killed_loses_an_event_or_doubles_more_than_it_may(
    servers: Callable[[str], Backend], spark: SparkSession, tell: Callable[[str, str], None]
) -> None:
    def finish(jobs: Sequence[Job], folder: Path) -> None:
        with ExitStack() as opened:
            go_on_together(spark, jobs, opened)

    backends = [servers("sqlite"), servers("postgres")]
    result = run_round(FEW, SEED, backends, finish)
    assert result.problems == []
    assert all(one.events for one in result.details)
    for one in result.details:
        tell("crashes", f"{one.cell}: {one.lost} of {one.events} lost, {one.doubled} doubled")


class SlowStore(MemoryCheckpointStore):
    """A store that is behind a query of quick batches."""

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        time.sleep(0.3)
        return super().write_checkpoint(checkpoint, seen)


def test_a_batch_that_begins_with_a_flush_finds_the_one_before_in_the_store(
    spark: SparkSession, address: HubAddress, start_query: Callable[..., Any]
) -> None:
    scope = address.scope()
    written: Counter[str] = Counter()
    found: list[tuple[dict[str, int], dict[str, int]]] = []
    is_done = threading.Event()
    with SlowStore() as store, CheckpointPublisher(store, scope).attach(spark) as publisher:

        def sink(batch: DataFrame, batch_id: int) -> None:
            publisher.flush()
            listed = store.list_checkpoints(*scope)
            stored = {row["partition_id"]: row["sequence_number"] + 1 for row in listed}
            found.append((stored, dict(written)))
            written.update(row.partition for row in batch.select("partition").collect())
            if written.total() == 60:
                is_done.set()

        trigger = {"processingTime": "0 seconds"}
        query = start_query(sink, trigger=trigger, maxEventsPerTrigger=20)
        assert is_done.wait(LIMIT)
        query.stop()
    assert len(found) == 3
    assert all(stored == before for stored, before in found)
