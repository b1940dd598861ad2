"""A randomized model of "no checkpoint goes back", and proof that it can fail.

`tools/forward_model.py` says what happens, `tools/forward_judge.py` what is allowed;
`python tools/campaign.py forward` runs more of it.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import campaign
from campaigns import rounds, seed
from eventhub_checkpoints import Checkpoint
from eventhub_checkpoints.stores.hook_results import Seen
from eventhub_checkpoints.stores.partition_state import (
    CheckpointGuard,
    Lease,
    PartitionState,
    highest,
)
from forward_model import run_round, run_rounds

ROUNDS_TO_CATCH = 200


def never_raises_the_floor(track: CheckpointGuard, row: Checkpoint | None) -> CheckpointGuard:
    return track


def takes_every_row_for_a_strangers(
    track: CheckpointGuard, row: Checkpoint | None
) -> CheckpointGuard:
    if row is None or row.version == track.base:
        return track
    return replace(track, floor=highest([track.floor, row.sequence_number]))


def moves_the_base_to_whatever_is_shown(
    track: CheckpointGuard, row: Checkpoint | None
) -> CheckpointGuard:
    return replace(track, base=row.version if row else Seen.ABSENT)


def keeps_the_floor(track: CheckpointGuard, row: Checkpoint | None) -> CheckpointGuard:
    return replace(track, base=row.version if row else Seen.ABSENT)


def refuses_an_equal_number(track: CheckpointGuard, sequence_number: int) -> bool:
    return track.floor is not None and sequence_number <= track.floor


def keeps_the_floor_even_if_forced(
    track: CheckpointGuard, version: str, forced: bool, sequence_number: int | None
) -> CheckpointGuard:
    return CheckpointGuard(version, track.floor)


def never_ends_the_taking(hold: Lease) -> Lease:
    return hold


BROKEN = [
    (CheckpointGuard, "shown", never_raises_the_floor),
    (CheckpointGuard, "shown", takes_every_row_for_a_strangers),
    (CheckpointGuard, "shown", moves_the_base_to_whatever_is_shown),
    (CheckpointGuard, "adopted", keeps_the_floor),
    (CheckpointGuard, "refuses", refuses_an_equal_number),
    (CheckpointGuard, "written", keeps_the_floor_even_if_forced),
    (Lease, "settled", never_ends_the_taking),
    (PartitionState, "writing", property(lambda known: False, lambda known, value: None)),
]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", "eventhub_checkpoints"):
        yield


def test_no_checkpoint_goes_back_and_none_is_refused_without_a_reason() -> None:
    seen = run_rounds(seed(0), rounds(60, 20_000), events=40)
    for kind in ("written", "refused", "adopted", "met", "recognised", "cut off"):
        assert seen[kind] > 20, f"the model has hardly met {kind!r}: {seen}"


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    BROKEN,
    ids=[getattr(broken, "__name__", name) for _, name, broken in BROKEN],
)
def test_a_broken_rule_is_caught(
    owner: type, name: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError, match=r"round \d+ of 40 events"):
        run_rounds(seed=0, rounds=ROUNDS_TO_CATCH, events=40)


def test_the_same_seed_gives_the_same_events() -> None:
    assert run_round(7, events=40).seen == run_round(7, events=40).seen


def test_a_campaign_prints_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["forward", "--seed", "7", "--rounds", "2", "--events", "10"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("forward: seed 7, 2 rounds\n")
    assert "no failure" in printed


def test_a_campaign_that_fails_prints_the_seed_of_the_round(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckpointGuard, "shown", never_raises_the_floor)
    assert campaign.main(["forward", "--seed", "7", "--rounds", "100"]) == 1
    printed = capsys.readouterr().out
    seed = printed.partition("\nround ")[2].partition(" ")[0]
    assert campaign.main(["forward", "--seed", seed, "--rounds", "1"]) == 1
