"""One winner: a short run of `python tools/campaign.py races`, and proof that it can fail."""

from typing import Any

import pytest

import campaign
import claim_races
from claim_races import RaceError, run_races
from eventhub_checkpoints._core.answers import Lost, Won
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.records import Proposal

ROUNDS = 10


def test_one_of_sixteen_sync_and_aio_stores_wins_each_race(azurite: Any) -> None:
    seen = run_races(azurite.connection_string, seed=0, rounds=ROUNDS)
    assert sum(seen.values()) == ROUNDS


def test_a_store_that_overwrites_is_caught(azurite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def overwrite(self: BlobCheckpointStore, proposal: Proposal) -> Won | Lost:
        name = self._name(proposal.scope, "ownership", proposal.partition_id)
        etag = self._requests.create(name, {"ownerid": proposal.owner_id}, overwrite=True)
        return Won(proposal.won(0.0, str(etag)))

    monkeypatch.setattr(BlobCheckpointStore, "try_claim", overwrite)
    with pytest.raises(RaceError, match="of 16 have won"):
        run_races(azurite.connection_string, seed=0, rounds=ROUNDS)


def test_the_campaign_prints_its_seed_and_who_won(
    azurite: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AZURITE_BLOB_ENDPOINT", azurite.endpoint)
    assert campaign.main(["races", "--seed", "7", "--rounds", "2"]) == 0
    printed = capsys.readouterr().out
    assert "races: seed 7, 2 rounds" in printed
    assert "won by" in printed


def test_no_container_is_left_behind(azurite: Any) -> None:
    with claim_races.fresh_container(azurite.connection_string) as name:
        assert name.startswith("races-")
    with claim_races.ContainerClient.from_connection_string(
        azurite.connection_string, name
    ) as container:
        assert not container.exists()
