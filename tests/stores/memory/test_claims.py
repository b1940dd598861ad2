"""The one rule of claiming, and the one of writing a checkpoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import Checkpoint, Ownership, Scope
from eventhub_checkpoints.records import Proposal
from eventhub_checkpoints.stores.hook_results import Conflict, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.memory.rows import claim, write

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
STORED = Ownership(SCOPE, "0", "other", "stored", 1.0)


def proposal(etag: str | None, owner_id: str = "me") -> Proposal:
    return Proposal(SCOPE, "0", owner_id, etag, "new")


def checkpoint(version: str, sequence_number: int = 5) -> Checkpoint:
    return Checkpoint(SCOPE, "0", "500", sequence_number, version)


def test_a_first_claim_of_a_free_partition_wins() -> None:
    assert claim(None, proposal(None), 9.0) == Won(Ownership(SCOPE, "0", "me", "new", 9.0))


def test_a_claim_with_the_stored_etag_wins() -> None:
    assert claim(STORED, proposal("stored"), 9.0) == Won(Ownership(SCOPE, "0", "me", "new", 9.0))


def test_a_claim_whose_row_has_vanished_wins() -> None:
    assert isinstance(claim(None, proposal("stored"), 9.0), Won)


@pytest.mark.parametrize("etag", [None, "older"])
def test_a_claim_without_the_stored_etag_loses_to_the_row(etag: str | None) -> None:
    assert claim(STORED, proposal(etag), 9.0) == Lost(STORED)


def test_a_release_is_a_claim_for_nobody() -> None:
    answer = claim(STORED, proposal("stored", owner_id=""), 9.0)
    assert isinstance(answer, Won)
    assert answer.row.owner_id == ""


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=20))
def test_of_claims_with_one_etag_exactly_one_wins(owners: list[str]) -> None:
    stored, winners = STORED, 0
    for number, owner in enumerate(owners):
        answer = claim(stored, Proposal(SCOPE, "0", owner, "stored", f"new-{number}"), 9.0)
        if isinstance(answer, Won):
            stored, winners = answer.row, winners + 1
    assert winners == 1


@pytest.mark.parametrize("seen", [Seen.ABSENT, Seen.UNKNOWN, Seen.FORCE])
def test_a_first_checkpoint_is_written(seen: Seen) -> None:
    assert write(None, checkpoint("new"), seen) == Written("new")


@pytest.mark.parametrize("seen", ["stored", Seen.FORCE])
def test_a_checkpoint_is_written_over_the_row_that_was_seen(seen: str | Seen) -> None:
    assert write(checkpoint("stored"), checkpoint("new"), seen) == Written("new")


@pytest.mark.parametrize("seen", ["older", Seen.ABSENT, Seen.UNKNOWN])
def test_a_checkpoint_is_not_written_over_another_row(seen: str | Seen) -> None:
    stored = checkpoint("stored")
    assert write(stored, checkpoint("new"), seen) == Conflict(stored)


def test_a_checkpoint_over_a_row_that_has_vanished_is_a_conflict_with_nothing() -> None:
    assert write(None, checkpoint("new"), "stored") == Conflict(None)
