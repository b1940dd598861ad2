"""One winner: short runs of `python tools/campaign.py races`, and proof that it can fail."""

from collections.abc import Callable
from typing import Any

import pytest

import campaign
from backends import Backend, Place
from campaigns import rounds, seed
from claim_races import PARTITIONS, RaceError, run_races
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Proposal
from eventhub_checkpoints.stores.hook_results import Won

pytestmark = pytest.mark.waits

ROUNDS, RACED = rounds(2, 100), rounds(16, PARTITIONS)
SEED = seed(0)


def test_one_of_sixteen_sync_and_aio_stores_wins_each_partition(
    backend: Backend, place: Place, tell: Callable[[str, str], None]
) -> None:
    seen = run_races(place, SEED, ROUNDS, RACED)
    assert sum(seen.values()) == ROUNDS * RACED
    met = ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items()))
    tell("races", f"{backend.name}: {met}")


@pytest.fixture
def memory(servers: Callable[[str], Backend]) -> Place:
    return servers("memory").place()


def test_a_store_that_wins_without_asking_is_caught(
    memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite(self: MemoryCheckpointStore, proposal: Proposal) -> Won:
        self.rows.put_raw("ownership", proposal.scope, "0", {"ownerid": proposal.owner_id})
        return Won(proposal.won(0.0))

    monkeypatch.setattr(MemoryCheckpointStore, "try_claim", overwrite)
    with pytest.raises(RaceError, match="of 16 have won"):
        run_races(memory, SEED, rounds=2, partitions=8)


def test_a_winner_that_is_not_stored_is_caught(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory.shared, "claim", lambda proposal: Won(proposal.won(0.0)))
    monkeypatch.setattr("claim_races.RACERS", 1)
    with pytest.raises(RaceError, match="has won, and None is stored"):
        run_races(memory, SEED, rounds=2, partitions=8)


def test_the_campaign_prints_its_seed_and_who_won(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["races", "--backend", "memory", "--seed", "7", "--rounds", "2"]
    assert campaign.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "races: seed 7, 2 rounds" in printed
    assert "won by" in printed


def test_each_campaign_has_a_number_of_rounds_by_default() -> None:
    lines = {"races --backend memory": 1000, "cancel --backend memory": 1, "decoder": 20}
    found = {line: campaign.parsed(line.split()).rounds for line in lines}
    assert found == lines
