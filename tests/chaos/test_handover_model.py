"""All interleavings of small hand-overs, and proof that the model can fail.

`python -m handover_model` tries all cases; here are those with few states, and all in a campaign.
"""

import pytest

from campaigns import IS_CAMPAIGN
from eventhub_checkpoints.processing.handover import Answer, GroupHandover
from handover_model import CASES, LARGE, Case, ModelError, explore

SMALL = {
    "planned": Case(partitions=1, rounds=(2, 3), ticks=0),
    "two newcomers": Case(newcomers=2, partitions=1, rounds=(1, 1), ticks=0),
    "two at once": Case(partitions=4, rounds=(1, 2), ticks=0),
    "deadline": Case(partitions=1, rounds=(1, 2), ticks=2),
    "a crash": Case(partitions=1, rounds=(1, 2), ticks=0, crashes=1),
    "a stop": Case(partitions=1, rounds=(2, 1), ticks=0, stops=1),
    "the storage is away": Case(partitions=1, rounds=(1, 2), ticks=0, faults=1),
}
TRIED = CASES | LARGE if IS_CAMPAIGN else SMALL


@pytest.mark.parametrize("case", TRIED.values(), ids=[*TRIED])
def test_no_interleaving_breaks_the_rule(case: Case) -> None:
    tried = explore(case)
    assert tried.ends > 0
    assert tried.traces > tried.ends


def test_a_client_that_takes_without_asking_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupHandover, "answer", lambda *_: Answer.CLAIM)
    with pytest.raises(ModelError, match="newcomer0 takes 0 from owner"):
        explore(SMALL["planned"])


def test_an_owner_that_releases_before_it_has_drained_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_of = GroupHandover.answer

    def answer(group: GroupHandover, partition_id: str, claimant: str, now: float) -> Answer:
        chosen = answer_of(group, partition_id, claimant, now)
        return Answer.RELEASE if chosen is Answer.KEEP else chosen

    monkeypatch.setattr(GroupHandover, "answer", answer)
    with pytest.raises(ModelError, match="newcomer0 opens 0, draining in owner"):
        explore(SMALL["planned"])


def test_an_owner_that_keeps_what_its_client_has_closed_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_of = GroupHandover.answer

    def answer(group: GroupHandover, partition_id: str, claimant: str, now: float) -> Answer:
        chosen = answer_of(group, partition_id, claimant, now)
        return Answer.KEEP if chosen is Answer.CLAIM and claimant == "owner" else chosen

    monkeypatch.setattr(GroupHandover, "answer", answer)
    with pytest.raises(ModelError, match="0 of owner is open in 0 consumers"):
        explore(SMALL["a crash"])
