"""Requests to Blob Storage that the store builds itself, and the meaning of their responses.

The requests are those of azure-storage-blob: same methods, paths, queries, conditions and metadata.
Everything here is data and pure functions; `_async.rest` sends and receives.

Source: Azure Storage REST API, "Authorize with Shared Key", "Put Blob", "Set Blob Metadata", "Get
Blob Properties", "Delete Blob" and "List Blobs"; requests of azure-storage-blob 12.31.1.
"""

import binascii
import hmac
import logging
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4
from xml.etree.ElementTree import Element, ParseError, XMLPullParser, fromstring

from azure.core.exceptions import ClientAuthenticationError, DecodeError, HttpResponseError
from azure.core.pipeline import PipelineContext, PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HttpLoggingPolicy
from azure.core.rest import HttpRequest
from azure.core.settings import settings as azure_settings

from eventhub_checkpoints._shared.times import EPOCH

USER_AGENT = f"eventhub-checkpoints Python/{sys.version_info.major}.{sys.version_info.minor}"
SLICE = 1 << 16
"""Bytes of a list that are parsed at once: about 80 blobs, one to three milliseconds."""
REFRESH_BEFORE = 300.0
"""Seconds before its expiry at which a token is replaced, as azure-core does."""
TOKEN_SCOPE = "https://storage.azure.com/.default"

NOT_XML = (ParseError, LookupError, ValueError)
"""What the parser raises; the second and third for an encoding that Python does not have, or that
the parser cannot read."""

Query = Mapping[str, str]


@dataclass(slots=True)
class Request:
    """One request.

    Attributes:
        method: of HTTP.
        resource: URL of the blob or container, encoded.
        query: parameters, not encoded.
        headers: by name; `authorized` adds that of the credential.
    """

    method: str
    resource: str
    query: Query = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """Return the URL with its query, encoded, without a SAS."""
        pairs = [f"{key}={quote(value, safe='')}" for key, value in self.query.items()]
        return f"{self.resource}?{'&'.join(pairs)}" if pairs else self.resource


@dataclass(slots=True)
class Response:
    """One response, with the attributes of azure-core's that errors are explained by.

    Attributes:
        request: what it answers.
        status_code: of HTTP.
        reason: of HTTP.
        headers: by name, in any case.
        body: of the response.
    """

    request: Request
    status_code: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class Blob(NamedTuple):
    """A blob in a list, or its properties.

    Attributes:
        name: of the blob.
        etag: with or without quotes.
        last_modified: on the service's clock.
        metadata: its keys have the case in which they were written.
    """

    name: str
    etag: str
    last_modified: datetime
    metadata: dict[str, str]


# Many rows of a list were written in the same second.
@lru_cache(maxsize=1024)
def moment(date: str) -> datetime:
    """Return a time of HTTP; the epoch if a proxy has removed or damaged it."""
    try:
        time = parsedate_to_datetime(date)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return EPOCH


@dataclass(frozen=True, slots=True)
class SharedKey:
    """Account key.

    Attributes:
        pair: returns the account's name and its key, which may be replaced at any time.
    """

    pair: Callable[[], tuple[str, str]]

    def sign(self, request: Request) -> None:
        """Add the signature of the request to its headers.

        Raises:
            ClientAuthenticationError: the key is not in base64.
        """
        account, key = self.pair()
        try:
            secret = b64decode(key, validate=False)
        except (binascii.Error, ValueError):
            raise AzureSigningError("the account key is not in base64") from None
        digest = hmac.digest(secret, text_to_sign(account, request).encode(), sha256)
        request.headers["Authorization"] = f"SharedKey {account}:{b64encode(digest).decode()}"


class AzureSigningError(ClientAuthenticationError):
    """The request cannot be signed."""


def text_to_sign(account: str, request: Request) -> str:
    """Return what the signature of a request without a body covers."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    standard = (
        *("content-encoding", "content-language", "", "content-md5", "content-type", "date"),
        *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
    )
    lines = [request.method, *(headers.get(name, "") for name in standard)]
    lines += [f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-ms-")]
    path = request.resource.split("/", 3)[3]
    lines.append(f"/{account}/{path}")
    lines += [f"{name}:{request.query[name]}" for name in sorted(request.query)]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Sas:
    """Shared access signature.

    Attributes:
        query: returns its encoded query, which may be replaced at any time.
    """

    query: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Token:
    """Credential that issues tokens, such as those of azure-identity."""

    credential: Any


Authorization = SharedKey | Sas | Token | None


def authorized(request: Request, authorization: Authorization) -> str:
    """Sign the request if the credential is a key; return its URL, with the SAS if it is one."""
    if isinstance(authorization, SharedKey):
        authorization.sign(request)
    if isinstance(authorization, Sas):
        return f"{request.url}{'&' if request.query else '?'}{authorization.query()}"
    return request.url


class Container:
    """Builds the requests to one container.

    Attributes:
        url: of the container, encoded, without a SAS.
        name: of the container.
        authorization: how requests are authorised; None for public containers.
        api_version: version of the service.
    """

    def __init__(
        self, account_url: str, name: str, authorization: Authorization, api_version: str
    ) -> None:
        self.url = f"{account_url}/{quote(name)}"
        self.name = name
        self.authorization = authorization
        self.api_version = api_version

    def create(self, name: str, metadata: Mapping[str, str], overwrite: bool) -> Request:
        """Return a Put Blob of an empty blob."""
        request = self._request("PUT", name, {}, metadata)
        request.headers["x-ms-blob-type"] = "BlockBlob"
        request.headers["Content-Type"] = "application/octet-stream"
        if not overwrite:
            request.headers["If-None-Match"] = "*"
        return request

    def update(self, name: str, metadata: Mapping[str, str], etag: str | None) -> Request:
        """Return a Set Blob Metadata, conditional on the etag unless that is None."""
        request = self._request("PUT", name, {"comp": "metadata"}, metadata)
        if etag is not None:
            request.headers["If-Match"] = f'"{etag}"'
        return request

    def read(self, name: str) -> Request:
        """Return a Get Blob Properties."""
        return self._request("HEAD", name, {})

    def delete(self, name: str) -> Request:
        """Return a Delete Blob."""
        return self._request("DELETE", name, {})

    def list(self, prefix: str, marker: str, one_level: bool) -> Request:
        """Return a List Blobs with metadata, or, for one level of names, with a delimiter."""
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        query |= {"delimiter": "/"} if one_level else {"include": "metadata"}
        if marker:
            query["marker"] = marker
        return self._request("GET", "", query)

    def _request(
        self, method: str, name: str, query: Query, metadata: Mapping[str, str] | None = None
    ) -> Request:
        headers = {f"x-ms-meta-{key}": value for key, value in (metadata or {}).items()}
        headers["x-ms-version"] = self.api_version
        headers["x-ms-date"] = formatdate(usegmt=True)
        headers["x-ms-client-request-id"] = str(uuid4())
        headers["Accept"] = "application/xml"
        headers["Accept-Encoding"] = "gzip, deflate"
        headers["User-Agent"] = USER_AGENT
        url = f"{self.url}/{quote(name, safe='~/')}" if name else self.url
        return Request(method, url, query, headers)


class TokenCache:
    """Token of a credential, until shortly before it expires.

    Attributes:
        scope: resource of the tokens.
        options: more arguments of `get_token`, such as the tenant that the service named.
    """

    def __init__(self) -> None:
        self.scope = TOKEN_SCOPE
        self.options: dict[str, str] = {}
        self._token = ""
        self._refresh_at = 0.0

    @property
    def current(self) -> str:
        """Return the token; `""` if a new one is needed."""
        return self._token if time.time() < self._refresh_at else ""

    def keep(self, token: Any) -> str:
        """Store a new token, and return it."""
        self._token = str(token.token)
        self._refresh_at = token.expires_on - REFRESH_BEFORE
        return self._token

    def follow(self, response: Response) -> bool:
        """Use the tenant and resource that a 401 names; return whether it names others."""
        challenge = response.headers.get("WWW-Authenticate", "")
        if response.status_code != 401 or not challenge.startswith("Bearer "):
            return False
        words = challenge.removeprefix("Bearer ").replace(",", " ").split()
        named = {key: value.strip('"') for key, _, value in (word.partition("=") for word in words)}
        if not {"authorization_uri", "resource_id"} <= named.keys():
            return False
        try:
            tenant = urlsplit(named["authorization_uri"]).path.split("/")[1:2]
        except ValueError:
            return False
        if not tenant:
            return False
        scope, options = f"{named['resource_id']}/.default", {"tenant_id": tenant[0]}
        if (scope, options) == (self.scope, self.options):
            return False
        self.scope, self.options, self._token, self._refresh_at = scope, options, "", 0.0
        return True


def checked(response: Response, *expected: int) -> Response:
    """Return a response of an expected status.

    Raises:
        HttpResponseError: it has another status; `error_code` is the service's.
    """
    if response.status_code in expected:
        return response
    # An error may be pickled with all that it holds, or shown by a tool with its attributes.
    response.request.headers.pop("Authorization", None)
    error = HttpResponseError(f"{response.status_code} {response.reason}")
    error.status_code, error.reason = response.status_code, response.reason
    error.response = response  # type: ignore[assignment]  # only its headers and request are read
    error.error_code = error_code(response)  # type: ignore[attr-defined]  # as azure-storage-blob
    raise error


def error_code(response: Response) -> str:
    """Return the service's error code; `""` if there is none."""
    code = response.headers.get("x-ms-error-code", "")
    if code or not response.body:
        return code
    try:
        return fromstring(response.body).findtext("Code", "")
    except NOT_XML:  # the page of a proxy
        return ""


def properties(name: str, response: Response) -> Blob:
    """Return the properties of a blob from the response to Get Blob Properties."""
    headers = response.headers
    modified = moment(headers.get("Last-Modified", ""))
    start = len("x-ms-meta-")
    metadata = {
        key[start:]: value for key, value in headers.items() if key.lower().startswith("x-ms-meta-")
    }
    return Blob(name, headers.get("ETag", ""), modified, metadata)


class ListParser:
    """Parser of a list in pages, in slices, so that an event loop can do other work in between.

    Attributes:
        blobs: the blobs so far.
        prefixes: the names of the next level so far.
    """

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self.prefixes: list[str] = []

    def begin_page(self) -> None:
        """Prepare for the bytes of a page."""
        self._parser: XMLPullParser[Any] = XMLPullParser(("end",))
        self._marker = ""

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of the page.

        Raises:
            DecodeError: they are not part of a list.
        """
        try:
            self._parser.feed(data)
            events: Iterator[Any] = self._parser.read_events()
            for _, element in events:
                self._take(element)
        except NOT_XML as error:
            raise DecodeError(f"the list is not XML: {error}") from error

    def end_page(self) -> str:
        """Return the marker of the next page; `""` if this one was the last.

        Raises:
            DecodeError: the page is incomplete.
        """
        try:
            self._parser.close()
        except ParseError as error:
            raise DecodeError(f"the list is not XML: {error}") from error
        return self._marker

    def _take(self, element: Element) -> None:
        if element.tag == "Blob":
            etag = element.findtext("Properties/Etag", "")
            modified = element.findtext("Properties/Last-Modified", "")
            metadata = element.find("Metadata")
            pairs = {} if metadata is None else {each.tag: each.text or "" for each in metadata}
            self.blobs.append(Blob(name_of(element), etag, moment(modified), pairs))
            element.clear()
        elif element.tag == "BlobPrefix":
            self.prefixes.append(name_of(element))
        elif element.tag == "NextMarker":
            self._marker = element.text or ""


def name_of(element: Element) -> str:
    """Return the name in an element; names that XML cannot hold are percent-encoded there."""
    name = element.find("Name")
    if name is None:
        raise DecodeError("the list has a blob without a name")
    text = name.text or ""
    return unquote(text) if name.get("Encoded") == "true" else text


def is_traced() -> bool:
    """Return whether azure-core's tracing is switched on: the driver then makes the spans."""
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
