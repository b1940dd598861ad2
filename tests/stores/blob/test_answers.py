"""What rows, verdicts and messages become of answers."""

from datetime import UTC, datetime

import pytest

from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StoreAccessError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.azure_storage.messages import Refusal
from eventhub_checkpoints.stores.azure_storage.name_case import checked_name_case
from eventhub_checkpoints.stores.blob.protocol import (
    SERVICE,
    BlobNames,
    blob_name,
    checkpoint_row,
    failure,
    header_text,
    is_absent,
    listing,
    may_be_absent,
    new_etag,
    ownership_row,
)
from eventhub_checkpoints.stores.blob.rest import Blob

SCOPE = Scope("ns", "hub", "group")
URL = "https://account.blob.core.windows.net/my%20positions"
WHERE = "container 'my positions' of https://account.blob.core.windows.net"
MODIFIED = datetime(2026, 11, 21, 10, tzinfo=UTC)


def blob(name: str, **metadata: str) -> Blob:
    return Blob(name, '"0x1"', MODIFIED, metadata)


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
    assert new_etag('"0x2"') == "0x2"


@pytest.mark.parametrize("etag", [None, ""])
def test_a_write_without_an_etag_is_not_confirmed(etag: str | None) -> None:
    with pytest.raises(StoreUnavailableError) as failed:
        new_etag(etag)
    assert str(failed.value) == "a write was answered without an etag; is a proxy in the way?"


@pytest.mark.parametrize(
    ("status", "code", "absent"),
    [
        (404, "BlobNotFound", True),
        (404, "", True),
        (404, "ContainerNotFound", False),
        (403, "", False),
        (500, "BlobNotFound", False),
    ],
)
def test_a_blob_is_absent_only_in_a_container_that_is_there(
    status: int, code: str, absent: bool
) -> None:
    assert is_absent(Refusal("read", status, code)) is absent


@pytest.mark.parametrize(
    ("status", "server", "unclear"),
    [
        (412, "Azurite-Blob/3.35.0", True),
        (404, "Azurite-Blob/3.35.0", False),
        (412, "Windows-Azure-Blob/1.0", False),
        (412, "An Azurite", False),
        (412, None, False),
    ],
)
def test_only_azurite_calls_a_missing_blob_a_conflict(
    status: int, server: str | None, unclear: bool
) -> None:
    code = {412: "ConditionNotMet", 404: "BlobNotFound"}[status]
    headers = {} if server is None else {"Server": server}
    assert may_be_absent(Refusal("write", status, code, headers)) is unclear


def test_a_container_is_named_in_plain_text_with_its_account() -> None:
    assert SERVICE.described(URL) == WHERE
    emulator = "http://127.0.0.1:10000/devstoreaccount1"
    assert SERVICE.described(f"{emulator}/positions") == f"container 'positions' of {emulator}"


@pytest.mark.parametrize(
    ("status", "code", "operation", "message"),
    [
        (
            *(404, "ContainerNotFound", "write"),
            f"{WHERE} does not exist (404 ContainerNotFound): create it with store.create(), "
            "create_container=True or create = true in a configuration",
        ),
        (
            *(409, "ContainerBeingDeleted", "create the container"),
            f"{WHERE} is being deleted (409 ContainerBeingDeleted), which takes half a minute or "
            "longer: wait until then, or name another container",
        ),
        (
            *(409, "ContainerBeingDeleted", "list"),
            f"{WHERE} is being deleted (409 ContainerBeingDeleted): create it again with "
            "store.create(), which waits for the end of that, or name another container",
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
    assert str(failure(Refusal(operation, status, code), URL)) == message


def test_a_refusal_tells_what_to_change() -> None:
    of_sas = "the SAS is not for blobs and containers; make one for the container"
    shut_out = "the credential is not valid for it, or network rules shut this machine out"
    expected = {
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
    for code, message in expected.items():
        error = failure(Refusal("write", 403, code), URL)
        assert type(error) is StoreAccessError
        assert str(error) == f"{WHERE}: {message} (403 {code})"


def test_a_value_that_no_backend_could_store_is_told_with_its_field() -> None:
    with pytest.raises(InvalidRecordError) as refused:
        header_text("offset", "ä")
    assert str(refused.value) == "offset is 'ä'; expected ASCII without spaces at its ends"
    with pytest.raises(InvalidRecordError) as refused:
        blob_name(BlobNames(), SCOPE, "ownership", "p" * 1100)
    assert str(refused.value).endswith(
        "; expected a blob name of at most 1024 characters, not 1123"
    )
    with pytest.raises(ConfigurationError) as mistake:
        checked_name_case("upper")
    assert str(mistake.value) == "name_case is 'upper'; expected 'lower' or 'as-typed'"
