"""The verdict of the demo: each promise, and that it can be broken."""

from dataclasses import replace
from typing import Any

import pytest

from eventhub_checkpoints.cli.demo.report import PartitionOutcome, Screen, broken_promises
from eventhub_checkpoints.cli.demo.story import result

KEPT = PartitionOutcome(
    partition="3",
    sent=10,
    published=range(10),
    processed=[0, 1, 2, 3, 2, 3, 4, 5],
    saved=5,
    checkpoint=5,
    read_by_spark=[6, 7, 8, 9],
    checkpoint_of_spark=9,
    read_after_spark=[],
)

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "an event was lost before the checkpoint": (
        {"processed": [0, 1, 3, 4, 5]},
        "lost: 2",
    ),
    "an event was lost at the end": ({"read_by_spark": [6, 7, 8]}, "lost: 9"),
    "many events were lost": (
        {"processed": [5], "read_by_spark": []},
        "lost: 0, 1, 2, 3, 4, ... (9 in all)",
    ),
    "the checkpoint's own event was read again": (
        {"read_by_spark": [5, 6, 7, 8, 9]},
        "Spark's first event is 5, and the one after the checkpoint is 6",
    ),
    "one event after the checkpoint was passed over": (
        {"processed": [*range(10)], "read_by_spark": [7, 8, 9]},
        "Spark's first event is 7, and the one after the checkpoint is 6",
    ),
    "Spark read nothing": (
        {"processed": [*range(10)], "read_by_spark": []},
        "Spark's first event is none, and the one after the checkpoint is 6",
    ),
    "Spark read what is not there to read": (
        {"checkpoint": 9, "processed": [*range(10)]},
        "Spark's first event is 6, and the one after the checkpoint is none",
    ),
    "Spark left a hole": (
        {"processed": [*range(10)], "read_by_spark": [6, 8, 9]},
        "missed: 7; twice: none; others: none",
    ),
    "Spark read an event twice": (
        {"read_by_spark": [6, 7, 7, 8, 9]},
        "Spark read 5 events, and 4 follow the checkpoint (missed: none; twice: 7",
    ),
    "the checkpoint went back": (
        {"saved": 5, "checkpoint": 4, "read_by_spark": [5, 6, 7, 8, 9]},
        "the checkpoint is 4, although 5 was saved before",
    ),
    "the checkpoint passed what was processed": (
        {"checkpoint": 6, "read_by_spark": [7, 8, 9]},
        "the checkpoint is 6, an event that no consumer processed",
    ),
    "there is no checkpoint": (
        {"saved": None, "checkpoint": None, "read_by_spark": [*range(10)]},
        "it has no checkpoint",
    ),
    "Spark's progress did not come back": (
        {"checkpoint_of_spark": 5},
        "the checkpoint after Spark is 5, and the last event is 9",
    ),
    "a consumer after Spark had something to read": (
        {"read_after_spark": [9]},
        "a consumer after Spark received: 9",
    ),
    "an event was made up": (
        {"read_by_spark": [6, 7, 8, 9, 10]},
        "processed, but never published: 10",
    ),
    "the hub lost an event": (
        {"sent": 11},
        "the hub has 10 events, and 11 were sent",
    ),
}


def test_a_partition_that_was_taken_over_and_read_to_the_end_keeps_every_promise() -> None:
    assert broken_promises([KEPT]) == []
    assert (KEPT.twice, KEPT.lost, KEPT.first_of_spark) == (2, [], 6)


def test_a_partition_without_events_keeps_every_promise() -> None:
    assert broken_promises([PartitionOutcome("0", 0, range(0), [], None, None, [], None, [])]) == []


def test_a_partition_that_no_consumer_had_events_of_is_read_from_its_first() -> None:
    outcome = PartitionOutcome("0", 2, range(2), [], None, None, [0, 1], 1, [])
    assert broken_promises([outcome]) == []


def test_nothing_is_left_for_spark_where_all_was_saved() -> None:
    outcome = replace(KEPT, sent=6, published=range(6), read_by_spark=[], checkpoint_of_spark=5)
    assert broken_promises([outcome]) == []


def test_what_was_processed_and_not_saved_is_read_again_and_counts_as_twice() -> None:
    outcome = replace(KEPT, processed=[*range(10)])
    assert broken_promises([outcome]) == []
    assert outcome.twice == 4


@pytest.mark.parametrize(("change", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_promise_is_reported(change: dict[str, Any], sentence: str) -> None:
    broken = broken_promises([KEPT, replace(KEPT, **change)])
    assert [one for one in broken if sentence in one]
    assert all(one.startswith("partition 3: ") for one in broken)


def test_a_broken_promise_makes_the_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert result(Screen(), [KEPT]) == 0
    assert result(Screen(), [replace(KEPT, read_by_spark=[6, 7, 8])]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines()[:2] == ["The demo has FAILED:", "partition 3: lost: 9"]
