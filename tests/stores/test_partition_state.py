"""Lists overlap with claims and writes, and must not undo what those have taught."""

import pytest

from eventhub_checkpoints import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.hook_results import ABSENT, UNKNOWN
from eventhub_checkpoints.stores.partition_state import (
    CheckpointGuard,
    Lease,
    PartitionState,
    PartitionStates,
)

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$default")
ELSEWHERE = Scope("ns.servicebus.windows.net", "orders", "other")


def row(version: str, sequence_number: int = 5, partition_id: str = "0") -> Checkpoint:
    return Checkpoint(SCOPE, partition_id, "500", sequence_number, version)


def owned(etag: str, owner_id: str = "me") -> Ownership:
    return Ownership(SCOPE, "0", owner_id, etag, 1.0)


@pytest.fixture
def ledger() -> PartitionStates:
    return PartitionStates()


def show(ledger: PartitionStates, *rows: Checkpoint) -> None:
    ledger.checkpoints_listed(SCOPE, rows, ledger.begin_list(SCOPE))


def held(ledger: PartitionStates) -> PartitionState:
    """A partition that this store has taken, with the list that followed."""
    known = ledger.partition(SCOPE, "0")
    known.claim(Lease().won(owned("e1"), None))
    show(ledger, row("adopted"))
    return known


def test_a_partition_is_unknown_before_the_first_list(ledger: PartitionStates) -> None:
    assert ledger.partition(SCOPE, "0").track.base is UNKNOWN


def test_a_partition_that_a_list_did_not_show_has_no_row(ledger: PartitionStates) -> None:
    known = ledger.partition(SCOPE, "0")
    show(ledger)
    assert known.track.base is ABSENT
    assert ledger.partition(SCOPE, "1").track.base is ABSENT


def test_a_list_says_nothing_of_another_scope(ledger: PartitionStates) -> None:
    show(ledger, row("theirs"))
    assert ledger.partition(ELSEWHERE, "0").track.base is UNKNOWN


def test_a_store_that_never_claimed_adopts_every_list(ledger: PartitionStates) -> None:
    for version in ("first", "second"):
        show(ledger, row(version, 100))
        assert ledger.partition(SCOPE, "0").track == CheckpointGuard(version)


def test_the_first_list_after_a_claim_is_adopted(ledger: PartitionStates) -> None:
    assert held(ledger).track == CheckpointGuard("adopted")


def test_the_second_list_after_a_claim_raises_the_floor(ledger: PartitionStates) -> None:
    known = held(ledger)
    show(ledger, row("theirs", 100))
    assert known.track == CheckpointGuard("adopted", floor=100)


def test_a_list_begun_before_the_claim_is_not_its_first(ledger: PartitionStates) -> None:
    known = held(ledger)
    known.claim(known.hold.lost())
    began = ledger.begin_list(SCOPE)
    known.claim(known.hold.won(owned("e9"), "e8"))
    ledger.checkpoints_listed(SCOPE, [row("older", 100)], began)
    assert known.track == CheckpointGuard("adopted", floor=100)
    show(ledger, row("newer", 3))
    assert known.track == CheckpointGuard("newer")


def test_a_renewal_during_the_first_list_changes_nothing(ledger: PartitionStates) -> None:
    known = ledger.partition(SCOPE, "0")
    known.write(CheckpointGuard("long ago", floor=100))
    known.claim(Lease().won(owned("e1"), None))
    began = ledger.begin_list(SCOPE)
    known.claim(known.hold.won(owned("e2"), "e1"))
    ledger.checkpoints_listed(SCOPE, [row("theirs", 7)], began)
    assert known.track == CheckpointGuard("theirs")
    assert not known.hold.taken


def test_a_loss_before_the_first_list_cancels_it(ledger: PartitionStates) -> None:
    known = held(ledger)
    known.claim(known.hold.lost().won(owned("e9"), "e8").lost())
    show(ledger, row("theirs", 100))
    assert known.track == CheckpointGuard("adopted", floor=100)


def test_a_list_does_not_undo_a_write_that_ended_meanwhile(ledger: PartitionStates) -> None:
    known = held(ledger)
    began = ledger.begin_list(SCOPE)
    known.write(known.track.written("mine", forced=False))
    ledger.checkpoints_listed(SCOPE, [row("adopted", 100)], began)
    assert known.track == CheckpointGuard("mine")


def test_a_list_does_not_take_a_write_under_way_for_a_strangers(ledger: PartitionStates) -> None:
    known = held(ledger)
    known.writing = True
    show(ledger, row("mine, not answered yet", 100))
    known.write(known.track.written("mine, not answered yet", forced=False))
    known.writing = False
    assert known.track == CheckpointGuard("mine, not answered yet")


def test_a_first_list_that_a_write_overlapped_is_not_made_up_for(ledger: PartitionStates) -> None:
    known = ledger.partition(SCOPE, "0")
    known.claim(Lease().won(owned("e1"), None))
    began = ledger.begin_list(SCOPE)
    known.write(known.track.written("mine", forced=False))
    ledger.checkpoints_listed(SCOPE, [row("older")], began)
    show(ledger, row("theirs", 100))
    assert known.track == CheckpointGuard("mine", floor=100)


def test_a_list_that_is_older_than_the_adopted_one_is_ignored(ledger: PartitionStates) -> None:
    known = held(ledger)
    known.claim(known.hold.lost())
    older = ledger.begin_list(SCOPE)
    known.claim(known.hold.won(owned("e9"), "e8"))
    show(ledger, row("newer", 3))
    ledger.checkpoints_listed(SCOPE, [row("adopted", 100)], older)
    assert known.track == CheckpointGuard("newer")


def test_a_list_that_is_older_than_one_without_the_row_is_ignored(ledger: PartitionStates) -> None:
    older = ledger.begin_list(SCOPE)
    show(ledger)
    known = ledger.partition(SCOPE, "0")
    known.claim(Lease().won(owned("e1"), None))
    ledger.checkpoints_listed(SCOPE, [row("deleted since", 100)], older)
    assert known.track == CheckpointGuard(ABSENT)


def test_a_list_that_is_newer_than_one_without_the_row_raises_the_floor(
    ledger: PartitionStates,
) -> None:
    show(ledger)
    newer = ledger.begin_list(SCOPE)
    known = ledger.partition(SCOPE, "0")
    known.claim(Lease().won(owned("e1"), None))
    ledger.checkpoints_listed(SCOPE, [row("theirs", 100)], newer)
    assert known.track == CheckpointGuard(ABSENT, floor=100)


def test_a_list_of_ownerships_teaches_a_loss(ledger: PartitionStates) -> None:
    known = held(ledger)
    ledger.ownerships_listed(SCOPE, [owned("e9", "other")], ledger.begin_list(SCOPE))
    assert known.hold.owner_id == ""


def test_a_list_of_ownerships_does_not_undo_a_claim_that_ended_meanwhile(
    ledger: PartitionStates,
) -> None:
    known = ledger.partition(SCOPE, "0")
    began = ledger.begin_list(SCOPE)
    known.claim(Lease().won(owned("e1"), None))
    ledger.ownerships_listed(SCOPE, [], began)
    assert known.hold.owner_id == "me"


def test_a_batch_that_leaves_a_partition_out_gives_it_up(ledger: PartitionStates) -> None:
    known = held(ledger)
    ledger.proposed(SCOPE, {"0"})
    assert known.hold.owner_id == "me"
    ledger.proposed(SCOPE, {"1"})
    assert known.hold.owner_id == ""


def test_a_batch_of_one_scope_says_nothing_of_another(ledger: PartitionStates) -> None:
    known = held(ledger)
    ledger.proposed(ELSEWHERE, {"1"})
    assert known.hold.owner_id == "me"
