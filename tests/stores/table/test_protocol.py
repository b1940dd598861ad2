"""What is said to Table Storage, and what its answers mean."""

import json
from typing import Any

import pytest
from azure.core.exceptions import DecodeError

from eventhub_checkpoints.errors import (
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Proposal, Scope
from eventhub_checkpoints.stores.azure_storage.messages import (
    Refusal,
    Response,
    Verdict,
    new_etag,
)
from eventhub_checkpoints.stores.table import protocol, rest
from eventhub_checkpoints.stores.table.protocol import NO_ETAG
from eventhub_checkpoints.stores.table.rest import Entity, Key

SCOPE = Scope("Orders.servicebus.windows.net", "Orders", "$Default")
ADDRESS = "https://account.table.core.windows.net/positions"
ETAG = "W/\"datetime'2026-11-27T23%3A33%3A08.8948674Z'\""
TIMESTAMP = "2026-11-27T23:33:08.8948674Z"


def entity(**fields: Any) -> Entity:
    return Entity(Key("a", "0"), ETAG, 7.0, fields)


def page(body: Any, **headers: str) -> rest.Page:
    return rest.page_of(Response(200, "", headers, json.dumps(body).encode()))


def test_the_keys_are_those_of_the_javascript_store() -> None:
    key = protocol.entity_key(SCOPE, "Ownership", "3", "as-typed")
    assert key == ("Orders.servicebus.windows.net Orders $Default Ownership", "3")
    lower = protocol.entity_key(SCOPE, "Checkpoint", "3", "lower")
    assert lower == ("orders.servicebus.windows.net orders $default Checkpoint", "3")


def test_the_properties_are_strings_and_always_all() -> None:
    assert protocol.ownership_fields("") == {"ownerid": ""}
    checkpoint = Checkpoint(SCOPE, "0", "", 2**63 - 1)
    assert protocol.checkpoint_fields(checkpoint) == {
        "sequencenumber": "9223372036854775807",
        "offset": "",
    }


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        (Scope("a b", "hub", "group"), "fully_qualified_namespace"),
        (Scope("ns", "my hub", "group"), "eventhub_name"),
        (Scope("ns", "hub", "my group"), "consumer_group"),
        (Scope("ns", "hub#1", "group"), "eventhub_name"),
        (Scope("ns", "hub", "group?"), "consumer_group"),
        (Scope("ns", "hub", "g" * 510), "consumer_group"),
    ],
)
def test_a_name_that_a_key_cannot_hold_is_refused(scope: Scope, field: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        protocol.partition_key(scope, "Ownership", "as-typed")
    assert refused.value.field == field


@pytest.mark.parametrize("partition_id", ["a#b", "a?b", "p" * 513, "\N{GRINNING FACE}" * 257])
def test_a_partition_that_a_key_cannot_hold_is_refused(partition_id: str) -> None:
    with pytest.raises(InvalidRecordError, match="partition_id"):
        protocol.entity_key(SCOPE, "Ownership", partition_id, "as-typed")


def test_the_longest_keys_are_accepted() -> None:
    names = Scope("n", "h", "g" * (512 - len("n h  Ownership")))
    key = protocol.entity_key(names, "Ownership", "p" * 512, "as-typed")
    assert [len(each) for each in key] == [512, 512]


@pytest.mark.parametrize(
    ("key", "scope"),
    [
        ("ns hub $Default Ownership", Scope("ns", "hub", "$Default")),
        ("ns hub $Default Checkpoint", Scope("ns", "hub", "$Default")),
        ("ns hub $Default Other", None),
        ("ns hub Ownership", None),
        ("ns  $Default Ownership", None),
        ("ns hub my group Ownership", None),
        ("Ownership", None),
        ("", None),
    ],
)
def test_a_scope_is_read_from_its_key(key: str, scope: Scope | None) -> None:
    assert protocol.scope_of(key) == scope


@pytest.mark.parametrize(
    ("status", "code", "found"),
    [
        (409, "EntityAlreadyExists", Verdict.LOST),
        (412, "UpdateConditionNotSatisfied", Verdict.LOST),
        (412, "ConditionNotMet", Verdict.LOST),
        (404, "ResourceNotFound", Verdict.ABSENT),
        (404, "EntityNotFound", Verdict.ABSENT),
        (404, "TableNotFound", Verdict.FAILED),
        (404, "", Verdict.FAILED),
        (409, "TableBeingDeleted", Verdict.FAILED),
        (412, "", Verdict.FAILED),
        (503, "ServerBusy", Verdict.FAILED),
    ],
)
def test_a_write_is_lost_absent_or_failed(status: int, code: str, found: Verdict) -> None:
    assert protocol.verdict(Refusal("update", status, code)) is found
    assert protocol.verdict(ETAG) is Verdict.DONE


@pytest.mark.parametrize(
    ("operation", "status", "code", "kind", "said"),
    [
        ("query", 404, "TableNotFound", StoreNotReadyError, "does not exist (404 TableNotFound): "),
        (
            "add",
            409,
            "TableBeingDeleted",
            StoreNotReadyError,
            "create it again with store.create()",
        ),
        ("create the table", 409, "TableBeingDeleted", StoreUnavailableError, "is being deleted"),
        ("update", 403, "AuthorizationPermissionMismatch", StoreAccessError, "lacks Update on"),
        ("query", 403, "AuthorizationServiceMismatch", StoreAccessError, "is not for tables"),
        ("query", 401, "InvalidAuthenticationInfo", StoreAccessError, "was refused to query"),
        ("add", 503, "ServerBusy", StoreUnavailableError, "answered 503 ServerBusy"),
        ("add", 400, "PropertyValueTooLarge", StoreError, "400 PropertyValueTooLarge to a add"),
    ],
)
def test_a_failure_says_what_to_do(
    operation: str, status: int, code: str, kind: type[StoreError], said: str
) -> None:
    error = protocol.failure(Refusal(operation, status, code), ADDRESS)
    assert type(error) is kind
    assert str(error).startswith("table 'positions' of https://account.table.core.windows.net")
    assert said in str(error)


def test_what_is_no_etag_is_sent_as_one_that_no_entity_has() -> None:
    assert protocol.sendable_etag(ETAG) == ETAG
    for text in ("invented", '"0x8D"', 'W/"a"b"', 'W/"a\r\nX: b"', 'W/"\u00e4"', ""):
        assert protocol.sendable_etag(text) == NO_ETAG
    assert protocol.sendable_etag(NO_ETAG) == NO_ETAG


def test_a_write_without_an_etag_is_not_confirmed() -> None:
    with pytest.raises(StoreUnavailableError, match="without an etag"):
        new_etag(None)


def test_a_page_has_entities_the_next_page_and_the_time() -> None:
    stored = {
        "odata.etag": ETAG,
        "PartitionKey": "a b",
        "RowKey": "0",
        "Timestamp": TIMESTAMP,
        "ownerid": "me",
        "count@odata.type": "Edm.Int64",
        "count": "7",
    }
    headers = {
        "x-ms-continuation-NextPartitionKey": "1!4!YQ--",
        "x-ms-continuation-NextRowKey": "1!4!MA--",
        "Date": "Fri, 27 Nov 2026 23:33:09 GMT",
    }
    found = page({"value": [stored]}, **headers)
    (listed,) = found.entities
    assert listed.key == ("a b", "0")
    assert listed.etag == ETAG
    assert listed.modified == 1795822388.894867
    assert listed.fields == {"ownerid": "me", "count": "7"}
    assert found.following == {"NextPartitionKey": "1!4!YQ--", "NextRowKey": "1!4!MA--"}
    assert found.date == headers["Date"]


def test_without_metadata_the_etag_is_made_of_the_time() -> None:
    stored = {"PartitionKey": "a", "RowKey": "0", "Timestamp": TIMESTAMP}
    assert rest.entity_of(stored).etag == ETAG


@pytest.mark.parametrize(
    ("value", "text"),
    [("7", "7"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (None, None), (True, "True")],
)
def test_a_property_of_another_type_is_read_as_text(value: Any, text: str | None) -> None:
    stored = {"PartitionKey": "a", "RowKey": "0", "sequencenumber": value}
    assert rest.entity_of(stored).fields == {"sequencenumber": text}


@pytest.mark.parametrize("time", [None, "", "yesterday", 5])
def test_a_time_that_is_none_is_very_old(time: Any) -> None:
    assert rest.entity_of({"PartitionKey": "a", "RowKey": "0", "Timestamp": time}).modified == 0.0


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"value": [5]}',
        b'{"value": [{"PartitionKey": "a"}]}',
        b'{"value": [{"PartitionKey": "a", "RowKey": 0}]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_is_no_page_is_no_empty_list(body: bytes) -> None:
    with pytest.raises(DecodeError):
        rest.page_of(Response(200, "", {}, body))


def test_rows_are_read_and_others_are_told() -> None:
    rows = [
        entity(ownerid="me"),
        entity(OwnerId="you"),
        entity(ownerid=None),
        entity(hdi_isfolder="true"),
        Entity(Key("a", ""), ETAG, 7.0, {"ownerid": "x"}),
    ]
    found = protocol.listing(rows, 9.0, lambda each: protocol.ownership_row(SCOPE, each))
    assert [row.owner_id for row in found.rows] == ["me", "you", ""]
    assert len(found.skipped) == 2
    assert found.server_now == 9.0


def test_a_checkpoint_without_a_position_is_left_out() -> None:
    rows = [entity(offset="", sequencenumber="5"), entity(offset=None), entity(offset="1:A:7")]
    found = protocol.listing(rows, None, lambda each: protocol.checkpoint_row(SCOPE, each))
    assert [(row.sequence_number, row.offset) for row in found.rows] == [(5, ""), (None, "1:A:7")]
    assert len(found.skipped) == 1


def proposal(partition_id: str, etag: str | None, scope: Scope = SCOPE) -> Proposal:
    return Proposal(scope, partition_id, "me", etag, "new")


def test_renewals_of_a_scope_are_one_request_and_first_claims_one_each() -> None:
    other = SCOPE._replace(consumer_group="reports")
    renewals = [proposal(str(number), ETAG) for number in range(5)]
    first, again, elsewhere = proposal("9", None), proposal("0", ETAG), proposal("0", ETAG, other)
    requests = protocol.in_requests([*renewals, first, again, elsewhere], limit=3)
    assert requests == [renewals[:3], [*renewals[3:], again], [first], [elsewhere]]
