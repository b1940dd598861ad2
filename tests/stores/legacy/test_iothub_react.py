"""Names of iothub-react, and which of its rows hold a checkpoint."""

import pytest

from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.legacy.iothub_react import (
    StoredOffset,
    checkpoints_of,
    keyspace_of,
)

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


@pytest.mark.parametrize(
    ("namespace", "keyspace"),
    [
        ("iothub_react_checkpoints", "iothub_react_checkpoints"),
        ("iothub-react-checkpoints", "iothub_react_checkpoints"),
        ("My.Job 7/é", "my_job_7__"),
        ("", ""),
    ],
)
def test_a_namespace_is_the_keyspace_that_iothub_react_made_of_it(
    namespace: str, keyspace: str
) -> None:
    assert keyspace_of(namespace) == keyspace


def test_rows_are_checkpoints_in_numerical_order_without_a_sequence_number() -> None:
    rows = [("10", "7"), ("9", "0"), ("0", "9")]
    found = checkpoints_of([StoredOffset("a row", *row) for row in rows], SCOPE, pytest.fail)
    assert found == [
        Checkpoint(SCOPE, "0", "9", None),
        Checkpoint(SCOPE, "9", "0", None),
        Checkpoint(SCOPE, "10", "7", None),
    ]
    assert found[0].as_dict(SCOPE)["sequence_number"] is None


@pytest.mark.parametrize("offset", ["-1", "{offset checkpoint not found}"])
def test_a_note_that_nothing_was_saved_is_no_checkpoint_and_no_fault(offset: str) -> None:
    assert checkpoints_of([StoredOffset("row", "0", offset)], SCOPE, pytest.fail) == []


@pytest.mark.parametrize("offset", [None, "", "-2", "x", "5 ", "\u0665", "1" * 20, "{nothing}"])
def test_a_row_without_an_offset_is_reported_by_its_place(offset: str | None) -> None:
    reported: list[str] = []
    rows = [StoredOffset("row 3", "3", offset), StoredOffset("row 4", "4", "5")]
    assert [row.partition_id for row in checkpoints_of(rows, SCOPE, reported.append)] == ["4"]
    assert reported == ["row 3 was left out: it holds no offset of a partition"]


@pytest.mark.parametrize("partition", ["", "-1", "x", "01", "0/1", "\u0665", "1" * 10])
@pytest.mark.parametrize("offset", ["5", "-1"])
def test_a_row_of_no_partition_is_reported(partition: str, offset: str) -> None:
    reported: list[str] = []
    assert checkpoints_of([StoredOffset("it", partition, offset)], SCOPE, reported.append) == []
    assert len(reported) == 1
