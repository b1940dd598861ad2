"""A reader whose connection breaks in every way; `tools/receive_faults.py` does it for long."""

import random

import pytest

import campaigns
from receive_faults import run_rounds

pytestmark = pytest.mark.waits

ROUNDS = campaigns.rounds(12, 1000)


def test_under_fire_each_event_comes_once():
    seed = campaigns.seed(random.SystemRandom().randrange(10**9))
    print(f"seed {seed}: python tools/receive_faults.py --seed {seed} --rounds {ROUNDS}")
    seen = run_rounds(seed, ROUNDS, "fast")
    assert seen["rounds"] == ROUNDS
    assert seen["events"] > 0
