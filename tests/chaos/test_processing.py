"""Workers, and everything that goes wrong: a short run of `python -m crashes processing`."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from backends import ServerMissingError
from campaigns import IS_CAMPAIGN, rounds, seed
from crashes.processing.scenario import Share, replays_of, run_rounds
from crashes.processing.storage import SINGLE, STORES
from crashes.workers.claimed import Replay, largest
from crashes.workers.orders import WAYS, Way

pytestmark = pytest.mark.long

SEED = 2511
"""Of a round with two workers at once, kills, stops, a frozen worker, a full disk, a locked file,
connections that are refused, and a hub created again."""
SEED_OF_BATCHES = 28652
"""Of a round in which a loop over batches and a processor of them share the hub, then a processor
and an official client; with kills, stops, a full disk, a locked file, and lost connections."""
IN_BATCHES: tuple[Way, ...] = ("each", "batches", "batch-processor", "official")
"""Ways of members that read in batches, and of official clients beside them."""


@pytest.mark.parametrize("store", STORES if IS_CAMPAIGN else ["sqlite"])
def test_whatever_goes_wrong_no_event_is_lost_and_no_more_read_again_than_may_be(
    store: str, tell: Callable[[str, str], None]
) -> None:
    many = 100 if store in SINGLE else 10  # those of a cluster take minutes
    replays = replays_in_rounds(store, SEED, many)
    for kind, one in largest(replays).items():
        tell("processing", f"{store}, {kind}: {one.counted} of at most {one.bound} read again")


@pytest.mark.parametrize("store", SINGLE if IS_CAMPAIGN else ["sqlite"])
def test_members_that_read_in_batches_share_a_group_with_official_clients_and_lose_no_event(
    store: str, tell: Callable[[str, str], None]
) -> None:
    replays = replays_in_rounds(store, SEED_OF_BATCHES, 30, IN_BATCHES)
    for kind, one in largest(replays).items():
        tell("batches", f"{store}, {kind}: {one.counted} of at most {one.bound} read again")


def replays_in_rounds(
    store: str, fixed: int, many: int, ways: Sequence[Way] = WAYS
) -> list[Replay]:
    """Run the rounds of a test, and return the replays of their sessions.

    Args:
        store: its name.
        fixed: seed of the one round, outside of a campaign.
        many: rounds of a campaign.
        ways: of saving, that workers are drawn from.
    """
    seeds = range(seed(fixed), seed(fixed) + rounds(1, many))
    try:
        results = run_rounds(Share(store, seeds, ways, shrinks=IS_CAMPAIGN))
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    assert [problem for result in results for problem in result.problems] == []
    seen = sum((result.seen for result in results), Counter[str]())
    assert seen["events"] > 0
    assert seen["kills"] > 0
    replays = replays_of(results)
    assert replays
    return replays
