"""Workers, and everything that goes wrong: a short run of `python -m crashes processing`."""

from collections import Counter
from collections.abc import Callable

import pytest

from backends import ServerMissingError
from campaigns import IS_CAMPAIGN, rounds, seed
from crashes.processing.scenario import Share, replays_of, run_rounds
from crashes.processing.storage import SINGLE, STORES
from crashes.workers.claimed import largest

pytestmark = pytest.mark.long

SEED = 14721
"""Of a round with two workers at once, kills, stops, a frozen worker, a full disk, a locked file,
connections that are refused, and a hub created again."""


@pytest.mark.parametrize("store", STORES if IS_CAMPAIGN else ["sqlite"])
def test_whatever_goes_wrong_no_event_is_lost_and_no_more_read_again_than_may_be(
    store: str, tell: Callable[[str, str], None]
) -> None:
    many = 100 if store in SINGLE else 10  # those of a cluster take minutes
    seeds = range(seed(SEED), seed(SEED) + rounds(1, many))
    try:
        results = run_rounds(Share(store, seeds, shrinks=IS_CAMPAIGN))
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    assert [problem for result in results for problem in result.problems] == []
    seen = sum((result.seen for result in results), Counter[str]())
    assert seen["events"] > 0
    assert seen["kills"] > 0
    replays = replays_of(results)
    assert replays
    for kind, one in largest(replays).items():
        tell("processing", f"{store}, {kind}: {one.counted} of at most {one.bound} read again")
