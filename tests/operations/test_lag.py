"""Lag of a partition: a checkpoint compared with what the hub retains."""

import pytest

from eventhub_checkpoints.operations.groups import CLOSED_NUMBER, Owner
from eventhub_checkpoints.operations.lag import partition_lag
from eventhub_checkpoints.receive import PartitionProperties

NOW = 1_000.0


def properties(first: int, following: int) -> PartitionProperties:
    return PartitionProperties("0", first, following, "offset", None)


def row(number: int | None, offset: object = "offset", modified: float | None = 990.0) -> dict:
    return {"sequence_number": number, "offset": offset, "last_modified_time": modified}


@pytest.mark.parametrize(
    ("first", "following", "number", "lag", "lost"),
    [
        (0, 0, None, 0, 0),  # nothing was ever sent
        (5, 5, None, 0, 0),  # everything has expired
        (5, 6, None, 1, 0),  # a lone event without a checkpoint
        (0, 10, 9, 0, 0),
        (0, 10, 4, 5, 0),
        (0, 10, -1, 10, 0),
        (20, 30, 9, 10, 10),  # events 10 to 19 expired before they were processed
        (20, 20, 9, 0, 10),
        (0, 10, 99, 10, 0),  # the hub was re-created: all of its events are to be read
        (0, 0, 99, 0, 0),
    ],
)
def test_lag_counts_the_retained_events_after_the_checkpoint(
    first, following, number, lag, lost
) -> None:
    checkpoint = None if number is None else row(number)
    found = partition_lag(properties(first, following), checkpoint, None, NOW)
    assert (found.begin, found.last) == (first, following - 1)
    assert (found.lag, found.lost) == (lag, lost)
    assert found.is_gone == (number == 99)


def test_without_a_checkpoint_consumers_may_start_at_the_end() -> None:
    assert partition_lag(properties(0, 10), None, None, NOW, "latest").lag == 0


def test_a_checkpoint_without_a_number_has_no_known_lag() -> None:
    found = partition_lag(properties(0, 10), row(None, "4"), None, NOW)
    assert (found.lag, found.checkpoint, found.offset) == (None, None, "4")


@pytest.mark.parametrize("offset", ["waiting", "moved:", "moved:4:400"])
def test_a_closed_checkpoint_is_moved_and_has_no_lag(offset: str) -> None:
    found = partition_lag(properties(0, 10), row(CLOSED_NUMBER, offset), None, NOW)
    assert (found.is_moved, found.is_gone) == (True, False)
    assert (found.checkpoint, found.offset, found.lag, found.lost) == (None, "", 0, 0)
    assert not partition_lag(properties(0, 10), row(4), None, NOW).is_moved


def test_a_fence_is_no_owner() -> None:
    fence = Owner("ehcp-0123456789ab-0", 7.0, is_live=True)
    found = partition_lag(properties(0, 10), row(4), fence, NOW)
    assert (found.owner_id, found.ownership_age) == ("", 7.0)


def test_ages_are_those_of_the_rows() -> None:
    live = Owner("me", 7.0, is_live=True)
    found = partition_lag(properties(0, 10), row(4), live, NOW)
    assert (found.checkpoint_age, found.owner_id, found.ownership_age) == (10.0, "me", 7.0)


def test_an_expired_owner_is_no_owner() -> None:
    expired = Owner("me", 700.0, is_live=False)
    found = partition_lag(properties(0, 10), row(4, modified=None), expired, NOW)
    assert (found.checkpoint_age, found.owner_id, found.ownership_age) == (None, "", 700.0)
