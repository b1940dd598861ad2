"""The client's decoder and this one give the same nine columns."""

from typing import TYPE_CHECKING

import pytest

import campaigns
from decoder_equality import DifferenceError, compare, first_difference

if TYPE_CHECKING:
    from collections import Counter


SEED = campaigns.seed(1)


@pytest.mark.parametrize("seed", range(SEED, SEED + campaigns.rounds(2, 200)))
def test_mixed_events_are_the_clients_in_all_nine_columns(seed):
    seen: Counter[str] = compare(seed, events=4000, producers=30)
    assert seen["events"] == 4000
    assert seen["largest body"] > 300_000
    # All three ways must have been taken, or this says nothing about one of them.
    heads = seen["events of which only the head was known"]
    assert heads > 100
    assert 400 < seen["events read the generic way"] < 3600 - heads


def test_a_difference_is_reported():
    assert "row 1 is 3" in first_difference([1, 3], [1, 2])
    assert "1 rows instead of 2" in first_difference([1], [1, 2])
    assert issubclass(DifferenceError, Exception)
