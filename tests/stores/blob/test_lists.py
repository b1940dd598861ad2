"""Lists: foreign blobs, pages, and ages on the server's clock."""

import time
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest

SHIFT = 100_000
"""Seconds by which a server's clock is shifted."""
MARGIN = 1000
"""Seconds that no test takes, and few next to the shift."""


@pytest.fixture
def put(raw, scope) -> Any:
    """Writes a blob as another program would."""

    def write(kind: str, partition_id: str, **metadata: str) -> None:
        raw.upload_blob(f"{scope.folded}/{kind}/{partition_id}", b"", metadata=metadata)

    return write


@pytest.mark.parametrize(
    ("metadata", "sequence_number", "offset"),
    [
        ({"offset": "149:0:1234", "sequencenumber": "7"}, 7, "149:0:1234"),
        ({"Offset": "12", "SequenceNumber": "7"}, 7, "12"),
        ({"sequencenumber": "7"}, 7, 7),
        ({"sequencenumber": "0"}, 0, 0),
        ({"offset": "", "sequencenumber": "7"}, 7, 7),
        ({"offset": "no offset", "sequencenumber": "7"}, 7, 7),
        ({"offset": "None", "sequencenumber": "7"}, 7, 7),
        ({"offset": "12"}, None, "12"),
        ({"offset": "12", "sequencenumber": ""}, None, "12"),
        ({"offset": "12", "sequencenumber": "abc"}, None, "12"),
        ({"offset": "12", "sequencenumber": "7", "clientidentifier": "x"}, 7, "12"),
        ({"offset": "1", "sequencenumber": "9007199254740993"}, 9007199254740993, "1"),
    ],
)
def test_a_checkpoint_of_any_sdk_is_read(client, put, metadata, sequence_number, offset) -> None:
    put("checkpoint", "0", **metadata)
    (row,) = client.list_checkpoints()
    assert (row["sequence_number"], row["offset"]) == (sequence_number, offset)
    assert row["offset"]  # or the client would begin at its default position


@pytest.mark.parametrize(
    ("metadata", "owner_id"),
    [
        ({"ownerid": "owner-1"}, "owner-1"),
        ({"ownerId": "owner-1"}, "owner-1"),
        ({"OwnerId": "owner-1"}, "owner-1"),
        ({"ownerid": ""}, ""),
        ({"ownerid": "null"}, ""),
        ({}, ""),
        ({"other": "1"}, ""),
    ],
)
def test_an_ownership_of_any_sdk_is_read_and_can_be_taken(client, put, metadata, owner_id) -> None:
    put("ownership", "0", **metadata)
    (row,) = client.list_ownership()
    assert row["owner_id"] == owner_id
    assert client.take("0", "new", row["etag"])


def test_foreign_blobs_harm_nobody_and_are_reported_once(client, put, raw, scope, caplog) -> None:
    put("checkpoint", "0", offset="12", sequencenumber="7")
    put("checkpoint", "1", unrelated="1")
    put("checkpoint", "2", offset="no offset", sequencenumber="")
    put("checkpoint", "3/deeper", offset="12", sequencenumber="7")
    put("checkpoint", "4", hdi_isfolder="true")
    raw.upload_blob(f"{scope.folded}/checkpoint", b"")
    for _ in range(2):
        assert [row["partition_id"] for row in client.list_checkpoints()] == ["0"]
    for partition_id in ("1", "2", "3/deeper", "4"):
        found = [r for r in caplog.records if f"/checkpoint/{partition_id}'" in r.getMessage()]
        assert len(found) == 1, partition_id
    assert client.store.counters["skipped_rows"] == 8


def test_a_directory_harms_no_list_of_ownerships(client, put) -> None:
    put("ownership", "0", ownerid="owner-1")
    put("ownership", "1/deeper", ownerid="owner-1")
    put("ownership", "2", hdi_isfolder="true")
    assert [row["partition_id"] for row in client.list_ownership()] == ["0"]


def test_other_scopes_are_not_listed(client, raw, scope) -> None:
    client.take("0", "owner-1")
    for prefix in (f"{scope.folded}2", f"x{scope.folded}", str(scope.folded)[:-1]):
        raw.upload_blob(f"{prefix}/ownership/9", b"", metadata={"ownerid": "x"})
    assert [row["partition_id"] for row in client.list_ownership()] == ["0"]


def test_rows_are_fresh_and_complete(client) -> None:
    client.take("0", "owner-1")
    first, second = client.list_ownership(), client.list_ownership()
    assert first is not second
    first[0]["owner_id"] = "edited"  # as the SDK does
    assert (second[0]["owner_id"], client.owner("0")) == ("owner-1", "owner-1")
    assert set(first[0]) == {
        "fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id",
        "owner_id", "etag", "last_modified_time",
    }  # fmt: skip
    assert isinstance(first[0]["last_modified_time"], float)


class Counting:
    """A caller's own `raw_response_hook`."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def __call__(self, response: Any) -> None:
        self.statuses.append(response.http_response.status_code)


def test_the_callers_hook_is_called_once_a_page_too(variant, client, blob_container) -> None:
    client.claim_ownership([client.proposal(str(n), "owner-1") for n in range(5)])
    hook = Counting()
    paged = variant.store(connect=variant.in_pages(blob_container, 2), raw_response_hook=hook)
    assert len(variant.client(paged).list_ownership()) == 5
    assert hook.statuses == [200, 200, 200]


def test_more_blobs_than_a_page_are_all_listed(variant, client, blob_container) -> None:
    ids = [str(n) for n in range(9)]
    client.claim_ownership([client.proposal(n, "owner-1") for n in ids])
    paged = variant.client(variant.store(connect=variant.in_pages(blob_container, 4)))
    assert sorted(row["partition_id"] for row in paged.list_ownership()) == ids


def shifted(seconds: float) -> Any:
    """For the proxy: a `Date` that is off by so much."""

    def rewrite(date: str | None) -> str:
        moved = parsedate_to_datetime(date or "").timestamp() + seconds
        return format_datetime(datetime.fromtimestamp(moved, UTC), usegmt=True)

    return rewrite


def since(moment: float) -> float:
    """Seconds from a moment to now."""
    return time.time() - moment


def age(client: Any) -> float:
    """How old the client would take the ownership of partition 0 for."""
    return since(client.row("0")["last_modified_time"])


def test_an_age_is_what_passed_on_the_servers_clock(watched, proxy) -> None:
    watched.take("0", "owner-1")
    proxy.rewrite("Date", shifted(SHIFT))  # as if it were written so many seconds ago
    assert SHIFT - MARGIN < age(watched) < SHIFT + MARGIN


def test_a_server_whose_clock_is_behind_its_own_records_makes_nothing_negative(
    watched, proxy
) -> None:
    watched.take("0", "owner-1")
    proxy.rewrite("Date", shifted(-SHIFT))
    assert 0 <= age(watched) < MARGIN


def test_without_a_date_the_own_clock_must_do(watched, proxy) -> None:
    watched.take("0", "owner-1")
    proxy.rewrite("Date", None)
    assert 0 <= age(watched) < MARGIN


def test_the_date_of_the_last_page_is_used(variant, client, proxied, proxy) -> None:
    client.claim_ownership([client.proposal(str(n), "owner-1") for n in range(5)])
    pages = iter([0, 0, SHIFT])
    proxy.rewrite("Date", lambda date: shifted(next(pages))(date))
    paged = variant.client(variant.store(connect=variant.in_pages(proxied, 2)))
    assert SHIFT - MARGIN < age(paged) < SHIFT + MARGIN


def test_a_claim_is_as_old_as_its_answer(watched, proxy) -> None:
    proxy.rewrite("Date", shifted(SHIFT))
    assert 0 <= since(watched.take("0", "owner-1")["last_modified_time"]) < MARGIN
