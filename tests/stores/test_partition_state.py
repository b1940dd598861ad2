"""Lists overlap with claims and writes, and must not undo what those have taught."""

import pytest

from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import ABSENT, UNKNOWN
from eventhub_checkpoints.stores.partition_state import (
    CheckpointGuard,
    Lease,
    PartitionState,
    PartitionStates,
    next_change,
)

GONE = CheckpointGuard(UNKNOWN)
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$default")
ELSEWHERE = Scope("ns.servicebus.windows.net", "orders", "other")


def row(version: str, sequence_number: int = 5, partition_id: str = "0") -> Checkpoint:
    return Checkpoint(SCOPE, partition_id, "500", sequence_number, version)


def owned(etag: str, owner_id: str = "me") -> Ownership:
    return Ownership(SCOPE, "0", owner_id, etag, 1.0)


def proposal(scope: Scope, partition_id: str) -> Proposal:
    return Proposal(scope, partition_id, "me", None, "new")


@pytest.fixture
def states() -> PartitionStates:
    return PartitionStates()


def show(states: PartitionStates, *rows: Checkpoint) -> None:
    states.checkpoints_listed(SCOPE, rows, next_change())


def held(states: PartitionStates) -> PartitionState:
    """A partition that this store has taken, with the list that followed."""
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e1"), None))
    show(states, row("adopted"))
    return known


def test_a_partition_is_unknown_before_the_first_list(states: PartitionStates) -> None:
    assert states.partition(SCOPE, "0").checkpoint.base is UNKNOWN


def test_a_partition_that_a_list_did_not_show_has_no_row(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    show(states)
    assert known.checkpoint.base is ABSENT
    assert states.partition(SCOPE, "1").checkpoint.base is ABSENT


def test_a_list_says_nothing_of_another_scope(states: PartitionStates) -> None:
    show(states, row("theirs"))
    assert states.partition(ELSEWHERE, "0").checkpoint.base is UNKNOWN


def test_a_store_that_never_claimed_adopts_every_list(states: PartitionStates) -> None:
    for version in ("first", "second"):
        show(states, row(version, 100))
        assert states.partition(SCOPE, "0").checkpoint == CheckpointGuard(version)


def test_the_first_list_after_a_claim_is_adopted(states: PartitionStates) -> None:
    assert held(states).checkpoint == CheckpointGuard("adopted")


def test_the_second_list_after_a_claim_raises_the_floor(states: PartitionStates) -> None:
    known = held(states)
    show(states, row("theirs", 100))
    assert known.checkpoint == CheckpointGuard("adopted", floor=100)


def test_a_list_begun_before_the_claim_is_not_its_first(states: PartitionStates) -> None:
    known = held(states)
    known.record_claim(known.lease.lost())
    began = next_change()
    known.record_claim(known.lease.won(owned("e9"), "e8"))
    states.checkpoints_listed(SCOPE, [row("older", 100)], began)
    assert known.checkpoint == CheckpointGuard("adopted", floor=100)
    show(states, row("newer", 3))
    assert known.checkpoint == CheckpointGuard("newer")


def test_a_renewal_during_the_first_list_changes_nothing(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    known.record_write(CheckpointGuard("long ago", floor=100))
    known.record_claim(Lease().won(owned("e1"), None))
    began = next_change()
    known.record_claim(known.lease.won(owned("e2"), "e1"))
    states.checkpoints_listed(SCOPE, [row("theirs", 7)], began)
    assert known.checkpoint == CheckpointGuard("theirs")
    assert not known.lease.taken


def test_a_loss_before_the_first_list_cancels_it(states: PartitionStates) -> None:
    known = held(states)
    known.record_claim(known.lease.lost().won(owned("e9"), "e8").lost())
    show(states, row("theirs", 100))
    assert known.checkpoint == CheckpointGuard("adopted", floor=100)


def test_a_list_does_not_undo_a_write_that_ended_meanwhile(states: PartitionStates) -> None:
    known = held(states)
    began = next_change()
    known.record_write(known.checkpoint.written("mine", forced=False))
    states.checkpoints_listed(SCOPE, [row("adopted", 100)], began)
    assert known.checkpoint == CheckpointGuard("mine")


def test_a_list_does_not_take_a_write_under_way_for_a_strangers(states: PartitionStates) -> None:
    known = held(states)
    known.writing = True
    show(states, row("mine, not answered yet", 100))
    known.record_write(known.checkpoint.written("mine, not answered yet", forced=False))
    known.writing = False
    assert known.checkpoint == CheckpointGuard("mine, not answered yet")


def test_a_first_list_that_a_write_overlapped_is_not_made_up_for(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e1"), None))
    began = next_change()
    known.record_write(known.checkpoint.written("mine", forced=False))
    states.checkpoints_listed(SCOPE, [row("older")], began)
    show(states, row("theirs", 100))
    assert known.checkpoint == CheckpointGuard("mine", floor=100)


def test_a_list_that_is_older_than_the_adopted_one_is_ignored(states: PartitionStates) -> None:
    known = held(states)
    known.record_claim(known.lease.lost())
    older = next_change()
    known.record_claim(known.lease.won(owned("e9"), "e8"))
    show(states, row("newer", 3))
    states.checkpoints_listed(SCOPE, [row("adopted", 100)], older)
    assert known.checkpoint == CheckpointGuard("newer")


def test_a_list_that_is_older_than_one_without_the_row_is_ignored(states: PartitionStates) -> None:
    older = next_change()
    show(states)
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e1"), None))
    states.checkpoints_listed(SCOPE, [row("deleted since", 100)], older)
    assert known.checkpoint == CheckpointGuard(ABSENT)


def test_a_list_that_is_newer_than_one_without_the_row_raises_the_floor(
    states: PartitionStates,
) -> None:
    show(states)
    newer = next_change()
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e1"), None))
    states.checkpoints_listed(SCOPE, [row("theirs", 100)], newer)
    assert known.checkpoint == CheckpointGuard(ABSENT, floor=100)


def test_a_list_of_ownerships_teaches_a_loss(states: PartitionStates) -> None:
    known = held(states)
    states.ownerships_listed(SCOPE, [(owned("e9", "other"), 1.0)], next_change())
    assert known.lease.owner_id == ""


def test_a_list_that_shows_the_own_row_teaches_nothing(states: PartitionStates) -> None:
    lease = held(states).lease
    states.ownerships_listed(SCOPE, [(owned("e1"), 1.0)], next_change())
    assert states.partition(SCOPE, "0").lease == lease


def lose(states: PartitionStates) -> None:
    """Show another owner, as the list of ownerships at the begin of a client's round does."""
    states.ownerships_listed(SCOPE, [(owned("e2", "other"), 1.0)], next_change())


def win(states: PartitionStates, known: PartitionState, proposed: str = "01") -> None:
    """Claim the partition over the row that was listed, as the next step of the round."""
    states.proposed([proposal(SCOPE, partition_id) for partition_id in proposed])
    known.record_claim(known.lease.won(owned("e3"), "e2"))


def test_a_partition_won_back_in_the_round_that_saw_its_loss_goes_on_where_it_was(
    states: PartitionStates,
) -> None:
    # The client keeps it open, and still saves what it had received before the loss.
    known = held(states)
    lose(states)
    win(states, known)
    show(states, row("of the new owner", 9))
    assert known.checkpoint.base == "adopted"
    assert known.checkpoint.refuses(8)


def test_a_list_of_a_client_that_proposes_nothing_else_shows_that_it_opens_the_partition(
    states: PartitionStates,
) -> None:
    known = held(states)
    lose(states)
    win(states, known, proposed="0")
    show(states, row("of the new owner", 9))
    assert known.checkpoint == CheckpointGuard("of the new owner")
    show(states, row("another writer's", 12))
    assert known.checkpoint.refuses(11), "only the first list begins anew"


def test_a_partition_won_back_alone_goes_on_where_it_was_when_another_is_opened_later(
    states: PartitionStates,
) -> None:
    known = held(states)
    lose(states)
    win(states, known, proposed="0")
    states.ownerships_listed(SCOPE, [(owned("e3"), 1.0)], next_change())
    states.proposed([proposal(SCOPE, "0"), proposal(SCOPE, "1")])
    known.record_claim(known.lease.won(owned("e4"), "e3"))
    show(states, row("of the new owner", 9))
    assert known.checkpoint.refuses(8)


def test_a_partition_won_in_a_later_round_than_its_loss_begins_anew(
    states: PartitionStates,
) -> None:
    known = held(states)
    lose(states)  # nothing was claimed after it: the client has closed the partition
    lose(states)
    win(states, known)
    show(states, row("of the new owner", 9))
    assert known.checkpoint == CheckpointGuard("of the new owner")


def test_a_partition_that_the_round_of_its_loss_did_not_win_begins_anew(
    states: PartitionStates,
) -> None:
    known = held(states)
    lose(states)
    states.proposed([proposal(SCOPE, "1")])
    win(states, known)
    show(states, row("of the new owner", 9))
    assert known.checkpoint == CheckpointGuard("of the new owner")


def test_a_partition_whose_claim_was_refused_is_still_open(states: PartitionStates) -> None:
    # A claim that raises ends the round, and the client keeps what it has open.
    known = held(states)
    lose(states)
    states.proposed([proposal(SCOPE, "0")])
    lose(states)
    win(states, known)
    show(states, row("of the new owner", 9))
    assert known.checkpoint.refuses(8)


def test_a_list_of_ownerships_does_not_undo_a_claim_that_ended_meanwhile(
    states: PartitionStates,
) -> None:
    known = states.partition(SCOPE, "0")
    began = next_change()
    known.record_claim(Lease().won(owned("e1"), None))
    states.ownerships_listed(SCOPE, [], began)
    assert known.lease.owner_id == "me"


def test_a_claim_by_the_owner_with_the_confirmed_etag_is_a_renewal(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e1"), None), owned("e1"))
    assert known.renewed_by("me", "e1") == owned("e1")


def test_a_listed_row_is_confirmed_at_the_time_on_this_clock(states: PartitionStates) -> None:
    states.ownerships_listed(SCOPE, [(owned("e1"), 7.0)], next_change())
    known = states.partition(SCOPE, "0")
    assert known.renewed_by("me", "e1") == owned("e1").at(7.0)


def test_a_claim_with_another_owner_or_etag_is_no_renewal(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    assert known.renewed_by("me", None) is None
    known.record_claim(Lease().won(owned("e1"), None), owned("e1"))
    assert known.renewed_by("other", "e1") is None
    assert known.renewed_by("me", "e0") is None


def test_a_lost_row_is_renewed_by_nobody(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e1"), None), owned("e1"))
    known.record_claim(known.lease.lost())
    assert known.renewed_by("me", "e1") is None


def test_a_released_row_is_renewed_by_nobody(states: PartitionStates) -> None:
    known = states.partition(SCOPE, "0")
    known.record_claim(Lease().won(owned("e2", ""), "e1"), owned("e2", ""))
    assert known.renewed_by("", "e2") is None


def test_a_batch_that_leaves_a_partition_out_gives_it_up(states: PartitionStates) -> None:
    known = held(states)
    states.proposed([proposal(SCOPE, "0")])
    assert known.lease.owner_id == "me"
    states.proposed([proposal(SCOPE, "1")])
    assert known.lease.owner_id == ""


def test_a_batch_of_one_scope_says_nothing_of_another(states: PartitionStates) -> None:
    known = held(states)
    states.proposed([proposal(ELSEWHERE, "1")])
    assert known.lease.owner_id == "me"


@pytest.mark.parametrize("forgotten", ["0", None])
def test_a_partition_whose_rows_were_deleted_on_purpose_begins_anew(
    states: PartitionStates, forgotten: str | None
) -> None:
    known = held(states)
    known.record_claim(known.lease, owned("e1"))
    began = next_change()
    states.forget(SCOPE, forgotten)
    for _ in range(2):
        assert (known.lease, known.checkpoint) == (held(PartitionStates()).lease.lost(), GONE)
        assert known.renewed_by("me", "e1") is None
        # A list that began before shows what was deleted.
        states.checkpoints_listed(SCOPE, [row("adopted")], began)
        states.ownerships_listed(SCOPE, [(owned("e1"), 1.0)], began)


def test_what_was_forgotten_is_one_partition_of_one_scope(states: PartitionStates) -> None:
    known = held(states)
    lease, checkpoint = known.lease, known.checkpoint
    states.forget(SCOPE, "1")
    states.forget(ELSEWHERE, None)
    assert (known.lease, known.checkpoint) == (lease, checkpoint)
