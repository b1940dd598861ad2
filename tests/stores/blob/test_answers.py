"""What rows, errors and messages become of the driver's answers."""

import socket
import ssl
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import StorageErrorCode
from azure.storage.blob._shared.authentication import AzureSigningError

from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.blob.protocol import (
    Verdict,
    blob_name,
    checked_name_case,
    checkpoint_row,
    described,
    error_code,
    expected,
    failure,
    header_text,
    is_absent,
    listing,
    mapped,
    may_be_absent,
    new_etag,
    operation_of,
    ownership_row,
    refusal,
)
from eventhub_checkpoints.stores.blob.rest import Blob

SCOPE = Scope("ns", "hub", "group")
URL = "https://account.blob.core.windows.net/my%20positions"
WHERE = "container 'my positions' of https://account.blob.core.windows.net"
MODIFIED = datetime(2026, 11, 21, 10, tzinfo=UTC)


def blob(name: str, **metadata: str) -> Blob:
    return Blob(name, '"0x1"', MODIFIED, metadata)


def answered(
    status: int | None,
    code: object = None,
    *,
    method: str = "PUT",
    url: str = URL,
    server: str | None = None,
    kind: type[HttpResponseError] = HttpResponseError,
) -> Any:
    """An error of the driver for a response with this status and code."""
    error: Any = kind("what the driver says")
    error.status_code, error.error_code = status, code
    headers = {} if server is None else {"Server": server}
    request = SimpleNamespace(method=method, url=url)
    error.response = SimpleNamespace(headers=headers, request=request)
    return error


def test_a_list_has_the_rows_and_a_sentence_for_each_blob_that_is_none() -> None:
    blobs = [
        blob("a/0", offset="1", sequencenumber="5"),
        blob("a/folder", hdi_isfolder="true"),
        blob("a/1/deeper", offset="1", sequencenumber="5"),
        blob("a/2", offset="", sequencenumber=""),
        blob("a/3", offset="2", sequencenumber="6"),
    ]
    found = listing(blobs, "a/", 7.0, lambda id_, each: checkpoint_row(SCOPE, id_, each))
    assert found.rows == [
        Checkpoint(SCOPE, "0", "1", 5, "0x1", MODIFIED.timestamp()),
        Checkpoint(SCOPE, "3", "2", 6, "0x1", MODIFIED.timestamp()),
    ]
    assert {row.last_modified_time for row in found.rows} == {MODIFIED.timestamp()}
    assert found.server_now == 7.0
    assert found.skipped == [
        f"blob '{name}' was left out: it is not a readable record"
        for name in ("a/folder", "a/1/deeper", "a/2")
    ]


def test_a_blob_is_an_ownership_with_its_etag_and_time() -> None:
    row = ownership_row(SCOPE, "0", blob("any", ownerid="me"))
    assert row == Ownership(SCOPE, "0", "me", "0x1", MODIFIED.timestamp())
    found = listing([blob("a/0")], "a/", None, lambda id_, each: ownership_row(SCOPE, id_, each))
    assert [each.owner_id for each in found.rows] == [""], "a released one is a row"


def test_the_etag_of_a_write_is_bare() -> None:
    assert new_etag({"etag": '"0x2"'}) == "0x2"


@pytest.mark.parametrize("answer", [{}, {"etag": None}, {"etag": ""}])
def test_a_write_without_an_etag_is_not_confirmed(answer: dict[str, Any]) -> None:
    with pytest.raises(StoreUnavailableError) as failed:
        new_etag(answer)
    assert str(failed.value) == "a write was answered without an etag; is a proxy in the way?"


def test_an_error_code_is_text_as_a_member_or_as_it_is() -> None:
    assert error_code(answered(409, StorageErrorCode.BLOB_ALREADY_EXISTS)) == "BlobAlreadyExists"
    assert error_code(answered(409, "BlobAlreadyExists")) == "BlobAlreadyExists"
    assert error_code(answered(409)) == error_code(HttpResponseError("no response")) == ""


def test_an_expected_failure_has_a_verdict_and_any_other_is_raised() -> None:
    exists = answered(409, "BlobAlreadyExists", kind=ResourceExistsError)
    assert expected(exists) is Verdict.LOST
    assert expected(answered(404, "BlobNotFound", kind=ResourceNotFoundError)) is Verdict.ABSENT
    other = answered(404, "ContainerNotFound", kind=ResourceNotFoundError)
    with pytest.raises(ResourceNotFoundError) as raised:
        expected(other)
    assert raised.value is other


@pytest.mark.parametrize(
    ("status", "code", "absent"),
    [
        (404, "BlobNotFound", True),
        (404, None, True),
        (404, "ContainerNotFound", False),
        (403, None, False),
        (None, "BlobNotFound", False),
    ],
)
def test_a_blob_is_absent_only_in_a_container_that_is_there(
    status: int | None, code: str | None, absent: bool
) -> None:
    assert is_absent(answered(status, code)) is absent


@pytest.mark.parametrize(
    ("server", "azurite"),
    [
        ("Azurite-Blob/3.35.0", True),
        ("Windows-Azure-Blob/1.0", False),
        ("An Azurite", False),
        (None, False),
    ],
)
def test_azurite_is_known_by_its_header(server: str | None, azurite: bool) -> None:
    assert may_be_absent(answered(412, server=server)) is azurite


@pytest.mark.parametrize(
    ("method", "query", "operation"),
    [
        ("GET", "?restype=container&comp=list", "list"),
        ("HEAD", "/blob", "read"),
        ("DELETE", "/blob", "delete"),
        ("PUT", "?restype=container", "create the container"),
        ("PUT", "/blob?comp=metadata", "write"),
        ("PUT", "/blob", "create"),
    ],
)
def test_a_request_is_told_by_its_method_and_address(
    method: str, query: str, operation: str
) -> None:
    assert operation_of(answered(403, method=method, url=URL + query)) == operation


def test_a_container_is_named_in_plain_text_with_its_account() -> None:
    assert described(URL) == WHERE
    emulator = "http://127.0.0.1:10000/devstoreaccount1"
    assert described(f"{emulator}/positions") == f"container 'positions' of {emulator}"


@pytest.mark.parametrize(
    ("status", "code", "operation", "message"),
    [
        (
            *(404, "ContainerNotFound", "write"),
            f"{WHERE} does not exist (404 ContainerNotFound): create it with store.create(), "
            "create_container=True or create = true in a configuration",
        ),
        (
            *(403, "AuthorizationPermissionMismatch", "delete"),
            f"{WHERE}: the credential lacks Delete on its blobs; the role 'Storage Blob Data "
            "Contributor' has all that is needed (403 AuthorizationPermissionMismatch)",
        ),
        (*(503, "ServerBusy", "write"), f"{WHERE}: the service answered 503 ServerBusy"),
        (*(500, "", "write"), f"{WHERE}: the service answered 500"),
        (
            *(400, "InvalidUri", "create the container"),
            f"{WHERE}: the service answered 400 InvalidUri to a request to create the container",
        ),
        (
            *(404, "", "write"),
            f"{WHERE}: the service answered 404 to a write; is the URL that of Blob Storage, and "
            "is a proxy in the way?",
        ),
    ],
)
def test_a_failure_is_told_in_full(status: int, code: str, operation: str, message: str) -> None:
    assert str(failure(status, code, operation, WHERE)) == message


def test_a_refusal_tells_what_to_change() -> None:
    of_sas = "the SAS is not for blobs and containers; make one for the container"
    shut_out = "the credential is not valid for it, or network rules shut this machine out"
    assert {
        code: refusal(code, "write")
        for code in (
            "AuthorizationResourceTypeMismatch",
            "AuthorizationServiceMismatch",
            "AuthorizationFailure",
            "AuthorizationSourceIPMismatch",
            "KeyBasedAuthenticationNotPermitted",
            "AuthenticationFailed",
        )
    } == {
        "AuthorizationResourceTypeMismatch": of_sas,
        "AuthorizationServiceMismatch": of_sas,
        "AuthorizationFailure": shut_out,
        "AuthorizationSourceIPMismatch": shut_out,
        "KeyBasedAuthenticationNotPermitted": (
            "the account allows no shared key; use an Entra credential"
        ),
        "AuthenticationFailed": (
            "the credential was refused to write; is it valid, unexpired, of this account?"
        ),
    }


def test_a_value_that_no_backend_could_store_is_told_with_its_field() -> None:
    with pytest.raises(InvalidRecordError) as refused:
        header_text("offset", "ä")
    assert str(refused.value) == "offset is 'ä'; expected ASCII without spaces at its ends"
    with pytest.raises(InvalidRecordError) as refused:
        blob_name(SCOPE, "ownership", "p" * 1100, "lower")
    assert str(refused.value).endswith(
        "; expected a blob name of at most 1024 characters, not 1123"
    )
    with pytest.raises(ConfigurationError) as mistake:
        checked_name_case("upper")
    assert str(mistake.value) == "name_case is 'upper'; expected 'lower' or 'as-typed'"


def told(error: Exception) -> tuple[type[StoreError], str]:
    """The error of this package, and its message without the container."""
    mapped_error = mapped(error, URL)
    start = f"{WHERE}: "
    assert str(mapped_error).startswith(start)
    return type(mapped_error), str(mapped_error).removeprefix(start)


def test_a_response_of_the_service_is_told_by_its_status_and_code() -> None:
    assert told(answered(503, "ServerBusy")) == (
        *(StoreUnavailableError, "the service answered 503 ServerBusy"),
    )
    kind, message = told(answered(403, "AuthorizationPermissionMismatch", method="GET"))
    assert kind is StoreAccessError
    assert "the credential lacks List on the container" in message
    # The service has answered with a code, so it is no failure of the token provider.
    refused = answered(403, "AuthenticationFailed", kind=ClientAuthenticationError)
    assert "refused to create" in told(refused)[1]


def test_a_token_that_was_not_had_is_a_refusal_whatever_the_status() -> None:
    for status in (None, 400):
        error = answered(status, kind=ClientAuthenticationError)
        assert told(error) == (
            *(StoreAccessError, "what the driver says (ClientAuthenticationError)"),
        )


def test_a_key_that_is_not_in_base64_is_told_as_one() -> None:
    assert told(AzureSigningError("Incorrect padding")) == (
        StoreAccessError,
        "the account key is not in base64; copy it again from the account's access keys",
    )


def test_an_error_of_the_program_is_told_as_it_is_without_its_secrets() -> None:
    assert told(ValueError("of the driver, with AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0")) == (
        *(StoreError, "of the driver, with AccountKey=*** (ValueError)"),
    )


def test_without_a_response_the_cause_is_told() -> None:
    untrusted = ssl.SSLCertVerificationError("self-signed certificate")
    assert told(ServiceRequestError("failed", error=untrusted)) == (
        StoreAccessError,
        "its certificate is not trusted: name the file of its authority as connection_verify=FILE "
        f"({untrusted})",
    )
    unavailable = StoreUnavailableError
    assert told(TimeoutError()) == (unavailable, "no answer in time")
    assert told(ServiceResponseError("slow", error=TimeoutError())) == (
        *(unavailable, "no answer in time"),
    )
    assert told(ServiceRequestError("failed", error=socket.gaierror())) == (
        unavailable,
        "the host's name cannot be resolved: check its spelling, and DNS",
    )
    assert told(ServiceResponseError("reset", error=ConnectionResetError("by peer"))) == (
        *(unavailable, "the connection failed: by peer (ConnectionResetError)"),
    )
    assert told(OSError()) == (unavailable, "the connection failed: no answer (OSError)")
    assert told(HttpResponseError("no response")) == (
        *(unavailable, "the connection failed: no response (HttpResponseError)"),
    )


def test_a_proxy_that_the_driver_names_is_named() -> None:
    refused = ServiceRequestError("Cannot connect to Proxy", error=ConnectionRefusedError())
    assert told(refused) == (
        StoreUnavailableError,
        "through a proxy, the connection was refused: check host and port, and that the server "
        "runs there",
    )
