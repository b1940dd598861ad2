"""How many requests each call costs, and which: counted by a proxy in front of Azurite."""

from typing import Any

import pytest

from eventhub_checkpoints.errors import StoreUnavailableError

AZURE = "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"
PROBE_BLOBS = [
    "eventhub-checkpoints/verify/probe/checkpoint/0",
    "eventhub-checkpoints/verify/probe/ownership/0",
]


def sent(proxy: Any) -> list[str]:
    """What arrived since `forget`: method, and the operation that the query names."""
    operations = []
    for request in proxy.requests:
        query = request.target.partition("?")[2]
        named = [part for part in query.split("&") if part.startswith("comp=")]
        operations.append(" ".join([request.method, *named]))
    return operations


PUT_BLOB, SET_METADATA, LIST, READ = "PUT", "PUT comp=metadata", "GET comp=list", "HEAD"


@pytest.fixture
def as_azure(proxy) -> None:
    """Answers name Azure, so a lost claim needs no second look as it does on Azurite."""
    proxy.rewrite("Server", AZURE)


def test_a_first_claim_is_one_put_blob(watched, proxy) -> None:
    watched.take("0", "owner-1")
    assert sent(proxy) == [PUT_BLOB]


def test_a_renewal_is_one_set_metadata(watched, proxy) -> None:
    row = watched.take("0", "owner-1")
    proxy.forget()
    watched.claim_ownership([row])
    assert sent(proxy) == [SET_METADATA]


def test_a_renewal_of_a_listed_row_is_one_set_metadata(watched, proxy) -> None:
    watched.take("0", "owner-1")
    rows = watched.list_ownership()
    proxy.forget()
    assert watched.claim_ownership(rows)
    assert sent(proxy) == [SET_METADATA]


def test_a_release_is_one_set_metadata(watched, proxy) -> None:
    row = watched.take("0", "owner-1")
    proxy.forget()
    assert watched.release(row)
    assert sent(proxy) == [SET_METADATA]


def test_a_batch_is_one_request_a_claim(watched, proxy) -> None:
    watched.claim_ownership([watched.proposal(str(n), "owner-1") for n in range(8)])
    assert sent(proxy) == [PUT_BLOB] * 8


def test_a_lost_first_claim_is_one_request(watched, rival, proxy) -> None:
    rival.take("0", "owner-1")
    assert watched.claim("0", "owner-2") is None
    assert sent(proxy) == [PUT_BLOB]


@pytest.mark.usefixtures("as_azure")
def test_a_claim_lost_by_its_etag_is_one_request(watched, rival, proxy) -> None:
    row = rival.take("0", "owner-1")
    rival.claim_ownership([row])
    assert watched.claim("0", "owner-2", row["etag"]) is None
    assert sent(proxy) == [SET_METADATA]


def test_on_azurite_a_lost_etag_is_looked_after_once(watched, rival, proxy) -> None:
    row = rival.take("0", "owner-1")
    rival.claim_ownership([row])
    assert watched.claim("0", "owner-2", row["etag"]) is None
    assert sent(proxy) == [SET_METADATA, READ]


@pytest.mark.parametrize("method", ["list_ownership", "list_checkpoints"])
def test_a_list_is_one_request(watched, proxy, method) -> None:
    watched.take("0", "owner-1")
    watched.save("0", 1)
    proxy.forget()
    assert len(getattr(watched, method)()) == 1
    assert sent(proxy) == [LIST]


def test_a_list_is_one_request_a_page(variant, client, proxied, proxy) -> None:
    client.claim_ownership([client.proposal(str(n), "owner-1") for n in range(5)])
    paged = variant.store(connect=variant.in_pages(proxied, 2))
    assert len(variant.client(paged).list_ownership()) == 5
    assert sent(proxy) == [LIST] * 3


def test_a_first_checkpoint_after_a_list_is_one_put_blob(watched, proxy) -> None:
    watched.list_checkpoints()
    proxy.forget()
    watched.save("0", 1)
    assert sent(proxy) == [PUT_BLOB]


def test_a_checkpoint_over_a_listed_one_is_one_set_metadata(watched, rival, proxy) -> None:
    rival.save("0", 1)
    watched.take_listed("0", "owner-1")
    proxy.forget()
    watched.save("0", 2)
    assert sent(proxy) == [SET_METADATA]


def test_a_checkpoint_again_is_one_set_metadata(watched, proxy) -> None:
    watched.save("0", 1)
    proxy.forget()
    for number in range(2, 12):
        watched.save("0", number)
    assert sent(proxy) == [SET_METADATA] * 10


def test_a_first_checkpoint_of_which_nothing_is_known_finds_out_first(
    watched, rival, proxy
) -> None:
    rival.save("0", 1)
    watched.save("0", 2)
    assert sent(proxy) == [PUT_BLOB, READ, SET_METADATA]


@pytest.mark.usefixtures("as_azure")
def test_a_checkpoint_over_a_changed_row_looks_once(watched, rival, proxy) -> None:
    watched.save("0", 1)
    rival.list_checkpoints()
    rival.save("0", 2)
    proxy.forget()
    watched.save("0", 3)
    assert sent(proxy) == [SET_METADATA, READ, SET_METADATA]


@pytest.mark.usefixtures("as_azure")
def test_a_checkpoint_below_another_writers_is_refused_without_a_request(
    watched, rival, proxy
) -> None:
    watched.save("0", 1)
    rival.list_checkpoints()
    rival.save("0", 9)
    watched.save("0", 3)  # meets the other writer's row
    proxy.forget()
    watched.save("0", 4)
    assert sent(proxy) == []
    assert rival.position("0") == 9


def test_a_checkpoint_that_always_meets_a_changed_row_ends_after_8_requests(watched, proxy) -> None:
    watched.save("0", 1)
    proxy.forget()
    proxy.on("PUT", "comp=metadata").refuse(412, "ConditionNotMet")
    with pytest.raises(StoreUnavailableError, match="changed 4 times"):
        watched.save("0", 2)
    assert sent(proxy) == [SET_METADATA, READ] * 4


def test_a_rewind_on_purpose_is_one_request_and_a_look_at_the_owner(watched, proxy) -> None:
    watched.save("0", 9)
    proxy.forget()
    watched.save("0", 3, force=True)
    assert sent(proxy) == [SET_METADATA, LIST]
    assert watched.position("0") == 3


def test_a_rewind_of_what_is_not_there_creates_it(watched, proxy) -> None:
    watched.save("0", 3, force=True)
    assert sent(proxy) == [SET_METADATA, PUT_BLOB, LIST]
    assert watched.position("0") == 3


def test_a_missing_container_is_created_once(variant, proxied, proxy, raw) -> None:
    raw.delete_container()
    client = variant.open(proxied, create_container=True)
    client.list_ownership()
    client.list_ownership()
    assert proxy.count("PUT", "restype=container") == 1
    assert len(proxy.requests) == 3


def test_creating_a_container_that_is_there_is_no_error(variant, proxied, proxy) -> None:
    client = variant.open(proxied, create_container=True)
    client.take("0", "owner-1")
    assert proxy.count("PUT", "restype=container") == 1


def test_verifying_reads_and_writes_both_kinds(watched, proxy, raw) -> None:
    watched.call("verify")
    claimed = [PUT_BLOB, LIST, SET_METADATA]
    assert sent(proxy) == [*claimed, LIST, SET_METADATA, PUT_BLOB]
    assert sorted(blob.name for blob in raw.list_blobs()) == PROBE_BLOBS


def test_verifying_again_still_shows_that_writes_work(watched, proxy, raw) -> None:
    watched.call("verify")
    proxy.forget()
    watched.call("verify")
    assert sent(proxy) == [PUT_BLOB, LIST, SET_METADATA, LIST, SET_METADATA]
    assert sorted(blob.name for blob in raw.list_blobs()) == PROBE_BLOBS
