"""What becomes of the errors of azure-core, and of the responses that a driver raises."""

import socket
import ssl
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import StorageErrorCode
from azure.storage.blob._shared.authentication import AzureSigningError

from eventhub_checkpoints.errors import StoreAccessError, StoreError, StoreUnavailableError
from eventhub_checkpoints.stores.azure_storage.errors import mapped, refusal_of
from eventhub_checkpoints.stores.azure_storage.messages import Refusal

WHERE = "container 'positions' of https://account.blob.core.windows.net"


def raised(
    status: int | None, code: object = None, kind: type[HttpResponseError] = HttpResponseError
) -> Any:
    """An error of the driver for a response with this status and code."""
    error: Any = kind("what the driver says")
    error.status_code, error.error_code = status, code
    error.response = SimpleNamespace(headers={"Server": "any"})
    return error


def test_a_response_that_a_driver_raises_is_a_refusal() -> None:
    for code in (StorageErrorCode.BLOB_ALREADY_EXISTS, "BlobAlreadyExists"):
        error = raised(409, code, ResourceExistsError)
        refusal = refusal_of(error, "create")
        assert refusal == Refusal("create", 409, "BlobAlreadyExists", {"Server": "any"})
        assert refusal.cause is error
    assert refusal_of(raised(409), "create").code == ""
    # The service has answered with a code, so it is no failure of the token provider.
    refused = raised(403, "AuthenticationFailed", ClientAuthenticationError)
    assert refusal_of(refused, "list").status == 403


def test_an_error_without_a_response_is_raised_as_it_is() -> None:
    for error in (HttpResponseError("no response"), raised(None)):
        with pytest.raises(HttpResponseError) as found:
            refusal_of(error, "list")
        assert found.value is error


def told(error: Exception) -> tuple[type[StoreError], str]:
    """The error of this package, and its message without the container."""
    mapped_error = mapped(error, WHERE)
    start = f"{WHERE}: "
    assert str(mapped_error).startswith(start)
    return type(mapped_error), str(mapped_error).removeprefix(start)


def test_a_token_that_was_not_had_is_a_refusal_whatever_the_status() -> None:
    for status in (None, 400):
        error = raised(status, kind=ClientAuthenticationError)
        assert told(error) == (
            *(StoreAccessError, "what the driver says (ClientAuthenticationError)"),
        )
        with pytest.raises(ClientAuthenticationError):
            refusal_of(error, "list")


def test_a_key_that_is_not_in_base64_is_told_as_one() -> None:
    assert told(AzureSigningError("Incorrect padding")) == (
        StoreAccessError,
        "the account key is not valid base64; copy it again from the account's access keys",
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
