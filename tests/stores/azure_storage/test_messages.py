"""What a response says: error codes, and times."""

import pytest

from eventhub_checkpoints._shared.times import EPOCH
from eventhub_checkpoints.stores.azure_storage.messages import (
    Refusal,
    Request,
    Response,
    moment,
    server_time,
)


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"x-ms-error-code": "BlobNotFound"}, b"", "BlobNotFound"),
        ({}, b"<?xml version='1.0'?><Error><Code>ServerBusy</Code></Error>", "ServerBusy"),
        ({}, b"<html>please log in", ""),
        ({}, b'<?xml version="1.0" encoding="of nobody"?><Error/>', ""),
        ({}, b"", ""),
    ],
)
def test_a_refusal_has_the_code_of_the_service(
    headers: dict[str, str], body: bytes, code: str
) -> None:
    request = Request("read", "HEAD", "https://account.blob.core.windows.net/c/0", {}, {})
    refusal = Refusal.of(request, Response(404, "Not Found", headers, body))
    assert refusal == Refusal("read", 404, code, headers)
    assert (refusal.cause.status_code, refusal.cause.error_code) == (404, code)
    assert refusal.cause.response.headers == headers


def test_no_signature_is_in_a_repr() -> None:
    headers = {"Authorization": "SharedKey account:c2lnbmF0dXJl"}
    assert "c2lnbmF0dXJl" not in repr(Request("read", "HEAD", "https://a/c", {}, headers))


@pytest.mark.parametrize(
    "date",
    ["", "yesterday", "Tue, 32 Nov 2026 10:00:00 GMT", f"Tue, 24 Nov {'9' * 30} 10:00:00 GMT"],
)
def test_a_time_that_cannot_be_read_is_the_epoch(date: str) -> None:
    assert moment(date) == EPOCH


def test_a_time_without_a_known_zone_is_utc() -> None:
    assert moment("Tue, 24 Nov 2026 10:00:00 -0000").isoformat() == "2026-11-24T10:00:00+00:00"


def test_a_date_is_epoch_seconds() -> None:
    assert server_time("Sat, 21 Nov 2026 10:00:00 GMT") == 1795255200.0


@pytest.mark.parametrize("date", [None, "", "today", "Sat, 32 Nov 2026 10:00:00 GMT"])
def test_no_date_is_no_time(date: str | None) -> None:
    assert server_time(date) is None
