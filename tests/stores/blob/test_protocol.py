"""What is said to Blob Storage, byte by byte, and what its answers mean."""

import pytest

from eventhub_checkpoints.errors import (
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.azure_storage.messages import Refusal, Verdict
from eventhub_checkpoints.stores.blob.protocol import (
    DEFAULT_API_VERSION,
    bare_etag,
    checkpoint_metadata,
    failure,
    ownership_metadata,
    verdict,
)

SCOPE = Scope("ns", "hub", "group")


def checkpoint(offset: str, sequence_number: int) -> Checkpoint:
    return Checkpoint(SCOPE, "0", offset, sequence_number)


def test_the_default_version_is_the_official_packages() -> None:
    assert DEFAULT_API_VERSION == "2019-07-07"


@pytest.mark.parametrize("owner_id", ["c3a1f6d0-8f35-4f0e-9d3f-7e2f6f1c0a11", ""])
def test_an_ownership_is_one_key(owner_id: str) -> None:
    assert ownership_metadata(owner_id) == {"ownerid": owner_id}


@pytest.mark.parametrize(
    ("offset", "sequence_number", "number"),
    [
        ("149:0:1234", 7, "7"),
        ("", 0, "0"),
        ("0", 2**63 - 1, "9223372036854775807"),
        ("-1", -(2**63), "-9223372036854775808"),
    ],
)
def test_a_checkpoint_is_always_both_keys(offset: str, sequence_number: int, number: str) -> None:
    stored = checkpoint_metadata(checkpoint(offset, sequence_number))
    assert list(stored.items()) == [("offset", offset), ("sequencenumber", number)]


@pytest.mark.parametrize("value", ["besitzer-ä", " a", "a ", "所有者"])
def test_what_a_header_would_change_is_refused(value: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        ownership_metadata(value)
    assert (refused.value.field, refused.value.value) == ("owner_id", value)
    with pytest.raises(InvalidRecordError) as refused:
        checkpoint_metadata(checkpoint(value, 1))
    assert (refused.value.field, refused.value.value) == ("offset", value)


@pytest.mark.parametrize(
    ("status", "code", "found"),
    [
        (409, "BlobAlreadyExists", Verdict.LOST),
        (412, "ConditionNotMet", Verdict.LOST),
        (404, "BlobNotFound", Verdict.ABSENT),
        (404, "ContainerNotFound", Verdict.FAILED),
        (404, "ResourceNotFound", Verdict.FAILED),
        (409, "ContainerBeingDeleted", Verdict.FAILED),
        (409, "BlobImmutableDueToPolicy", Verdict.BLOCKED),
        (412, "LeaseIdMissing", Verdict.BLOCKED),
        (412, "", Verdict.BLOCKED),
        (403, "AuthorizationFailure", Verdict.FAILED),
        (503, "ServerBusy", Verdict.FAILED),
    ],
)
def test_a_verdict_needs_status_and_code(status: int, code: str, found: Verdict) -> None:
    assert verdict(Refusal("write", status, code)) is found


def test_a_write_that_was_carried_out_is_done() -> None:
    assert verdict("0x8D") is Verdict.DONE


URL = "https://account.blob.core.windows.net/positions"
WHERE = "container 'positions' of https://account.blob.core.windows.net"


@pytest.mark.parametrize(
    "code",
    [
        "AccountIsDisabled",
        "InsufficientAccountPermissions",
        "RequestForbiddenByContainerEncryptionPolicy",
    ],
)
def test_what_is_not_the_fault_of_the_credential_is_not_blamed_on_it(code: str) -> None:
    said = str(failure(Refusal("write", 403, code), URL))
    assert "not the reason" in said
    assert "the credential was refused" not in said


def test_a_container_that_is_being_deleted_is_waited_for_by_create() -> None:
    error = failure(Refusal("create the container", 409, "ContainerBeingDeleted"), URL)
    assert type(error) is StoreUnavailableError
    assert "is being deleted (409 ContainerBeingDeleted)" in str(error)
    assert "create()" not in str(error)


@pytest.mark.parametrize(
    ("status", "code", "kind", "sentence"),
    [
        (404, "ContainerNotFound", StoreNotReadyError, "create_container=True"),
        (409, "ContainerBeingDeleted", StoreNotReadyError, "create it again with store.create()"),
        (403, "AuthorizationPermissionMismatch", StoreAccessError, "lacks Write on its blobs"),
        (403, "UnauthorizedBlobOverwrite", StoreAccessError, "lacks Write on its blobs"),
        (403, "AccountIsDisabled", StoreAccessError, "the storage account is disabled"),
        (403, "InsufficientAccountPermissions", StoreAccessError, "allows no such request now"),
        (403, "AuthorizationProtocolMismatch", StoreAccessError, "use https://"),
        (
            *(403, "RequestForbiddenByContainerEncryptionPolicy", StoreAccessError),
            "the container accepts only blobs of its own encryption scope",
        ),
        (403, "AuthorizationPermissionMismatch", StoreAccessError, "Storage Blob Data Contrib"),
        (403, "AuthorizationResourceTypeMismatch", StoreAccessError, "not for blobs and cont"),
        (403, "AuthorizationServiceMismatch", StoreAccessError, "not for blobs and containers"),
        (403, "AuthorizationFailure", StoreAccessError, "network rules"),
        (403, "AuthorizationSourceIPMismatch", StoreAccessError, "network rules"),
        (403, "KeyBasedAuthenticationNotPermitted", StoreAccessError, "use an Entra credential"),
        (403, "AuthenticationFailed", StoreAccessError, "valid, unexpired, of this account"),
        (401, "InvalidAuthenticationInfo", StoreAccessError, "refused to write"),
        (400, "InvalidAuthenticationInfo", StoreAccessError, "refused to write"),
        (403, "", StoreAccessError, "(403)"),
        (401, "", StoreAccessError, "(401)"),
        (408, "", StoreUnavailableError, "answered 408"),
        (429, "TooManyRequests", StoreUnavailableError, "429 TooManyRequests"),
        (500, "OperationTimedOut", StoreUnavailableError, "500 OperationTimedOut"),
        (503, "ServerBusy", StoreUnavailableError, "503 ServerBusy"),
        (400, "InvalidHeaderValue", StoreError, "400 InvalidHeaderValue to a write"),
        (412, "LeaseIdMissing", StoreError, "412 LeaseIdMissing"),
        (404, "", StoreError, "answered 404 to a write; is the URL that of Blob Storage"),
    ],
)
def test_a_failure_says_what_to_do(
    status: int, code: str, kind: type[StoreError], sentence: str
) -> None:
    error = failure(Refusal("write", status, code), URL)
    assert type(error) is kind
    assert sentence in str(error)
    assert WHERE in str(error)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("operation", "right"),
    [
        ("list", "List on the container"),
        ("read", "Read on its blobs"),
        ("create", "Create or Write on its blobs"),
        ("write", "Write on its blobs"),
        ("create the container", "Create on containers, which no SAS of a container has"),
    ],
)
def test_a_refusal_names_the_right_that_is_missing(operation: str, right: str) -> None:
    error = failure(Refusal(operation, 403, "AuthorizationPermissionMismatch"), URL)
    assert f"the credential lacks {right};" in str(error)


def test_an_etag_is_the_same_with_and_without_quotes() -> None:
    for bare in ("0x1D4B", "X1X"):
        assert bare_etag(f'"{bare}"') == bare_etag(bare) == bare
