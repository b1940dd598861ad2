"""Who asks for a partition, who answers, and when a wish is over."""

from typing import Any

import pytest

from eventhub_checkpoints.processing.handover import Answer, GroupHandover, Wish

LIMIT = 60.0
"""Seconds until an ownership expires, and that an owner has to answer."""
NOW = 1000.0


def owned(owner: str, partition_id: str = "0", modified: float = NOW) -> dict[str, Any]:
    return {
        "partition_id": partition_id,
        "owner_id": owner,
        "last_modified_time": modified,
        "etag": f"{owner} {modified}",
    }


def wished(asker: str, owner: str, partition_id: str = "0", made_at: float = NOW) -> dict[str, Any]:
    return owned(f"{asker}>{owner}", partition_id, made_at)


def client(
    me: str, rows: list[Any], wishes: list[Any] | None, now: float = NOW
) -> tuple[GroupHandover, dict[str, str]]:
    """One that has listed these rows, and the owners that it was shown."""
    group = GroupHandover(LIMIT, me)
    return group, shown(group, rows, wishes, now)


def shown(
    group: GroupHandover, rows: list[Any], wishes: list[Any] | None, now: float = NOW
) -> dict[str, str]:
    return {row["partition_id"]: row["owner_id"] for row in group.listed(rows, wishes, now)}


def test_the_partition_of_a_live_owner_is_asked_for() -> None:
    group, owners = client("thief", [owned("owner")], [])
    assert owners == {"0": "owner"}
    assert group.answer("0", "thief", NOW) is Answer.ASK
    assert group.asked("0") == ("owner", None)


def test_a_released_an_expired_and_an_unowned_partition_are_claimed_at_once() -> None:
    rows = [owned(""), owned("owner", "1", NOW - LIMIT - 1)]
    group, _ = client("thief", rows, [])
    assert [group.answer(key, "thief", NOW) for key in "012"] == [Answer.CLAIM] * 3


def test_a_wish_row_names_both_and_replaces_the_wish_that_was_there() -> None:
    claim = owned("thief") | {"consumer_group": "g"}
    row = Wish.row(claim, "g~wishes", "owner", "etag")
    assert (row["consumer_group"], row["owner_id"], row["etag"]) == (
        "g~wishes",
        "thief>owner",
        "etag",
    )
    assert "etag" not in Wish.row(claim, "g~wishes", "owner", None)
    assert claim["owner_id"] == "thief"
    assert Wish.from_row(row) == Wish("thief", "owner", NOW, "etag")


def test_a_wish_for_a_claim_without_an_etag_has_none() -> None:
    claim = {"owner_id": "thief", "partition_id": "0", "consumer_group": "g"}
    assert Wish.row(claim, "g~wishes", "owner", None) == {
        "owner_id": "thief>owner",
        "partition_id": "0",
        "consumer_group": "g~wishes",
    }


@pytest.mark.parametrize("owner_id", [None, "", "probe", ">", "thief>", ">owner"])
def test_a_row_without_who_asks_and_who_is_asked_is_no_wish(owner_id: str | None) -> None:
    row = owned("any") | {"owner_id": owner_id}
    assert Wish.from_row(row) is None
    wishes = [row, wished("thief", "owner", "1")]
    _, owners = client("other", [owned("owner"), owned("owner", "1")], wishes)
    assert owners == {"0": "owner", "1": "thief"}


def test_a_wish_of_a_store_without_etags_is_one() -> None:
    wish = wished("thief", "owner")
    del wish["etag"]
    _, owners = client("other", [owned("owner")], [wish])
    assert owners == {"0": "thief"}


def test_an_ownership_expires_after_its_time_and_not_at_it() -> None:
    group, _ = client("thief", [owned("owner", modified=NOW - LIMIT)], [])
    assert group.answer("0", "thief", NOW) is Answer.ASK
    assert group.answer("0", "thief", NOW + 0.1) is Answer.CLAIM


def test_what_a_client_has_closed_is_released_until_it_is_proposed_again() -> None:
    group, _ = client("owner", [owned("owner")], [])
    group.closed("0")
    assert group.released == {"0"}
    assert group.answer("0", "owner", NOW) is Answer.CLAIM
    assert group.released == set()


def test_a_row_that_is_no_wish_is_ignored() -> None:
    group, owners = client("thief", [owned("owner")], [owned("probe"), owned(">", "1")])
    assert owners == {"0": "owner"}
    assert group.answer("0", "thief", NOW) is Answer.ASK


def test_what_a_client_has_asked_for_counts_as_its_own_and_is_waited_for() -> None:
    group, owners = client("thief", [owned("owner")], [wished("thief", "owner")])
    assert owners == {"0": "thief"}
    assert group.answer("0", "thief", NOW) is Answer.WAIT


def test_a_second_thief_neither_asks_for_the_same_partition_nor_takes_it() -> None:
    group, owners = client("other", [owned("owner")], [wished("thief", "owner")])
    assert owners == {"0": "thief"}
    assert group.answer("0", "other", NOW + LIMIT - 1) is Answer.WAIT


def test_the_owner_keeps_a_partition_it_is_asked_for_until_its_client_has_closed_it() -> None:
    group, owners = client("owner", [owned("owner")], [wished("thief", "owner")])
    assert owners == {"0": "owner"}
    assert not group.is_departing("0", NOW)
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    assert group.is_departing("0", NOW)
    # A wish that cannot be read any more changes nothing.
    shown(group, [owned("owner")], None)
    assert group.answer("0", "owner", NOW + 1) is Answer.KEEP
    group.closed("0")
    assert group.answer("0", "owner", NOW + 1) is Answer.RELEASE


def test_a_drain_that_takes_longer_than_the_wish_is_open_ends_the_hand_over() -> None:
    group, _ = client("owner", [owned("owner")], [wished("thief", "owner")])
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    late = NOW + LIMIT
    assert not group.is_departing("0", late)
    assert group.answer("0", "owner", late) is Answer.CLAIM
    shown(group, [owned("owner", modified=late)], [wished("thief", "owner")], late)
    assert group.departures == {}


def test_an_owner_that_lets_time_pass_is_taken_from_by_the_thief_that_asked() -> None:
    late = NOW + LIMIT
    rows, wishes = [owned("owner", modified=late)], [wished("thief", "owner")]
    group, owners = client("thief", rows, wishes, late)
    assert owners == {"0": "thief"}
    assert group.answer("0", "thief", late) is Answer.CLAIM
    other, owners = client("other", rows, wishes, late)
    assert owners == {"0": "owner"}
    assert other.answer("0", "other", late) is Answer.ASK
    assert other.asked("0") == ("owner", wishes[0]["etag"])


def test_a_wish_of_long_ago_gives_no_right_to_take() -> None:
    late = NOW + 2 * LIMIT
    rows = [owned("owner", modified=late)]
    group, owners = client("thief", rows, [wished("thief", "owner")], late)
    assert owners == {"0": "owner"}
    assert group.answer("0", "thief", late) is Answer.ASK


def test_a_wish_to_an_earlier_owner_is_spent_for_good() -> None:
    wishes = [wished("thief", "owner")]
    group, owners = client("owner", [owned("")], wishes)
    assert owners == {"0": ""}
    shown(group, [owned("owner")], wishes)
    assert group.answer("0", "owner", NOW) is Answer.CLAIM
    thief, owners = client("thief", [owned("third")], wishes)
    assert owners == {"0": "third"}
    assert thief.answer("0", "thief", NOW) is Answer.ASK


def test_who_let_a_partition_go_leaves_it_to_the_thief_for_a_while() -> None:
    wishes = [wished("thief", "owner")]
    group, _ = client("owner", [owned("owner")], wishes)
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    assert shown(group, [owned("")], wishes) == {"0": "thief"}
    assert shown(group, [owned("")], wishes, NOW + LIMIT / 3 - 1) == {"0": "thief"}
    assert shown(group, [owned("")], wishes, NOW + LIMIT / 3) == {"0": ""}
    assert group.answer("0", "owner", NOW + LIMIT / 3) is Answer.CLAIM


def test_what_the_thief_gives_back_is_free_for_the_one_that_let_it_go() -> None:
    wishes = [wished("thief", "owner")]
    group, _ = client("owner", [owned("owner")], wishes)
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    shown(group, [owned("")], wishes)
    assert shown(group, [owned("thief")], wishes) == {"0": "thief"}
    assert shown(group, [owned("")], wishes) == {"0": ""}


def test_where_wishes_cannot_be_read_nobody_is_taken_from_and_renewals_go_on() -> None:
    group, owners = client("me", [owned("me"), owned("owner", "1"), owned("", "2")], None)
    assert owners == {"0": "me", "1": "owner", "2": ""}
    answers = [group.answer(key, "me", NOW) for key in "012"]
    assert answers == [Answer.CLAIM, Answer.WAIT, Answer.CLAIM]
