"""What the answers of Azure Blob Storage say, as the driver gives them."""

from collections.abc import Mapping
from typing import Any, cast

from azure.core.exceptions import HttpResponseError

from eventhub_checkpoints._wire.blob import Verdict, bare_etag, verdict
from eventhub_checkpoints.errors import StoreUnavailableError


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


def may_be_absent(error: HttpResponseError) -> bool:
    """Whether this server says "condition not met" of a blob that is not there.

    Azure answers 404; Azurite 3.35 answers 412, and is told by its `Server` header.
    """
    headers = cast("Any", error.response).headers
    return str(headers.get("Server", "")).startswith("Azurite")
