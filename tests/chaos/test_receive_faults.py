"""A reader whose connection breaks in every way; `tools/receive_faults.py` does it for long."""

import random

import pytest

from receive_faults import run_rounds

pytestmark = pytest.mark.slow


def test_under_fire_each_event_comes_once():
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}: python tools/receive_faults.py --seed {seed} --rounds 12")
    seen = run_rounds(seed, 12, "fast")
    assert seen["rounds"] == 12
    assert seen["events"] > 0
