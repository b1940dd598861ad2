"""Requests to Blob Storage that the store builds itself, and the reading of their responses.

The requests are those of azure-storage-blob: same methods, paths, queries, conditions and metadata.
Everything here is data and pure functions; `_async.rest` sends and receives.

Source: Azure Storage REST API, "Create Container", "Put Blob", "Set Blob Metadata", "Get Blob
Properties", "Get Blob", "Delete Blob" and "List Blobs"; requests of azure-storage-blob 12.31.1.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from azure.core.exceptions import DecodeError

from eventhub_checkpoints.stores.azure_storage.messages import (
    NOT_XML,
    Request,
    Response,
    common_headers,
    moment,
)

SLICE = 1 << 16
"""Bytes of a list that are parsed at once: about 80 blobs, one to three milliseconds."""


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


class Page(NamedTuple):
    """A page of a list.

    Attributes:
        blobs: the blobs on it.
        prefixes: the names of the next level on it, where only one level is listed.
        marker: of the next page; `""` if this one is the last.
        date: the service's `Date`; None if a proxy has removed it.
    """

    blobs: list[Blob]
    prefixes: list[str]
    marker: str
    date: str | None


class Container:
    """Builds the requests to one container.

    Args:
        account_url: encoded, without a SAS.
        name: of the container.
        api_version: version of the service.

    Attributes:
        url: of the container, encoded, without a SAS.
    """

    def __init__(self, account_url: str, name: str, api_version: str) -> None:
        self.url = f"{account_url}/{quote(name)}"
        self._api_version = api_version

    def create_container(self) -> Request:
        """Return a Create Container."""
        query = {"restype": "container"}
        return self._request("create the container", "PUT", "", query, expected=201)

    def create(self, name: str, metadata: Mapping[str, str], overwrite: bool) -> Request:
        """Return a Put Blob of an empty blob."""
        request = self._request("create", "PUT", name, {}, metadata, expected=201)
        request.headers["x-ms-blob-type"] = "BlockBlob"
        request.headers["Content-Type"] = "application/octet-stream"
        if not overwrite:
            request.headers["If-None-Match"] = "*"
        return request

    def update(self, name: str, metadata: Mapping[str, str], etag: str | None) -> Request:
        """Return a Set Blob Metadata, conditional on the etag unless that is None."""
        request = self._request("write", "PUT", name, {"comp": "metadata"}, metadata)
        if etag is not None:
            request.headers["If-Match"] = f'"{etag}"'
        return request

    def read(self, name: str) -> Request:
        """Return a Get Blob Properties."""
        return self._request("read", "HEAD", name, {})

    def download(self, name: str, length: int) -> Request:
        """Return a Get Blob of the first bytes."""
        request = self._request("read", "GET", name, {}, expected=206)
        request.headers["x-ms-range"] = f"bytes=0-{length - 1}"
        return request

    def delete(self, name: str) -> Request:
        """Return a Delete Blob."""
        return self._request("delete", "DELETE", name, {}, expected=202)

    def list(self, prefix: str, marker: str, one_level: bool) -> Request:
        """Return a List Blobs with metadata, or, for one level of names, with a delimiter."""
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        query |= {"delimiter": "/"} if one_level else {"include": "metadata"}
        if marker:
            query["marker"] = marker
        return self._request("list", "GET", "", query)

    def _request(
        self,
        operation: str,
        method: str,
        name: str,
        query: Mapping[str, str],
        metadata: Mapping[str, str] | None = None,
        expected: int = 200,
    ) -> Request:
        headers = {f"x-ms-meta-{key}": value for key, value in (metadata or {}).items()}
        headers |= common_headers(self._api_version, "application/xml")
        url = f"{self.url}/{quote(name, safe='~/')}" if name else self.url
        return Request(operation, method, url, query, headers, expected)


def properties(name: str, response: Response) -> Blob:
    """Return the properties of a blob from the response to Get Blob Properties."""
    headers = response.headers
    modified = moment(headers.get("Last-Modified", ""))
    start = len("x-ms-meta-")
    metadata = {
        key[start:]: value for key, value in headers.items() if key.lower().startswith("x-ms-meta-")
    }
    return Blob(name, headers.get("ETag", ""), modified, metadata)


class PageParser:
    """Parser of one page of a list, in slices, so that an event loop can do other work in between.

    Attributes:
        blobs: the blobs so far.
        prefixes: the names of the next level so far.
    """

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self.prefixes: list[str] = []
        self._marker = ""
        self._parser: XMLPullParser[Any] = XMLPullParser(("end",))

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

    def close(self, date: str | None) -> Page:
        """Return the page.

        Raises:
            DecodeError: it is incomplete.
        """
        try:
            self._parser.close()
        except ParseError as error:
            raise DecodeError(f"the list is not XML: {error}") from error
        return Page(self.blobs, self.prefixes, self._marker, date)

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
