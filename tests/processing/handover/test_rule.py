"""Who asks for a partition, who answers, and when a request ends."""

from typing import Any

import pytest

from eventhub_checkpoints import Scope
from eventhub_checkpoints.processing.handover import Answer, GroupHandover, HandoverRequest

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


def requested(
    requester: str, owner: str, partition_id: str = "0", made_at: float = NOW
) -> dict[str, Any]:
    return owned(f"{requester}>{owner}", partition_id, made_at)


def client(
    me: str, rows: list[Any], requests: list[Any] | None, now: float = NOW
) -> tuple[GroupHandover, dict[str, str]]:
    """One that has listed these rows, and the owners that it was shown."""
    group = GroupHandover(LIMIT, me)
    return group, shown(group, rows, requests, now)


def shown(
    group: GroupHandover, rows: list[Any], requests: list[Any] | None, now: float = NOW
) -> dict[str, str]:
    """The owner of each partition in the eyes of the client; `""` if that has expired."""
    return {
        row["partition_id"]: row["owner_id"] if row["last_modified_time"] + LIMIT >= now else ""
        for row in group.listed(rows, requests, now)
    }


def test_the_partition_of_a_live_owner_is_asked_for() -> None:
    group, owners = client("newcomer", [owned("owner")], [])
    assert owners == {"0": "owner"}
    assert group.answer("0", "newcomer", NOW) is Answer.ASK
    assert group.asked("0") == [("0", "owner", None)]


def test_a_released_an_expired_and_an_unowned_partition_are_claimed_at_once() -> None:
    rows = [owned(""), owned("owner", "1", NOW - LIMIT - 1)]
    group, _ = client("newcomer", rows, [])
    assert [group.answer(key, "newcomer", NOW) for key in "012"] == [Answer.CLAIM] * 3


def test_a_request_row_names_both_and_replaces_the_request_that_was_there() -> None:
    claim = owned("newcomer") | {"consumer_group": "g"}
    row = HandoverRequest.row(claim, "g~wishes", "owner", "etag")
    assert (row["consumer_group"], row["owner_id"], row["etag"]) == (
        "g~wishes",
        "newcomer>owner",
        "etag",
    )
    assert "etag" not in HandoverRequest.row(claim, "g~wishes", "owner", None)
    assert claim["owner_id"] == "newcomer"
    assert HandoverRequest.from_row(row) == HandoverRequest("newcomer", "owner", NOW, "etag")


def test_a_request_for_a_claim_without_an_etag_has_none() -> None:
    claim = {"owner_id": "newcomer", "partition_id": "0", "consumer_group": "g"}
    assert HandoverRequest.row(claim, "g~wishes", "owner", None) == {
        "owner_id": "newcomer>owner",
        "partition_id": "0",
        "consumer_group": "g~wishes",
    }


@pytest.mark.parametrize("owner_id", [None, "", "probe", ">", "newcomer>", ">owner"])
def test_a_row_without_who_asks_and_who_is_asked_is_no_request(owner_id: str | None) -> None:
    row = owned("any") | {"owner_id": owner_id}
    assert HandoverRequest.from_row(row) is None
    requests = [row, requested("newcomer", "owner", "1")]
    _, owners = client("other", [owned("owner"), owned("owner", "1")], requests)
    assert owners == {"0": "owner", "1": "newcomer"}


def test_a_request_of_a_store_without_etags_is_one() -> None:
    request = requested("newcomer", "owner")
    del request["etag"]
    _, owners = client("other", [owned("owner")], [request])
    assert owners == {"0": "newcomer"}


def test_an_ownership_expires_after_its_time_and_not_at_it() -> None:
    group, _ = client("newcomer", [owned("owner", modified=NOW - LIMIT)], [])
    assert group.answer("0", "newcomer", NOW) is Answer.ASK
    assert group.answer("0", "newcomer", NOW + 0.1) is Answer.CLAIM


def test_what_a_client_has_closed_is_released_until_it_is_proposed_again() -> None:
    group, _ = client("owner", [owned("owner")], [])
    group.closed("0")
    assert group.released == {"0"}
    assert group.answer("0", "owner", NOW) is Answer.CLAIM
    assert group.released == set()


def test_a_row_that_is_no_request_is_ignored() -> None:
    group, owners = client("newcomer", [owned("owner")], [owned("probe"), owned(">", "1")])
    assert owners == {"0": "owner"}
    assert group.answer("0", "newcomer", NOW) is Answer.ASK


def test_what_a_client_has_asked_for_counts_as_its_own_and_is_waited_for() -> None:
    group, owners = client("newcomer", [owned("owner")], [requested("newcomer", "owner")])
    assert owners == {"0": "newcomer"}
    assert group.answer("0", "newcomer", NOW) is Answer.WAIT


def test_a_second_newcomer_neither_asks_for_the_same_partition_nor_takes_it() -> None:
    group, owners = client("other", [owned("owner")], [requested("newcomer", "owner")])
    assert owners == {"0": "newcomer"}
    assert group.answer("0", "other", NOW + LIMIT - 1) is Answer.WAIT


def test_the_owner_keeps_a_partition_it_is_asked_for_until_its_client_has_closed_it() -> None:
    group, owners = client("owner", [owned("owner")], [requested("newcomer", "owner")])
    assert owners == {"0": "owner"}
    assert not group.is_departing("0", NOW)
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    assert group.is_departing("0", NOW)
    # A request that cannot be read any more changes nothing.
    shown(group, [owned("owner")], None)
    assert group.answer("0", "owner", NOW + 1) is Answer.KEEP
    group.closed("0")
    assert group.answer("0", "owner", NOW + 1) is Answer.RELEASE


def test_a_drain_that_takes_longer_than_the_request_is_open_ends_the_hand_over() -> None:
    group, _ = client("owner", [owned("owner")], [requested("newcomer", "owner")])
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    late = NOW + LIMIT
    assert not group.is_departing("0", late)
    assert group.answer("0", "owner", late) is Answer.CLAIM
    shown(group, [owned("owner", modified=late)], [requested("newcomer", "owner")], late)
    assert group.departures == {}


def test_an_owner_that_lets_time_pass_is_taken_from_by_the_newcomer_that_asked() -> None:
    late = NOW + LIMIT
    rows, requests = [owned("owner", modified=late)], [requested("newcomer", "owner")]
    group, owners = client("newcomer", rows, requests, late)
    assert owners == {"0": "newcomer"}
    assert group.answer("0", "newcomer", late) is Answer.CLAIM
    other, owners = client("other", rows, requests, late)
    assert owners == {"0": "owner"}
    assert other.answer("0", "other", late) is Answer.ASK
    assert other.asked("0") == [("0", "owner", requests[0]["etag"])]


def test_a_request_of_long_ago_gives_no_right_to_take() -> None:
    late = NOW + 2 * LIMIT
    rows = [owned("owner", modified=late)]
    group, owners = client("newcomer", rows, [requested("newcomer", "owner")], late)
    assert owners == {"0": "owner"}
    assert group.answer("0", "newcomer", late) is Answer.ASK


def test_a_request_to_an_earlier_owner_is_spent_for_good() -> None:
    requests = [requested("newcomer", "owner")]
    group, owners = client("owner", [owned("third")], requests)
    assert owners == {"0": "third"}
    assert shown(group, [owned("")], requests) == {"0": ""}
    shown(group, [owned("owner")], requests)
    assert group.answer("0", "owner", NOW) is Answer.CLAIM
    newcomer, owners = client("newcomer", [owned("third")], requests)
    assert owners == {"0": "third"}
    assert newcomer.answer("0", "newcomer", NOW) is Answer.ASK


def test_what_was_released_for_a_newcomer_is_left_to_it_while_the_request_is_open() -> None:
    requests = [requested("newcomer", "owner")]
    group, _ = client("owner", [owned("owner")], requests)
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    other, newcomer = GroupHandover(LIMIT, "other"), GroupHandover(LIMIT, "newcomer")
    last = NOW + LIMIT - 1
    for now in (NOW, last):
        released = [owned("", modified=NOW)]
        assert shown(group, released, requests, now) == {"0": "newcomer"}
        assert shown(other, released, requests, now) == {"0": "newcomer"}
        assert shown(newcomer, released, requests, now) == {"0": "newcomer"}
        assert group.answer("0", "owner", now) is Answer.WAIT
        assert other.answer("0", "other", now) is Answer.WAIT
        assert newcomer.answer("0", "newcomer", now) is Answer.CLAIM
    end = NOW + LIMIT
    for me in ("owner", "other", "newcomer"):
        each, owners = client(me, released, requests, end)
        assert owners == {"0": ""}
        assert each.answer("0", me, end) is Answer.CLAIM


def test_the_partitions_of_an_owner_that_has_gone_are_shared_among_those_that_asked() -> None:
    gone = NOW + LIMIT + 1
    rows = [owned("owner", id_) for id_ in "012"]
    requests = [
        requested("newcomer", "owner", "0", gone - 2),
        requested("other", "owner", "1", gone - 2),
    ]
    newcomer = GroupHandover(LIMIT, "newcomer")
    seen = newcomer.listed(rows, requests, gone)
    # The client sees what is left to those that asked as theirs, and not as expired.
    assert [(row["owner_id"], row["last_modified_time"]) for row in seen] == [
        ("newcomer", gone),
        ("other", gone),
        ("owner", NOW),
    ]
    answers = [newcomer.answer(key, "newcomer", gone) for key in "012"]
    assert answers == [Answer.CLAIM, Answer.WAIT, Answer.CLAIM]


def test_a_partition_without_a_row_is_claimed_even_if_it_is_asked_for() -> None:
    group, _ = client("other", [], [requested("newcomer", "owner")])
    assert group.answer("0", "other", NOW) is Answer.CLAIM


def test_what_is_a_clients_own_stays_its_own_after_it_has_expired() -> None:
    late = NOW + LIMIT + 1
    group = GroupHandover(LIMIT, "me")
    (row,) = group.listed([owned("me")], [], late)
    assert (row["owner_id"], row["last_modified_time"]) == ("me", late)
    (row,) = group.listed([owned("me")], [], NOW + LIMIT)
    assert row["last_modified_time"] == NOW


def test_what_the_newcomer_gives_back_is_free_once_its_request_is_spent() -> None:
    requests = [requested("newcomer", "owner")]
    group, _ = client("owner", [owned("owner")], requests)
    assert group.answer("0", "owner", NOW) is Answer.KEEP
    shown(group, [owned("")], requests)
    assert shown(group, [owned("newcomer")], requests) == {"0": "newcomer"}
    assert shown(group, [owned("")], requests) == {"0": ""}
    # A client that comes later knows it by the withdrawal.
    _, owners = client("other", [owned("")], [owned("")])
    assert owners == {"0": ""}


def test_a_client_withdraws_its_requests_that_are_spent_and_what_is_void() -> None:
    mine, other = requested("me", "owner"), requested("other", "third", "1")
    group, _ = client("me", [owned("owner"), owned("third", "1")], [mine, other])
    assert group.withdrawn() == {}
    assert group.asking == {"0"}
    shown(group, [owned("me"), owned("other", "1")], [mine, other])
    assert group.withdrawn() == {"0": mine["etag"]}
    assert group.withdrawn() == {}


@pytest.mark.parametrize(
    ("me", "withdraws"), [("newcomer", True), ("owner", True), ("other", False)]
)
def test_a_void_request_is_withdrawn_by_who_asked_or_has_the_partition(
    me: str, withdraws: bool
) -> None:
    request = requested("newcomer", "owner")
    for now, is_void in ((NOW + 2 * LIMIT - 1, False), (NOW + 2 * LIMIT, True)):
        group, _ = client(me, [owned("owner", modified=now)], [request], now)
        assert group.withdrawn() == ({"0": request["etag"]} if is_void and withdraws else {})


def test_a_request_that_is_replaced_is_not_withdrawn_as_well() -> None:
    late, request = NOW + 2 * LIMIT, requested("newcomer", "owner")
    group, _ = client("newcomer", [owned("owner", modified=late)], [request], late)
    assert group.answer("0", "newcomer", late) is Answer.ASK
    assert group.asked("0") == [("0", "owner", request["etag"])]
    assert group.withdrawn() == {}
    assert group.asking == {"0"}


def test_a_client_that_leaves_asks_for_nothing_and_the_next_one_does() -> None:
    group, _ = client("me", [owned("owner")], [])
    group.left = "me"
    assert group.answer("0", "me", NOW) is Answer.WAIT
    assert group.answer("0", "its successor", NOW) is Answer.ASK


def punctual(group: GroupHandover, until: float, rows: list[Any]) -> None:
    """Let a client list in time, from when it last did."""
    while group._listed_at < until:
        shown(group, rows, [], min(group._listed_at + LIMIT / 2, until))


def test_a_client_that_is_late_grants_others_twice_its_delay() -> None:
    rows, delay = [owned("owner")], 2 * LIMIT
    group, _ = client("me", rows, [])
    assert shown(group, rows, [], NOW + delay) == {"0": "owner"}
    assert group.answer("0", "me", NOW + delay) is Answer.ASK
    # A client that has just started has no delay.
    _, owners = client("other", rows, [], NOW + delay)
    assert owners == {"0": ""}


def test_a_client_that_comes_half_of_the_limit_later_is_in_time() -> None:
    group, _ = client("me", [], [])
    in_time, late = NOW + LIMIT / 2, NOW + LIMIT + 0.1
    for now, owner in ((in_time, ""), (late, "owner")):
        assert shown(group, [owned("owner", modified=now - LIMIT - 0.1)], [], now) == {"0": owner}


def test_requests_of_others_stay_open_for_a_client_that_is_late_and_its_own_answers_do_not() -> (
    None
):
    requests, delay = (
        [requested("newcomer", "owner"), requested("newcomer", "me", "1")],
        1.5 * LIMIT,
    )
    rows = [owned("", modified=NOW), owned("me", "1", NOW)]
    group, _ = client("me", rows, requests)
    assert shown(group, rows, requests, NOW + delay) == {"0": "newcomer", "1": "me"}
    assert group.answer("0", "me", NOW + delay) is Answer.WAIT
    # The newcomer may be punctual, and take it at any time.
    assert group.answer("1", "me", NOW + delay) is Answer.CLAIM


def test_a_delay_is_remembered_for_a_while_and_within_limits() -> None:
    group, _ = client("me", [owned("owner")], [])
    late = NOW + 5 * LIMIT
    assert shown(group, [owned("owner")], [], late) == {"0": "owner"}
    most = [owned("owner", modified=late - 3 * LIMIT)]
    assert shown(group, most, [], late) == {"0": "owner"}
    assert shown(group, most, [], late + 0.1) == {"0": ""}
    forgotten = late + 10 * LIMIT
    punctual(group, forgotten - 1, most)
    age = [owned("owner", modified=forgotten - 2 * LIMIT)]
    assert shown(group, age, [], forgotten - 1) == {"0": "owner"}
    assert shown(group, age, [], forgotten) == {"0": ""}


def test_the_longest_delay_counts_and_a_short_one_only_as_far_as_it_goes() -> None:
    group, _ = client("me", [], [])
    for now in (NOW + LIMIT, NOW + 1.6 * LIMIT):
        shown(group, [], [], now)
    now = NOW + 1.6 * LIMIT
    assert shown(group, [owned("owner", modified=now - 2 * LIMIT)], [], now) == {"0": "owner"}
    assert shown(group, [owned("owner", modified=now - 2 * LIMIT - 1)], [], now) == {"0": ""}


def test_where_requests_cannot_be_read_nobody_is_taken_from_and_renewals_go_on() -> None:
    group, owners = client("me", [owned("me"), owned("owner", "1"), owned("", "2")], None)
    assert owners == {"0": "me", "1": "owner", "2": ""}
    answers = [group.answer(key, "me", NOW) for key in "012"]
    assert answers == [Answer.CLAIM, Answer.WAIT, Answer.CLAIM]


@pytest.mark.parametrize("etag", [None, "7"])
def test_a_request_is_withdrawn_by_the_release_of_its_row(etag: str | None) -> None:
    row = HandoverRequest.withdrawal(Scope("ns", "orders", "readers"), "3", etag)
    assert row == {
        "fully_qualified_namespace": "ns",
        "eventhub_name": "orders",
        "consumer_group": "readers",
        "partition_id": "3",
        "owner_id": "",
        **({} if etag is None else {"etag": etag}),
    }


def test_a_released_partition_does_not_hide_what_is_asked_for_after_it() -> None:
    rows = [owned(""), owned("owner", "1")]
    _, owners = client("newcomer", rows, [requested("other", "owner", "1")])
    assert owners == {"0": "", "1": "other"}


def test_a_client_that_was_never_late_waits_no_longer_than_until_the_expiry() -> None:
    group = GroupHandover(1.0, "newcomer")
    group.listed([owned("owner", modified=NOW - 1.5)], [], NOW)
    assert group.answer("0", "newcomer", NOW) is Answer.CLAIM


def test_a_client_in_its_first_round_is_not_shown_what_is_released_for_another_one() -> None:
    """It would want just that, get nothing, and ask for nothing else until its next round."""
    rows = [owned(""), owned("owner", "1")]
    group, owners = client("", rows, [requested("newcomer", "owner")])
    assert owners == {"0": "newcomer", "1": "owner"}
    assert group.answer("1", "other", NOW) is Answer.ASK


def partitions(**counts: int) -> list[Any]:
    """Rows of that many partitions of each owner, in this order."""
    owners = [owner for owner, count in counts.items() for _ in range(count)]
    return [owned(owner, str(number)) for number, owner in enumerate(owners)]


def keys(asked: list[tuple[str, str, str | None]]) -> list[str]:
    return [partition_id for partition_id, *_ in asked]


def test_a_client_that_lacks_more_asks_for_two_partitions_of_an_owner_at_once() -> None:
    group, _ = client("newcomer", partitions(owner=4), [])
    assert group.asked("1") == [("1", "owner", None), ("2", "owner", None)]
    assert group.asking == {"1", "2"}
    assert keys(group.asked("3")) == ["3", "0"]
    group, _ = client("newcomer", partitions(owner=9), [])
    assert keys(group.asked("1")) == ["1", "2"]


def test_a_client_asks_for_no_more_than_its_share_and_leaves_owners_theirs() -> None:
    group, _ = client("newcomer", partitions(owner=3), [])
    assert keys(group.asked("1")) == ["1"]
    group, _ = client("newcomer", partitions(newcomer=1, owner=3), [])
    assert keys(group.asked("1")) == ["1"]
    # A third of 9 is its share, and the owner has one more than that.
    group, _ = client("newcomer", partitions(newcomer=1, other=4, owner=4), [])
    assert keys(group.asked("1")) == ["1"]


def test_what_others_have_asked_for_or_what_is_free_is_not_asked_for_as_well() -> None:
    rows = [*partitions(owner=7), owned("", "7")]
    requests = [requested("other", "owner", "1", NOW), requested("newcomer", "owner", "2")]
    group, _ = client("newcomer", rows, requests)
    assert keys(group.asked("0")) == ["0"]
    group, _ = client("newcomer", rows[:-1], requests[:1])
    assert keys(group.asked("0")) == ["0", "2"]


def test_what_a_client_has_asked_for_beyond_its_share_is_left_to_the_next_one() -> None:
    """Both have joined at the same time, and the first did not know of the second."""
    requests = [requested("newcomer", "owner", key) for key in "01"]
    group, owners = client("third", partitions(owner=4, other=2), requests)
    assert [*owners.values()] == ["newcomer", "newcomer", "owner", "owner", "other", "other"]
    assert group.answer("0", "third", NOW) is Answer.ASK
    assert group.asked("0") == [("0", "owner", requests[0]["etag"])]


def test_what_a_client_has_asked_for_within_its_share_is_its_own() -> None:
    requests = [requested("newcomer", "owner", key) for key in "01"]
    group, _ = client("third", partitions(owner=8), requests)
    assert group.answer("0", "third", NOW) is Answer.WAIT


def test_what_is_released_for_a_client_is_its_own_also_beyond_its_share() -> None:
    requests = [requested("newcomer", "owner", key) for key in "01"]
    rows = [owned(""), *partitions(x=1, owner=3)[1:]]
    group, _ = client("third", rows, requests)
    assert group.answer("0", "third", NOW) is Answer.WAIT
    assert group.answer("1", "third", NOW) is Answer.ASK


def test_one_request_is_never_beyond_a_share() -> None:
    group, _ = client("other", [owned("owner")], [requested("newcomer", "owner")])
    assert group.answer("0", "other", NOW) is Answer.WAIT
