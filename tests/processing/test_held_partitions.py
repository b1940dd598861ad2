"""Which partitions a client holds, told from claims and lists alone."""

from typing import Any

import pytest

from eventhub_checkpoints import InvalidRecordError
from eventhub_checkpoints.processing.write_state import HeldPartitions, Key, key_of, keyed
from eventhub_checkpoints.records import Scope

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$default")
OTHER = SCOPE._replace(consumer_group="other")


def row(partition_id: str, owner_id: object = "me", scope: Scope = SCOPE) -> dict[str, Any]:
    return scope.as_dict() | {"partition_id": partition_id, "owner_id": owner_id}


def keys(*partition_ids: str, scope: Scope = SCOPE) -> set[Key]:
    return {(scope, one) for one in partition_ids}


@pytest.fixture
def held() -> HeldPartitions:
    """Of a client that holds 0 and 1."""
    made = HeldPartitions()
    assert made.claimed([row("0"), row("1")], [row("0"), row("1")]) == set()
    return made


def test_names_in_any_letter_case_are_one_key() -> None:
    loud = Scope(*(name.upper() for name in SCOPE))
    assert key_of(row("0", scope=loud)) == key_of(row("0")) == (SCOPE, "0")


@pytest.mark.parametrize("unusable", [None, "text", {}, row(""), row("a/b")])
def test_what_is_unusable_has_no_key_and_is_left_out(unusable: Any) -> None:
    with pytest.raises(InvalidRecordError):
        key_of(unusable)
    assert keyed([unusable, row("1")]).keys() == keys("1")


def test_an_unusable_partition_is_named_as_such() -> None:
    with pytest.raises(InvalidRecordError, match=r"^partition_id "):
        key_of(row("a/b"))


def test_a_claim_that_was_left_out_is_lost(held: HeldPartitions) -> None:
    assert held.claimed([row("0"), row("1")], [row("1")]) == keys("0")
    assert held.has_lost((SCOPE, "0"))
    assert not held.has_lost((SCOPE, "1"))


def test_what_is_no_longer_proposed_is_lost(held: HeldPartitions) -> None:
    assert held.claimed([row("1"), row("2")], [row("1"), row("2")]) == keys("0")


def test_a_batch_of_another_group_says_nothing(held: HeldPartitions) -> None:
    batch = [row("0", scope=OTHER)]
    assert held.claimed(batch, []) == keys("0", scope=OTHER)
    assert not held.has_lost((SCOPE, "0"))


@pytest.mark.parametrize("batch", [[], [row("0", "")], [row("0", None)]])
def test_a_batch_without_claims_says_nothing(held: HeldPartitions, batch: list[Any]) -> None:
    assert held.claimed(batch, batch) == set()


def test_a_partition_that_was_won_again_is_not_lost(held: HeldPartitions) -> None:
    held.released([(SCOPE, "0")])
    assert held.has_lost((SCOPE, "0"))
    held.claimed([row("0"), row("1")], [row("0"), row("1")])
    assert not held.has_lost((SCOPE, "0"))


@pytest.mark.parametrize(
    ("owner_id", "is_lost"), [("me", False), ("", False), (None, False), ("other", True)]
)
def test_a_list_that_shows_another_owner_says_that_it_is_lost(
    held: HeldPartitions, owner_id: object, is_lost: bool
) -> None:
    assert held.listed([row("0", owner_id), row("2", "other")]) == keys(*["0"] * is_lost)
    assert held.has_lost((SCOPE, "0")) is is_lost


def test_who_never_claimed_a_partition_has_not_lost_it(held: HeldPartitions) -> None:
    held.listed([row("7", "other")])
    held.claimed([row("0"), row("1")], [])
    assert not held.has_lost((SCOPE, "7"))


def test_a_loss_is_reported_once_and_remembered(held: HeldPartitions) -> None:
    others = [row("0", "other"), row("1", "other")]
    held.released([(SCOPE, "0")])
    assert held.claimed([row("1")], [row("1")]) == set()
    assert held.listed(others) == keys("1")
    assert held.listed(others) == set()
    assert [held.has_lost((SCOPE, one)) for one in "012"] == [True, True, False]
