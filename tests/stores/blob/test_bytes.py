"""The blobs that the store writes are the official store's, byte by byte."""

from typing import Any

import pytest
from azure.storage.blob import BlobProperties, ContainerClient

from eventhub_checkpoints.errors import MISSING, InvalidRecordError
from eventhub_checkpoints.records import Scope

TYPED = Scope("MyNS.servicebus.windows.net", "MyHub", "$Default")
LOWER = "myns.servicebus.windows.net/myhub/$default"


def listed(raw: ContainerClient) -> dict[str, BlobProperties]:
    return {blob.name: blob for blob in raw.list_blobs(include=["metadata"])}


def visible(blob: BlobProperties) -> dict[str, Any]:
    """Everything about a blob except when it was written."""
    changing = {"etag", "last_modified", "creation_time", "blob_tier_change_time"}
    return {key: value for key, value in blob.items() if key not in changing}


def write_everything(client: Any) -> None:
    """Claims, a renewal, a release, checkpoints that are new and that are written again."""
    first, second = (
        client.claim_ownership([client.proposal(partition_id, "owner-1")])[0]
        for partition_id in ("0", "1")
    )
    client.claim_ownership([first])
    client.claim_ownership([{**second, "owner_id": ""}])
    for partition_id, sequence_number, offset in [("0", 0, "0"), ("1", 7, "149:0:1234")]:
        client.update_checkpoint(client.checkpoint(partition_id, sequence_number, offset))
    client.update_checkpoint(client.checkpoint("0", 41, "8589935000"))


def test_names_keys_and_bytes_are_those_of_the_wire_format(variant, client, raw) -> None:
    write_everything(client.within(TYPED))
    blobs = listed(raw)
    assert {name: blob.metadata for name, blob in blobs.items()} == {
        f"{LOWER}/ownership/0": {"ownerid": "owner-1"},
        f"{LOWER}/ownership/1": {"ownerid": None},  # the driver's word for an empty value
        f"{LOWER}/checkpoint/0": {"offset": "8589935000", "sequencenumber": "41"},
        f"{LOWER}/checkpoint/1": {"offset": "149:0:1234", "sequencenumber": "7"},
    }
    for blob in blobs.values():
        assert (blob.size, blob.blob_type) == (0, "BlockBlob")
        assert blob.content_settings.content_type == "application/octet-stream"


def test_the_official_store_would_have_written_the_same(
    variant, blob_container, client, raw, empty
) -> None:
    write_everything(client.within(TYPED))
    ours = listed(raw)
    empty()
    write_everything(variant.open_official(blob_container).within(TYPED))
    official = listed(raw)
    assert ours.keys() == official.keys()
    for name in ours:
        assert visible(ours[name]) == visible(official[name])


def test_both_stores_read_each_other(variant, blob_container, client) -> None:
    official = variant.open_official(blob_container)
    write_everything(client)
    for method in ("list_ownership", "list_checkpoints"):
        ours = sorted(getattr(client, method)(), key=lambda row: row["partition_id"])
        theirs = sorted(getattr(official, method)(), key=lambda row: row["partition_id"])
        for row, other in zip(ours, theirs, strict=True):
            assert row | {"last_modified_time": 0} == other | {
                "last_modified_time": 0,
                # Released: the official store gives None.
                **({"owner_id": other["owner_id"] or ""} if "owner_id" in other else {}),
            }


def test_a_claim_goes_from_one_store_to_the_other_by_its_etag(
    variant, blob_container, client
) -> None:
    official = variant.open_official(blob_container)
    theirs = official.take("0", "official")
    ours = client.take("0", "ours", theirs["etag"])
    assert official.claim_ownership([theirs]) == []
    assert official.take("0", "official", ours["etag"])["owner_id"] == "official"
    assert client.claim_ownership([ours]) == []


@pytest.mark.parametrize("offset", [None, "", 7], ids=["None", "empty", "int"])
def test_an_offset_that_is_not_known_is_stored_as_an_empty_text(client, raw, offset) -> None:
    client.update_checkpoint(client.checkpoint("0", 7, offset))
    (blob,) = listed(raw).values()
    assert blob.metadata == {"offset": None, "sequencenumber": "7"}


def test_a_listed_checkpoint_without_offset_can_be_stored_again(client, raw) -> None:
    client.update_checkpoint(client.checkpoint("0", 0, None))
    row = client.saved("0")
    assert row["offset"] == 0
    assert row["offset"]  # or the client would begin somewhere else
    client.update_checkpoint(row)
    assert listed(raw)[next(iter(listed(raw)))].metadata["sequencenumber"] == "0"


def test_names_as_typed_are_shared_with_java_go_and_rust(variant, blob_container, raw) -> None:
    client = variant.open(blob_container, name_case="as-typed").within(TYPED)
    write_everything(client)
    start = "MyNS.servicebus.windows.net/MyHub/$Default"
    assert set(listed(raw)) == {
        f"{start}/{kind}/{partition_id}"
        for kind in ("ownership", "checkpoint")
        for partition_id in "01"
    }
    assert len(client.list_ownership()) == 2
    assert client.within(TYPED.folded).list_ownership() == []


@pytest.mark.parametrize(("name_case", "stored"), [("lower", 9), ("as-typed", 1)])
def test_what_is_known_of_a_partition_goes_by_the_same_case(
    variant, blob_container, name_case, stored
) -> None:
    client, rival = (variant.open(blob_container, name_case=name_case) for _ in range(2))
    rival.within(TYPED).save("0", 9)
    client.within(TYPED).save("0", 3)  # refused: the row of another writer is higher
    client.within(TYPED.folded).save("0", 1)
    assert rival.within(TYPED.folded).position("0") == stored


def test_names_come_back_as_the_caller_spelled_them(client) -> None:
    client.within(TYPED.folded).take("0", "owner-1")
    row = client.within(TYPED).row("0")
    assert Scope.from_dict(row) == TYPED


@pytest.mark.parametrize(
    ("field", "value"),
    [("owner_id", "besitzer-ä"), ("owner_id", " owner"), ("owner_id", "a\nb")],
)
def test_an_owner_that_no_header_can_carry_is_refused(client, raw, field, value) -> None:
    good, bad = client.proposal("0", "owner-1"), client.proposal("1", value)
    with pytest.raises(InvalidRecordError) as refused:
        client.claim_ownership([bad, good])
    assert (refused.value.field, refused.value.value) == (field, value)
    assert client.owner("0") == "owner-1"  # the other claim of the batch was carried out
    assert len(listed(raw)) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"offset": "versatz-ä"}, "offset"),
        ({"offset": "a\r\nx-ms-meta-b: c"}, "offset"),
        ({"offset": 1.5}, "offset"),
        ({"sequence_number": None}, "sequence_number"),
        ({"sequence_number": "7a"}, "sequence_number"),
        ({"sequence_number": 2**63}, "sequence_number"),
        ({"sequence_number": True}, "sequence_number"),
        ({"partition_id": ""}, "partition_id"),
        ({"partition_id": "a/b"}, "partition_id"),
        ({"consumer_group": None}, "consumer_group"),
        ({"eventhub_name": "a\x00b"}, "eventhub_name"),
        ({"fully_qualified_namespace": "a/b"}, "fully_qualified_namespace"),
        ({"partition_id": "p" * 1024}, "partition_id"),
    ],
)
def test_a_checkpoint_that_cannot_be_stored_is_refused_by_field_and_value(
    client, raw, change, field
) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        client.update_checkpoint(client.checkpoint("0", 1, "1") | change)
    assert (refused.value.field, refused.value.value) == (field, change[field])
    assert listed(raw) == {}


def test_a_claim_without_a_partition_is_refused(client) -> None:
    row = client.proposal("0", "owner-1")
    del row["partition_id"]
    with pytest.raises(InvalidRecordError) as refused:
        client.claim_ownership([row])
    assert (refused.value.field, refused.value.value) == ("partition_id", MISSING)


def test_a_partition_with_too_long_a_name_fails_alone(client) -> None:
    with pytest.raises(InvalidRecordError, match="at most 1024"):
        client.claim_ownership([client.proposal("p" * 1024, "o"), client.proposal("1", "o")])
    assert client.owner("1") == "o"


def test_an_emulators_namespace_with_a_port_is_legal(client) -> None:
    local = client.within(Scope("localhost:5672", "orders", "$Default"))
    local.take("0", "owner-1")
    local.save("0", 3)
    assert (local.owner("0"), local.position("0")) == ("owner-1", 3)
