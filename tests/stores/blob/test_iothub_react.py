"""What iothub-react saved in a container, read on a real Azurite."""

import logging
import uuid

import pytest
from azure.storage.blob import BlobClient

from eventhub_checkpoints import (
    ConfigurationError,
    Scope,
    StoreAccessError,
    StoreNotReadyError,
)
from eventhub_checkpoints.iothub_react import read_iothub_react_blobs
from eventhub_checkpoints.records import Checkpoint
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")


def checkpoint(partition_id: str, offset: str) -> Checkpoint:
    return Checkpoint(SCOPE, partition_id, offset, None)


@pytest.fixture
def saved(blob_container):
    """Writes as iothub-react does: a new blob at once, one that is there under a lease."""
    with blob_container.client() as client:

        def save(partition: object, offset: bytes) -> BlobClient:
            blob = client.get_blob_client(f"partition-{partition}")
            lease = blob.acquire_lease(15, str(uuid.uuid4())) if blob.exists() else None
            blob.upload_blob(offset, overwrite=True, lease=lease)
            if lease is not None:
                lease.release()
            return blob

        yield save


def test_offsets_are_read_in_the_order_of_the_partitions(saved, blob_container) -> None:
    for partition, offset in [(10, b"7"), (2, b"0"), (0, b"1"), (0, b"197568495320")]:
        saved(partition, offset)
    assert read_iothub_react_blobs(blob_container.url, SCOPE) == [
        checkpoint("0", "197568495320"),
        checkpoint("2", "0"),
        checkpoint("10", "7"),
    ]


def test_a_blob_under_a_lease_is_read(saved, blob_container) -> None:
    saved(0, b"5").acquire_lease(15)
    assert read_iothub_react_blobs(blob_container.url, SCOPE) == [checkpoint("0", "5")]


@pytest.mark.parametrize("nothing", [b"-1", b"{offset checkpoint not found}"])
def test_a_note_that_nothing_was_saved_is_no_checkpoint(
    nothing: bytes, saved, blob_container, caplog: pytest.LogCaptureFixture
) -> None:
    saved(0, nothing)
    saved(1, b"5")
    assert read_iothub_react_blobs(blob_container.url, SCOPE) == [checkpoint("1", "5")]
    assert not caplog.records


@pytest.mark.parametrize(
    ("partition", "body"),
    [
        (0, b""),
        (0, b"garbage"),
        (0, b"\xff\xfe"),
        (0, b"12\n"),
        (0, b"-2"),
        (0, b"1" * 20),
        (0, b"1" * 100_000),
        ("x", b"12"),
        ("", b"12"),
        ("01", b"12"),
        ("1/deeper", b"12"),
        ("x", b"-1"),
    ],
)
def test_a_blob_that_holds_no_offset_is_reported_and_harms_no_other(
    partition: object, body: bytes, saved, blob_container, caplog: pytest.LogCaptureFixture
) -> None:
    saved(partition, body)
    saved(7, b"5")
    with caplog.at_level(logging.WARNING):
        assert read_iothub_react_blobs(blob_container.url, SCOPE) == [checkpoint("7", "5")]
    assert [record.getMessage() for record in caplog.records] == [
        f"blob 'partition-{partition}' was left out: it holds no offset of a partition"
    ]


def test_other_blobs_are_not_looked_at(
    saved, blob_container, caplog: pytest.LogCaptureFixture
) -> None:
    with blob_container.client() as client:
        client.upload_blob("ns/orders/$default/checkpoint/0", b"", metadata={"offset": "9"})
        client.upload_blob("my-partition-0", b"9")
    assert read_iothub_react_blobs(blob_container.url, SCOPE) == []
    assert not caplog.records


def test_a_ready_client_is_left_open(saved, blob_container) -> None:
    saved(0, b"5")
    with blob_container.client() as client:
        for _ in range(2):
            assert read_iothub_react_blobs(client, SCOPE) == [checkpoint("0", "5")]
        assert client.exists()


def test_reading_is_a_list_and_one_read_for_each_blob(saved, blob_container, proxy) -> None:
    saved(0, b"5")
    saved(1, b"6")
    through = blob_container.through(proxy.endpoint)
    assert len(read_iothub_react_blobs(through.url, SCOPE)) == 2
    assert [request.method for request in proxy.requests] == ["GET", "GET", "GET"]


def test_a_missing_container_is_named(blob_container) -> None:
    url = f"{blob_container.url}-not-there"
    with pytest.raises(StoreNotReadyError, match=r"not-there' of .* does not exist"):
        read_iothub_react_blobs(url, SCOPE)


def test_a_wrong_key_is_an_error_without_it(blob_container) -> None:
    secret = "c2VjcmV0"
    wrong = {"account_name": EMULATOR_ACCOUNT, "account_key": secret}
    with pytest.raises(StoreAccessError) as failure:
        read_iothub_react_blobs(blob_container.url, SCOPE, wrong)
    assert secret not in str(failure.value)


def test_a_server_that_fails_for_a_moment_is_asked_again(saved, blob_container, proxy) -> None:
    saved(0, b"5")
    proxy.on("GET", "partition-0", times=1).refuse(503, "ServerBusy")
    through = blob_container.through(proxy.endpoint)
    assert read_iothub_react_blobs(through.url, SCOPE) == [checkpoint("0", "5")]


def test_what_is_no_url_of_a_container_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the URL names no container"):
        read_iothub_react_blobs("https://account.blob.core.windows.net", SCOPE)
