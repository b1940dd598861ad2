# Derived from _async/requests.py by tools/unasync.py; edit that file.
"""Requests to one container, over either transport."""

from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.stores.azure_storage.messages import (
    Refusal,
    Verdict,
    is_traced,
    server_time,
)
from eventhub_checkpoints.stores.blob import protocol
from eventhub_checkpoints.stores.blob._sync.rest import RestTransport
from eventhub_checkpoints.stores.blob.rest import Blob, Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.stores.blob._sync.driver import DriverTransport

T = TypeVar("T")


class BlobRequests:
    """Requests to one container, limited to the time that the current call has left.

    A response that a caller has to expect is returned; every other one is raised as `StoreError`.

    Args:
        rest: sends requests without the driver; None if only the driver can.
        make_driver: creates the transport through the driver, when it is first needed.
    """

    def __init__(
        self, rest: RestTransport | None, make_driver: "Callable[[], DriverTransport]"
    ) -> None:
        self._rest = rest
        self._make_driver = make_driver
        self._driver = make_driver() if rest is None else None
        self._lock = Lock()

    @property
    def transport(self) -> "RestTransport | DriverTransport":
        """Return what sends the next request."""
        if self._rest is not None and not is_traced():
            return self._rest
        with self._lock:
            if self._driver is None:
                self._driver = self._make_driver()
            return self._driver

    @property
    def address(self) -> str:
        """Return the container's URL, without a SAS."""
        return self.transport.address

    def failure(self, refusal: Refusal) -> StoreError:
        """Return the error for a request that was not carried out."""
        return protocol.failure(refusal, self.address)

    def create_container(self) -> None:
        """Create the container, unless it exists."""
        refusal = self.transport.create_container()
        if refusal is not None and refusal.code != "ContainerAlreadyExists":
            raise self.failure(refusal)

    def create(self, name: str, metadata: dict[str, str], overwrite: bool = False) -> str | Refusal:
        """Create a blob; return its etag, or the refusal if it exists or is blocked."""
        return self._expected(self.transport.create(name, metadata, overwrite))

    def update(self, name: str, metadata: dict[str, str], etag: str | None) -> str | Refusal:
        """Set a blob's metadata, if the etag matches or is None; return the new etag.

        The refusal is returned if the etag does not match, or the blob is absent or blocked.
        """
        answer = self.transport.update(name, metadata, etag)
        is_unclear = isinstance(answer, Refusal) and protocol.may_be_absent(answer)
        if is_unclear and self.read(name) is None:
            return protocol.MISSING_BLOB
        return self._expected(answer)

    def _expected(self, answer: str | Refusal) -> str | Refusal:
        return self._granted(answer) if protocol.verdict(answer) is Verdict.FAILED else answer

    def read(self, name: str) -> Blob | None:
        """Return a blob's properties; None if it does not exist."""
        answer = self.transport.read(name)
        if isinstance(answer, Refusal) and protocol.is_absent(answer):
            return None
        return self._granted(answer)

    def download(self, name: str, length: int) -> bytes:
        """Return the first bytes of a blob."""
        answer = self.transport.download(name, length)
        if isinstance(answer, Refusal) and answer.status == 416:
            return b""  # an empty blob has no such range
        return self._granted(answer)

    def delete(self, name: str) -> bool:
        """Delete a blob; return whether it existed."""
        refusal = self.transport.delete(name)
        if refusal is not None and protocol.verdict(refusal) is not Verdict.ABSENT:
            raise self.failure(refusal)
        return refusal is None

    def list_blobs(self, prefix: str) -> tuple[list[Blob], float | None]:
        """List blobs with their metadata; also return the service's time at the last page."""
        pages = self._pages(prefix, one_level=False)
        return [blob for page in pages for blob in page.blobs], server_time(pages[-1].date)

    def list_below(self, prefix: str) -> list[str]:
        """List one level of the blobs' names: each prefix up to the next `/`."""
        pages = self._pages(prefix, one_level=True)
        return [name for page in pages for name in page.prefixes]

    def _pages(self, prefix: str, *, one_level: bool) -> list[Page]:
        pages: list[Page] = []
        while not pages or pages[-1].marker:
            marker = pages[-1].marker if pages else ""
            pages.append(self._granted(self.transport.page(prefix, marker, one_level)))
        return pages

    def _granted(self, answer: T | Refusal) -> T:
        if isinstance(answer, Refusal):
            raise self.failure(answer)
        return answer

    def reset(self) -> None:
        """Create new connections."""
        for transport in (self._rest, self._driver):
            if transport is not None:
                transport.reset()

    def close(self) -> None:
        """Close the connections that were created here."""
        for transport in (self._rest, self._driver):
            if transport is not None:
                transport.close()
