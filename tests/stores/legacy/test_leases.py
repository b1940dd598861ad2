"""Names and contents of the lease blobs of the Event Processor Hosts.

The bodies are spelled as each program spelled them: see the source in `stores/legacy/leases.py`.
"""

import json

import pytest

from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.legacy.leases import (
    Lease,
    LeaseFormat,
    checkpoints_of,
    escaped,
    prefixes,
)

SCOPE = Scope("NS.servicebus.windows.net", "Orders_1", "$Default")

DOTNET = {
    "PartitionId": "0",
    "Owner": "host-1",
    "Token": "0be5f1a4",
    "Epoch": 386,
    "Offset": "8591964920",
    "SequenceNumber": 960180,
}
JAVA = {
    "offset": "8591964920",
    "sequenceNumber": 960180,
    "token": "0be5f1a4",
    "epoch": 12,
    "partitionId": "0",
    "owner": "host-1",
    "isOwnedByUs": True,
}
PYTHON = {
    "event_processor_context": "",
    "partition_id": "0",
    "owner": "host-1",
    "token": "0be5f1a4",
    "epoch": 3,
    "offset": "8591964920",
    "sequence_number": 960180,
}
GO = {
    "partitionID": "0",
    "epoch": 1,
    "owner": "host-1",
    "checkpoint": {
        "offset": "8591964920",
        "sequenceNumber": 960180,
        "enqueueTime": "2019-03-01T10:00:00Z",
    },
    "state": "available",
    "token": "0be5f1a4",
}


def read(body: object) -> tuple[list[Checkpoint], list[str]]:
    text = body if isinstance(body, str) else json.dumps(body)
    reported: list[str] = []
    return checkpoints_of([Lease("blob '0'", "0", text)], SCOPE, reported.append), reported


@pytest.mark.parametrize("body", [DOTNET, JAVA, PYTHON, GO], ids=["dotnet", "java", "python", "go"])
def test_a_lease_has_a_position(body: object) -> None:
    assert read(body) == ([Checkpoint(SCOPE, "0", "8591964920", 960180)], [])


@pytest.mark.parametrize(
    "body",
    [
        {**DOTNET, "Offset": None, "SequenceNumber": 0},
        {**DOTNET, "Offset": "", "SequenceNumber": 0},
        {**JAVA, "offset": "-1", "sequenceNumber": 0},
        {**PYTHON, "offset": None, "sequence_number": None},
        {**PYTHON, "offset": "-1", "sequence_number": -1},
        {**PYTHON, "offset": "@latest", "sequence_number": -1},
        {**GO, "checkpoint": {"offset": "-1", "sequenceNumber": 0, "enqueueTime": ""}},
        {**GO, "checkpoint": {"offset": "@latest", "sequenceNumber": 0, "enqueueTime": ""}},
        {**GO, "checkpoint": {"offset": "", "sequenceNumber": 0, "enqueueTime": "2019-03-01"}},
        {**GO, "checkpoint": None},
    ],
)
def test_a_lease_of_which_nothing_was_processed_has_no_checkpoint(body: object) -> None:
    assert read(body) == ([], [])


@pytest.mark.parametrize(
    ("body", "offset", "number"),
    [
        ({**DOTNET, "Offset": None}, "", 960180),
        ({**DOTNET, "Offset": "0", "SequenceNumber": 0}, "0", 0),
        ({**PYTHON, "offset": 8591964920}, "8591964920", 960180),
        ({**PYTHON, "sequence_number": "960180"}, "8591964920", 960180),
        ({"Offset": "8591964920"}, "8591964920", None),
        ({**JAVA, "offset": "-1", "sequenceNumber": 4}, "", 4),
        ({**PYTHON, "offset": "@latest", "sequence_number": 4}, "", 4),
    ],
)
def test_a_position_may_be_incomplete_or_of_another_type(body, offset, number) -> None:
    assert read(body) == ([Checkpoint(SCOPE, "0", offset, number)], [])


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{}",
        '{"Offset": "5", "SequenceNumber": "seven"}',
        '{"Offset": {}, "SequenceNumber": 7}',
        '{"Offset": true, "SequenceNumber": 7}',
        '{"Offset": "5", "SequenceNumber": 7.5}',
        '{"Offset": "5", "SequenceNumber": 9223372036854775808}',
        '{"Offset": "5\\n6", "SequenceNumber": 7}',
        '{"Offset": "5\\n6"}',
        "[" * 100_000,
    ],
    ids=range(14),
)
def test_what_is_not_a_lease_is_left_out_and_reported(body: str) -> None:
    found, reported = read(body)
    assert found == []
    assert reported == ["blob '0' was left out: it holds no position"]


def test_a_lease_that_is_too_long_is_reported() -> None:
    reported: list[str] = []
    assert checkpoints_of([Lease("blob '0'", "0", None)], SCOPE, reported.append) == []
    assert len(reported) == 1


def test_partitions_are_in_numeric_order_and_the_first_of_two_leases_counts() -> None:
    leases = [Lease("", id_, json.dumps({**GO, **DOTNET})) for id_ in ("10", "2")]
    leases.append(Lease("", "2", json.dumps({**DOTNET, "SequenceNumber": 1})))
    found = checkpoints_of(leases, SCOPE, print)
    assert [(each.partition_id, each.sequence_number) for each in found] == [
        ("2", 960180),
        ("10", 960180),
    ]


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (LeaseFormat.EPH, ["pre/$Default/"]),
        (LeaseFormat.EPH_PYTHON, ["pre/$Default/", "pre/"]),
        (LeaseFormat.EPH_GO, ["pre/"]),
        (LeaseFormat.FUNCTIONS, ["pre/ns.servicebus.windows.net/orders_1/$Default/"]),
        (LeaseFormat.DAPR, ["pre/dapr-Orders_1-$Default-"]),
    ],
)
def test_each_program_has_names_of_its_own(format: LeaseFormat, expected: list[str]) -> None:
    assert prefixes(format, SCOPE, "pre/") == expected


def test_azure_functions_escaped_names() -> None:
    assert escaped("My Hub+é€") == "my:20hub:2B:E9::20AC"
