"""Consumers that are stalled in every known way: a short run of `python -m crashes stalls`."""

from collections.abc import Callable
from typing import Any

import pytest

from campaigns import IS_CAMPAIGN, rounds, seed
from crashes import stalls
from eventhub_checkpoints.processing import stall

pytestmark = pytest.mark.long

LIMIT = 4.0
"""Seconds that make a stall; in real time, so more than a busy machine pauses a process."""


def test_stalls_are_found_at_their_place_and_nothing_else(
    servers: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not IS_CAMPAIGN:
        monkeypatch.setattr(stall, "SHORTEST_SILENCE", 2 * LIMIT)
    every = len(stalls.CAUSES) + len(stalls.CALM)
    seeds = range(seed(0), seed(0) + rounds(every, 240))
    results = list(stalls.run_rounds(seeds, LIMIT, every, servers("blob")))
    assert [problem for result in results for problem in result.problems] == []
    assert {result.details.cause for result in results} == {*stalls.CAUSES, *stalls.CALM}
