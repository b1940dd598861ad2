"""What the answers of Azure Blob Storage say, as the driver gives them."""

from collections.abc import Mapping
from typing import Any, cast

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.stores.blob.protocol import Verdict, bare_etag, verdict
from eventhub_checkpoints.stores.unreachable import innermost, why_unreached


def expected(error: HttpResponseError) -> Verdict:
    """The verdict of an answer that a conditional write may get; any other is raised."""
    found = verdict(error.status_code, error_code(error))
    if found is Verdict.FAILED:
        raise error
    return found


def new_etag(answer: Mapping[str, Any]) -> str:
    """The etag of a write that was confirmed; without one, somebody else has answered."""
    etag = answer.get("etag")
    if not etag:
        raise StoreUnavailableError("a write was answered without an etag; is a proxy in the way?")
    return bare_etag(str(etag))


def error_code(error: HttpResponseError) -> str:
    """The service's own code for the error; `""` if there is none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def operation_of(error: HttpResponseError) -> str:
    """What was asked for, by the request that was refused."""
    request = cast("Any", error.response).request
    if request.method == "GET":
        return "list"
    if request.method == "HEAD":
        return "read"
    if request.method == "DELETE":
        return "delete"
    if "restype=container" in request.url:
        return "create the container"
    return "write" if "comp=metadata" in request.url else "create"


def unreached(error: AzureError | OSError) -> str:
    """What to say where no answer came: the cause, without the request that the driver repeats."""
    cause = innermost(error)
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    said = masked(str(cause)) or "no answer"
    through = "through a proxy, " if "proxy" in str(error).lower() else ""
    reason = why_unreached(error) or f"the connection failed: {said} ({type(cause).__name__})"
    return through + reason


def refused_credential(error: ClientAuthenticationError) -> str:
    """What to say where a request got no token or could not be signed."""
    if type(error).__name__ == "AzureSigningError":
        return "the account key is not in base64; copy it again from the account's access keys"
    return f"{masked(str(error))} ({type(error).__name__})"


def may_be_absent(error: HttpResponseError) -> bool:
    """Whether this server says "condition not met" of a blob that is not there.

    Azure answers 404; Azurite 3.35 answers 412, and is told by its `Server` header.
    """
    headers = cast("Any", error.response).headers
    return str(headers.get("Server", "")).startswith("Azurite")
