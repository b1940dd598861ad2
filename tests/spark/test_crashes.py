"""Drivers that are killed: a short run of `python -m spark_crashes`, and proof that it can fail."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from backends import Backend
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import CheckpointPublisher
from spark_crashes import __main__ as command
from spark_crashes.cells import CHECKPOINTS, FEW, ROUTES, STAGES, Cell
from spark_crashes.judge import Found, Outcome, Written, judged
from spark_crashes.rounds import DRIVER_SECONDS, run_round

KEPT = Cell("in the sink", "publisher", "kept")
DELETED = Cell("in the sink", "publisher", "deleted")
FLUSHED = Cell("in the sink", "flushed publisher", "deleted")
EXACT = Cell("in the sink", "exactly once", "kept")


@pytest.mark.timeout(2 * DRIVER_SECONDS)
def test_no_driver_that_is_killed_loses_an_event_or_doubles_more_than_it_may(
    servers: Callable[[str], Backend], tell: Callable[[str, str], None]
) -> None:
    outcomes = run_round(FEW, seed=1, backend=servers("sqlite"))
    assert [one.problems for one in outcomes] == [[]] * len(FEW)
    assert all(one.events for one in outcomes)
    for one in outcomes:
        tell("crashes", f"{one.cell}: {one.lost} of {one.events} lost, {one.doubled} doubled")


def test_the_short_run_has_every_stage_and_every_route_with_either_checkpoint() -> None:
    assert {cell.stage for cell in FEW} == set(STAGES)
    met = Counter((cell.route, cell.checkpoint) for cell in FEW)
    assert met == {(route, checkpoint): 1 for route in ROUTES for checkpoint in CHECKPOINTS}


class SlowStore(MemoryCheckpointStore):
    """A store that is behind a query of quick batches."""

    def update_checkpoint(self, checkpoint: Mapping[str, Any], **given: Any) -> None:
        time.sleep(0.3)
        super().update_checkpoint(checkpoint, **given)


def test_a_batch_that_begins_with_a_flush_finds_the_one_before_in_the_store(
    spark: SparkSession, hub: LocalHub, start_query: Callable[..., Any]
) -> None:
    scope = HubAddress.from_connection_string(hub.connection_string("Orders")).scope()
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
        assert is_done.wait(240)
        query.stop()
    assert len(found) == 3
    assert all(stored == before for stored, before in found)


def rows(attempt: int, *batches: range) -> list[Written]:
    """Events of partition 0, by batch."""
    return [
        Written("0", number, attempt, batch)
        for batch, numbers in enumerate(batches)
        for number in numbers
    ]


def judge(
    cell: Cell,
    killed: Sequence[Written],
    again: Sequence[Written],
    *,
    stored: Mapping[str, int],
    begin: Mapping[str, int],
    end: int = 9,
) -> Outcome:
    """An outcome where ten events were published."""
    before, after = Found(killed, stored), Found([*killed, *again], {"0": end})
    return judged(cell, before, begin, after, {"0": 9})


@pytest.mark.parametrize(
    ("cell", "begin", "again", "doubled", "batches"),
    [
        (KEPT, 5, range(6, 10), 0, 0),
        (KEPT, 2, range(3, 10), 3, 1),
        (DELETED, -1, range(10), 6, 2),
        (FLUSHED, 2, range(3, 10), 3, 1),
        (EXACT, 2, range(6, 10), 0, 0),
    ],
)
def test_what_may_be_doubled_is_counted_and_let_be(
    cell: Cell, begin: int, again: range, doubled: int, batches: int
) -> None:
    killed = rows(0, range(3), range(3, 6))
    outcome = judge(cell, killed, rows(1, again), stored={"0": 2}, begin={"0": begin})
    assert outcome == Outcome(cell, 10, 0, doubled, batches, [])


@pytest.mark.parametrize(
    ("cell", "again", "stored", "end", "problem"),
    [
        (EXACT, range(7, 10), 5, 9, "1 events are lost"),
        (EXACT, range(6, 11), 5, 9, "1 events were never published"),
        (EXACT, range(5, 10), 5, 9, "other events are doubled than those behind the begin"),
        (EXACT, range(6, 10), 6, 9, "a position has passed the results"),
        (EXACT, range(6, 10), 5, 8, "the positions are {'0': 8}, the hub ends at {'0': 9}"),
        (KEPT, range(10), 5, 9, "2 batches are doubled"),
        (FLUSHED, range(10), 5, 9, "2 batches are doubled"),
    ],
)
def test_what_may_not_be_is_told(
    cell: Cell, again: range, stored: int, end: int, problem: str
) -> None:
    killed = rows(0, range(3), range(3, 6))
    begin = {"0": again.start - 1}
    outcome = judge(cell, killed, rows(1, again), stored={"0": stored}, begin=begin, end=end)
    assert outcome.problems == [f"{cell}: {problem}"]


def test_an_event_that_comes_three_times_is_told() -> None:
    killed = rows(0, range(6), range(5, 6))
    outcome = judge(KEPT, killed, rows(1, range(5, 10)), stored={"0": 4}, begin={"0": 4})
    assert f"{KEPT}: an event is there three times" in outcome.problems


@pytest.mark.parametrize(("problems", "status"), [([], 0), (["1 events are lost"], 1)])
def test_the_command_prints_its_seed_and_a_row_for_each_cell(
    problems: list[str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run_round(cells: Sequence[Cell], seed: int, backend: Backend) -> list[Outcome]:
        return [Outcome(cell, 100, 0, seed, 1, problems) for cell in cells]

    monkeypatch.setattr(command, "run_round", run_round)
    arguments = ["--seed", "7", "--rounds", "2", "--stage", "in the sink"]
    assert command.main(arguments) == status
    printed = capsys.readouterr().out
    assert "spark_crashes: seed 7, 2 rounds" in printed
    found = [line.split() for line in printed.splitlines() if " exactly once " in line]
    assert [line[-5:] for line in found] == [["2", "200", "0", "15", "1"]] * 2
    assert all(problem in printed for problem in problems)
