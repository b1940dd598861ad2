"""Consumers that are stalled in every known way: the watchdogs find that, and imagine nothing.

`python tools/stalls.py` runs more rounds, and prints what was found by cause.
"""

from collections.abc import Callable
from typing import Any

import stalls
from campaigns import rounds, seed

LIMIT = 4.0
"""Seconds that make a stall; in real time, so more than a busy machine pauses a process."""


def test_stalls_are_found_at_their_place_and_nothing_else(servers: Callable[[str], Any]) -> None:
    first, count = seed(0), rounds(4, 240)
    outcomes = stalls.run_rounds(first, count, LIMIT, 12, servers("blob"))
    assert [each for each in outcomes if not each.is_right] == []
    assert len(outcomes) == count
    table = stalls.table(outcomes)
    assert all(f"| {name} |" in table for name in (*stalls.CAUSES, *stalls.CALM))
