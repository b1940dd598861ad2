"""Fail-overs of real clusters: short runs of `python tools/campaign.py failover`."""

import time
from collections.abc import Callable

import pytest

from backends import ServerMissingError
from campaigns import IS_CAMPAIGN, rounds, seed
from failover import CLUSTERS, run_failovers

pytestmark = pytest.mark.long

ROUNDS = rounds(1, 20)
SEED = seed(0)
STORES = [*CLUSTERS] if IS_CAMPAIGN else ["postgres", "redis"]


@pytest.mark.parametrize("store", STORES)
def test_clients_go_on_with_the_new_primary(store: str, tell: Callable[[str, str], None]) -> None:
    began = time.monotonic()
    try:
        with CLUSTERS[store]() as cluster:
            seen = run_failovers(cluster, SEED, ROUNDS)
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    assert seen["fail-overs"] == ROUNDS
    assert seen["claims confirmed"]
    assert seen["checkpoints confirmed"]
    if store == "redis-cut-unguarded":
        assert seen["checkpoints forgotten"]  # the ledger sees what is forgotten
    met = ", ".join(f"{count} {kind}" for kind, count in seen.items())
    tell("fail-overs", f"{store}: {met}, in {time.monotonic() - began:.1f} s")
