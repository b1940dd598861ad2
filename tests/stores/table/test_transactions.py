"""Renewals of a round are one request, and each of them still wins or loses by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import DecodeError

from backends.table import TablePlace
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.messages import Response
from eventhub_checkpoints.stores.table import transactions
from fault_proxy import FaultProxy

Make = Callable[..., Client]
MANY = [str(number) for number in range(100)]


@pytest.fixture
def held(client: Make, proxied: str, proxy: FaultProxy) -> Callable[[int], tuple[Client, Any]]:
    """A client behind the proxy that holds some partitions, and its rows."""

    def holding(count: int) -> tuple[Client, Any]:
        made = client(proxied)
        rows = made.claim_ownership([made.proposal(name, "me") for name in MANY[:count]])
        assert len(rows) == count
        proxy.forget()
        return made, rows

    return holding


def asked(proxy: FaultProxy) -> list[str]:
    """How each request since then begins: a transaction, a list, or an entity."""
    return [
        "transaction" if "$batch" in request.target else request.method
        for request in proxy.requests
    ]


def names_of(rows: Any) -> list[str]:
    return [row["partition_id"] for row in rows]


@pytest.mark.parametrize("count", [4, 32, 100])
def test_the_renewals_of_a_round_are_one_request(held, proxy: FaultProxy, count: int) -> None:
    client, rows = held(count)
    won = client.claim_ownership(rows)
    assert names_of(won) == MANY[:count]
    assert {row["etag"] for row in won}.isdisjoint(row["etag"] for row in rows)
    assert asked(proxy) == ["transaction"]
    listed = {row["partition_id"]: row["etag"] for row in client.list_ownership()}
    assert listed == {row["partition_id"]: row["etag"] for row in won}


def test_more_than_a_hundred_are_cut(client: Make, proxied: str, proxy: FaultProxy) -> None:
    made = client(proxied)
    names = [str(number) for number in range(130)]
    rows = made.claim_ownership([made.proposal(name, "me") for name in names])
    proxy.forget()
    assert names_of(made.claim_ownership(rows)) == names
    assert asked(proxy) == ["transaction"] * 2


def test_a_single_renewal_and_first_claims_are_requests_of_their_own(
    held, proxy: FaultProxy
) -> None:
    client, rows = held(1)
    assert names_of(client.claim_ownership([*rows, client.proposal("a", "me")])) == ["0", "a"]
    assert sorted(asked(proxy)) == ["POST", "PUT"]


def test_one_that_is_lost_costs_one_more_request(
    held, client: Make, table: TablePlace, proxy: FaultProxy
) -> None:
    ours, rows = held(8)
    client(table.url).take_listed("5", "you")
    assert names_of(ours.claim_ownership(rows)) == [name for name in MANY[:8] if name != "5"]
    assert asked(proxy) == ["transaction"] * 2
    assert ours.owner("5") == "you"
    assert ours.store.counters["lost_claims"] == 1


def test_after_two_that_are_lost_each_is_sent_singly(
    held, client: Make, table: TablePlace, proxy: FaultProxy
) -> None:
    ours, rows = held(8)
    for name in ("1", "4", "6"):
        client(table.url).take_listed(name, "you")
    assert names_of(ours.claim_ownership(rows)) == ["0", "2", "3", "5", "7"]
    assert asked(proxy) == [*["transaction"] * 2, *["PUT"] * 6]
    assert {ours.owner(name) for name in ("1", "4", "6")} == {"you"}


def test_one_that_has_vanished_is_created(
    held, table: TablePlace, scope: Scope, proxy: FaultProxy
) -> None:
    client, rows = held(4)
    table.put_raw("ownership", scope, "2", None)
    assert names_of(client.claim_ownership(rows)) == MANY[:4]
    assert sorted(asked(proxy)) == ["POST", "PUT", "transaction", "transaction"]
    assert client.owner("2") == "me"


def test_an_answer_that_is_lost_is_an_unknown_outcome_for_each(held, proxy: FaultProxy) -> None:
    """They are tried again; those that then meet a conflict are looked up, and are its own."""
    client, rows = held(4)
    proxy.on("POST", "$batch", times=1).lose_answer()
    won = client.claim_ownership(rows)
    assert names_of(won) == MANY[:4]
    assert asked(proxy) == [*["transaction"] * 3, *["PUT"] * 2, "GET"]
    assert {row["etag"] for row in won} == {row["etag"] for row in client.list_ownership()}


def test_of_an_answer_that_is_lost_another_owners_are_lost(
    held, client: Make, table: TablePlace, proxy: FaultProxy
) -> None:
    ours, rows = held(4)
    client(table.url).take_listed("2", "you")
    proxy.on("POST", "$batch", times=1).drop()
    assert names_of(ours.claim_ownership(rows)) == ["0", "1", "3"]
    assert ours.owner("2") == "you"


def test_a_request_that_is_never_answered_keeps_its_renewals_for_a_while(
    held, proxy: FaultProxy
) -> None:
    client, rows = held(4)
    client.set(operation_timeout=0.5)
    proxy.on("POST", "$batch").hang()
    assert client.claim_ownership(rows) == rows
    assert client.store.counters["unconfirmed_claims"] == 4


def test_a_service_that_is_busy_is_asked_again(held, proxy: FaultProxy) -> None:
    client, rows = held(4)
    proxy.on("POST", "$batch", times=1).refuse(503, "ServerBusy")
    assert names_of(client.claim_ownership(rows)) == MANY[:4]
    assert asked(proxy) == ["transaction"] * 2


def test_an_update_that_the_service_cannot_store_harms_no_other(held, proxy: FaultProxy) -> None:
    """Another failure than a lost race is said of no other renewal of the request."""
    client, rows = held(4)
    rows[1]["owner_id"] = "x" * 40_000  # a property has 32,768 characters at most
    with pytest.raises(Exception, match="400"):
        client.claim_ownership(rows)
    found = {row["partition_id"]: row["etag"] for row in client.list_ownership()}
    unchanged = [row["partition_id"] for row in rows if found[row["partition_id"]] == row["etag"]]
    assert unchanged == ["1"]


def test_a_claim_that_no_key_can_hold_harms_no_other(held, proxy: FaultProxy) -> None:
    client, rows = held(4)
    claims = [{**rows[0], "partition_id": "a#b"}, *rows, client.proposal("a?b", "me")]
    with pytest.raises(InvalidRecordError, match="partition_id"):
        client.claim_ownership(claims)
    assert asked(proxy) == ["transaction"]
    stored = {row["partition_id"]: row["etag"] for row in client.list_ownership()}
    assert stored.keys() == {"0", "1", "2", "3"}
    assert all(stored[row["partition_id"]] != row["etag"] for row in rows)


def answered(*parts: str) -> Response:
    text = "--changesetresponse_1\r\nContent-Type: application/http\r\n\r\n".join(["", *parts])
    return Response(202, "", {}, f"--b\r\n\r\n{text}--changesetresponse_1--\r\n--b--".encode())


DONE = 'HTTP/1.1 204 No Content\r\nETag: W/"{}"\r\n\r\n\r\n'
REFUSED = (
    "HTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json\r\n\r\n"
    '{{"odata.error":{{"code":"UpdateConditionNotSatisfied","message":{{"value":"{}"}}}}}}\r\n'
)


def test_etags_are_read_in_order() -> None:
    found = transactions.outcome_of(answered(DONE.format("a"), DONE.format("b")), 2)
    assert found == ['W/"a"', 'W/"b"']


@pytest.mark.parametrize(
    ("message", "index"),
    [("1:The update condition", 1), ("The update condition", None), ("7:out of range", None)],
)
def test_the_index_of_what_failed_is_read(message: str, index: int | None) -> None:
    found = transactions.outcome_of(answered(REFUSED.format(message)), 2)
    assert isinstance(found, transactions.Failed)
    assert found.index == index
    assert (found.refusal.status, found.refusal.code) == (412, "UpdateConditionNotSatisfied")


@pytest.mark.parametrize(
    "response",
    [
        Response(202, "", {}, b""),
        Response(202, "", {}, b"<html>"),
        answered(DONE.format("a")),
        answered(DONE.format("a"), "HTTP/1.1 204 No Content\r\n\r\n\r\n"),
    ],
)
def test_what_is_no_answer_to_all_is_no_confirmation(response: Response) -> None:
    with pytest.raises(DecodeError, match="2 updates"):
        transactions.outcome_of(response, 2)
