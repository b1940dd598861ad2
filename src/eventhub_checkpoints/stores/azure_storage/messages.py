"""A request to a service of an Azure Storage account, and its response."""

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from enum import Enum, auto
from functools import lru_cache
from typing import Any
from urllib.parse import quote
from uuid import uuid4
from xml.etree.ElementTree import ParseError, fromstring

from azure.core.exceptions import HttpResponseError
from azure.core.pipeline import PipelineContext, PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HttpLoggingPolicy
from azure.core.rest import HttpRequest
from azure.core.settings import settings as azure_settings

from eventhub_checkpoints._shared.times import EPOCH
from eventhub_checkpoints.errors import StoreUnavailableError

USER_AGENT = f"eventhub-checkpoints Python/{sys.version_info.major}.{sys.version_info.minor}"

NOT_XML = (ParseError, LookupError, ValueError)
"""What the parser raises; the second and third for an encoding that Python does not have, or that
the parser cannot read."""
NOT_JSON = (ValueError, RecursionError)
"""What its parser raises; the second for arrays in arrays in arrays."""


@dataclass(slots=True)
class Request:
    """One request.

    Attributes:
        operation: what it does, for messages.
        method: of HTTP.
        resource: URL without query, encoded.
        query: parameters, not encoded.
        headers: by name; that of the credential is added when the request is sent.
        expected: the status of a response to a request that was carried out.
        body: what is sent after the headers.
    """

    operation: str
    method: str
    resource: str
    query: Mapping[str, str]
    headers: dict[str, str] = field(repr=False)
    expected: int = 200
    body: bytes = field(default=b"", repr=False)

    @property
    def url(self) -> str:
        """Return the URL with its query, encoded, without a SAS."""
        pairs = [f"{key}={quote(value, safe='')}" for key, value in self.query.items()]
        return f"{self.resource}?{'&'.join(pairs)}" if pairs else self.resource


def common_headers(api_version: str, accept: str) -> dict[str, str]:
    """Return the headers that every request has.

    Args:
        api_version: version of the service.
        accept: type of the response's body.
    """
    return {
        "x-ms-version": api_version,
        "x-ms-date": formatdate(usegmt=True),
        "x-ms-client-request-id": str(uuid4()),
        "Accept": accept,
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": USER_AGENT,
    }


@dataclass(frozen=True, slots=True)
class Response:
    """One response, with the attributes by which azure-core logs it.

    Attributes:
        status_code: of HTTP.
        reason: of HTTP.
        headers: by name, in any case.
        body: what followed the headers.
    """

    status_code: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """The response to a request that was not carried out.

    Attributes:
        operation: of the request.
        status: of HTTP.
        code: the service's error code; `""` if there is none.
        headers: of the response.
        error: azure-core's error, for whom the status is not enough.
    """

    operation: str
    status: int
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    error: HttpResponseError | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, request: Request, response: Response) -> "Refusal":
        """Return the refusal of a request."""
        code = error_code(response)
        return cls(request.operation, response.status_code, code, response.headers)

    @property
    def cause(self) -> HttpResponseError:
        """Return azure-core's error, with `status_code`, `error_code` and the headers."""
        if self.error is not None:
            return self.error
        error = HttpResponseError(f"{self.status} {self.code}".strip())
        error.status_code = self.status
        response = Response(self.status, "", self.headers, b"")
        error.response = response  # type: ignore[assignment]  # of it, callers read the headers
        error.error_code = self.code  # type: ignore[attr-defined]  # as azure-storage-blob
        return error


class Verdict(Enum):
    """What became of a write.

    Attributes:
        DONE: it was carried out.
        LOST: the row has another etag, or exists already.
        ABSENT: there is no such row.
        BLOCKED: nobody can write the row, because a blob is leased or immutable.
        FAILED: anything else, which is raised.
    """

    DONE = auto()
    LOST = auto()
    ABSENT = auto()
    BLOCKED = auto()
    FAILED = auto()


def new_etag(etag: str | None) -> str:
    """Return the etag of a confirmed write; without one, the answer is not from the service."""
    if not etag:
        raise StoreUnavailableError("a write was answered without an etag; is a proxy in the way?")
    return etag


def error_code(response: Response) -> str:
    """Return the service's error code; `""` if there is none."""
    code = response.headers.get("x-ms-error-code", "")
    if code or not response.body:
        return code
    if response.body.startswith(b"{"):
        return text_in(odata_error(response).get("code"))
    try:
        return fromstring(response.body).findtext("Code", "")
    except NOT_XML:  # the page of a proxy
        return ""


def error_message(response: Response) -> str:
    """Return the message of the service's error in JSON; `""` if there is none."""
    message = odata_error(response).get("message")
    return text_in(message.get("value")) if isinstance(message, dict) else ""


def odata_error(response: Response) -> dict[str, Any]:
    """Return the error of a service that answers in JSON; empty if there is none."""
    try:
        content = json.loads(response.body)
    except NOT_JSON:  # the page of a proxy
        return {}
    error = content.get("odata.error") if isinstance(content, dict) else None
    return error if isinstance(error, dict) else {}


def text_in(value: Any) -> str:
    """Return a value of JSON if it is a string, else `""`."""
    return value if isinstance(value, str) else ""


# Many rows of a list were written in the same second.
@lru_cache(maxsize=1024)
def moment(date: str) -> datetime:
    """Return a time of HTTP; the epoch if a proxy has removed or damaged it."""
    try:
        time = parsedate_to_datetime(date)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return EPOCH


def server_time(date: str | None) -> float | None:
    """Return a response's `Date` in epoch seconds (resolution 1 s); None if a proxy damaged it."""
    return moment(date or "").timestamp() or None


def is_traced() -> bool:
    """Return whether azure-core's tracing is switched on: a driver then makes the spans."""
    return azure_settings.tracing_implementation() is not None


_logging = HttpLoggingPolicy()
log = logging.getLogger("azure.core.pipeline.policies.http_logging_policy")


class RequestLog:
    """Logs a request and its response as azure-core does, with the same redactions."""

    def __init__(self, request: Request) -> None:
        sent = HttpRequest(request.method, request.url, headers=request.headers)
        self._request = PipelineRequest(sent, PipelineContext(None))
        _logging.on_request(self._request)

    @classmethod
    def of(cls, request: Request) -> "RequestLog | None":
        """Log the request if its logger is enabled."""
        return cls(request) if log.isEnabledFor(logging.INFO) else None

    def end(self, response: Any) -> None:
        """Log the response."""
        request = self._request
        _logging.on_response(
            request, PipelineResponse(request.http_request, response, request.context)
        )
