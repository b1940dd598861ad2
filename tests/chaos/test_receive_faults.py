"""A reader whose connection breaks in every way: `python tools/campaign.py receive` runs more."""

import pytest

import campaigns
from receive_faults import run_rounds

pytestmark = pytest.mark.long

ROUNDS = campaigns.rounds(12, 1000)


def test_under_fire_each_event_comes_once():
    seen = run_rounds(campaigns.seed(7), ROUNDS, "fast")
    assert seen["rounds"] == ROUNDS
    assert seen["events"] > 0
