"""Positions of older programs are read on Azurite, and come into the store of a group."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore, Scope
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.migrate import Migration, read, with_numbers
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.transfer import Action
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.records import Checkpoint
from waiting import LIMIT

SCOPE = Scope("NS.servicebus.windows.net", "Orders", "$Default")
DOTNET = {"PartitionId": "0", "Epoch": 3, "Offset": "700", "SequenceNumber": 7}
PYTHON = {"partition_id": "0", "epoch": 3, "offset": "700", "sequence_number": 7}
GO = {"partitionID": "0", "checkpoint": {"offset": "700", "sequenceNumber": 7}}

BLOBS: dict[str, tuple[str, Any]] = {
    "eph": ("$Default/{}", DOTNET),
    "eph-python": ("{}", PYTHON),
    "eph-go": ("{}", GO),
    "functions": ("ns.servicebus.windows.net/orders/$Default/{}", DOTNET),
    "dapr": ("dapr-Orders-$Default-{}", GO),
}


def numbers(store: MemoryCheckpointStore) -> dict[str, int]:
    return {row["partition_id"]: row["sequence_number"] for row in store.list_checkpoints(*SCOPE)}


@pytest.fixture
def blobs(blob_container) -> Iterator[Any]:
    with blob_container.client() as client:
        yield client


@pytest.mark.parametrize("prefix", ["", "app/"])
@pytest.mark.parametrize("format", BLOBS)
def test_leases_are_found_by_name_and_read(
    blobs: Any, blob_container, format: str, prefix: str
) -> None:
    name, body = BLOBS[format]
    for partition_id in ("0", "11", "info", "0/deeper"):
        blobs.upload_blob(prefix + name.format(partition_id), json.dumps(body))
    blobs.upload_blob("another/0", json.dumps(body))
    found = read(format, blob_container.url, SCOPE, prefix=prefix)
    assert found == [Checkpoint(SCOPE, "0", "700", 7), Checkpoint(SCOPE, "11", "700", 7)]


def test_a_lease_under_a_lease_is_read_and_a_broken_one_reported(
    blobs: Any, blob_container, caplog: pytest.LogCaptureFixture
) -> None:
    blobs.upload_blob("$Default/0", json.dumps(DOTNET))
    blobs.get_blob_client("$Default/0").acquire_lease(15)
    blobs.upload_blob("$Default/1", "{")
    blobs.upload_blob("$Default/2", b"")
    blobs.upload_blob("$Default/3", b" " * 100_000)
    [found] = read("eph", blob_container.url, SCOPE)
    assert found.partition_id == "0"
    assert len([each for each in caplog.messages if "holds no position" in each]) == 3


def test_names_in_another_case_are_found_and_the_highest_counts(blob_container) -> None:
    spelled = SCOPE, SCOPE._replace(eventhub_name="ORDERS"), SCOPE.folded
    with BlobCheckpointStore.from_url(blob_container.url, name_case="as-typed") as store:
        for number, scope in enumerate(spelled, start=5):
            store.update_checkpoint(Position(number, f"{number}00").as_dict(scope, "0"))
        store.update_checkpoint(Position(3).as_dict(SCOPE, "1"))
        other = SCOPE._replace(consumer_group="other")
        store.update_checkpoint(Position(9).as_dict(other, "2"))
    found = read("as-typed", blob_container.url, SCOPE.folded)
    assert found == [
        Checkpoint(SCOPE.folded, "0", "600", 6),
        Checkpoint(SCOPE.folded, "1", "", 3),
    ]


@pytest.mark.parametrize("format", [*BLOBS, "iothub-react", "as-typed"])
def test_nothing_found_is_a_mistake(blob_container, format: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no position of .* in the format {format}"):
        read(format, blob_container.url, SCOPE)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected one of eph, eph-python, "):
        read("kinesis", "https://account.blob.core.windows.net/container", SCOPE)


def test_a_missing_number_is_that_of_the_offset_in_the_hub() -> None:
    with LocalHub({"orders": 5}) as hub:
        for partition_id in ("0", "1", "2", "4"):
            hub.publish("orders", partition_id, [b"event"] * 10)
        hub.trim("orders", "1", 5)
        hub.trim("orders", "4", 10)
        address = HubAddress.from_connection_string(hub.connection_string("orders"))
        offsets = {"3": "77", "9": "77"}
        for partition_id in ("0", "1", "2", "4"):
            last = hub.partition_properties("orders", partition_id).last_offset
            offsets[partition_id] = last
        step = int(offsets["0"]) // 9
        offsets |= {"0": str(4 * step), "1": str(2 * step), "4": str(2 * step)}
        found = with_numbers(
            [Checkpoint(SCOPE, id_, offset, None) for id_, offset in offsets.items()],
            address,
            timeout=LIMIT,
        )
    assert {id_: each.sequence_number for id_, each in found.items()} == {
        "0": 4,
        "1": 4,
        "2": 9,
        "3": None,
        "4": 9,
        "9": None,
    }
    assert {id_: each.offset for id_, each in found.items()} == offsets


def test_a_position_is_never_written_over_something_newer() -> None:
    source = {str(number): Position(7, "700") for number in (10, 2, 1, 0)}
    source["3"] = Position(None, "700")
    with MemoryCheckpointStore() as store:
        for partition_id, number in {"0": 5, "1": 9, "2": 7}.items():
            row = Position(number, f"{number}00").as_dict(SCOPE, partition_id)
            store.update_checkpoint(row)
        planned = Migration.planned(store, SCOPE, source)
        before = store.list_checkpoints(*SCOPE)
        assert {step.partition_id: step.action for step in planned.steps} == {
            "0": Action.COPY,
            "1": Action.NEWER,
            "2": Action.EQUAL,
            "3": Action.NO_NUMBER,
            "10": Action.COPY,
        }
        assert store.list_checkpoints(*SCOPE) == before, "the plan has written something"
        assert planned.execute().failures == {}
        assert numbers(store) == {"0": 7, "1": 9, "2": 7, "10": 7}
        again = Migration.planned(store, SCOPE, source)
        assert not any(step.action.writes for step in again.steps)


def test_what_becomes_newer_after_the_plan_is_left_alone_and_reported() -> None:
    with MemoryCheckpointStore.from_url("memory:migrated") as store:
        planned = Migration.planned(store, SCOPE, {"0": Position(7), "1": Position(7)})
        with MemoryCheckpointStore.from_url("memory:migrated") as other:
            other.update_checkpoint(Position(9).as_dict(SCOPE, "0"))
        failures = planned.execute().failures
        assert list(failures) == ["0"]
        assert numbers(store) == {"0": 9, "1": 7}


def test_a_partition_with_a_live_owner_is_left_alone() -> None:
    with MemoryCheckpointStore() as store:
        store.claim_ownership([{**SCOPE.as_dict(), "partition_id": "0", "owner_id": "consumer"}])
        [step] = Migration.planned(store, SCOPE, {"0": Position(7)}).steps
    assert step.action is Action.OWNED
