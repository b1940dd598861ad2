"""The client's decoder and this one give the same nine columns.

`python tools/campaign.py decoder` compares more events.
"""

from typing import TYPE_CHECKING

import pytest

import campaigns
import decoder_equality
from decoder_equality import compare, first_difference, run_rounds

if TYPE_CHECKING:
    from collections import Counter


SEED = campaigns.seed(1)


@pytest.mark.parametrize("seed", range(SEED, SEED + campaigns.rounds(1, 200)))
def test_mixed_events_are_the_clients_in_all_nine_columns(seed):
    seen: Counter[str] = compare(seed, events=4000, producers=30)
    assert seen["events"] == 4000
    assert seen["largest body"] > 300_000
    # All three ways must have been taken, or this says nothing about one of them.
    heads = seen["events of which only the head was known"]
    assert heads > 100
    assert 400 < seen["events read the generic way"] < 3600 - heads


def test_a_difference_is_reported(monkeypatch):
    assert "row 1 is 3" in first_difference([1, 3], [1, 2])
    assert "1 rows instead of 2" in first_difference([1], [1, 2])
    columns = decoder_equality.client_columns
    monkeypatch.setattr(decoder_equality, "client_columns", lambda made: columns(made[:-1]))
    with pytest.raises(AssertionError, match="seed 7: 10 rows instead of 9"):
        run_rounds(7, 1, events=10, producers=2)


def test_rounds_add_up_what_was_compared():
    seen = run_rounds(7, 2, events=10, producers=2)
    assert seen["events"] == 20
    assert seen["largest body"] == max(
        compare(seed, events=10, producers=2)["largest body"] for seed in (7, 8)
    )
