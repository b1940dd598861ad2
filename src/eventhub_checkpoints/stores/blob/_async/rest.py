"""Requests to one container, without the driver."""

from collections.abc import Callable

from eventhub_checkpoints._shared._async import compat
from eventhub_checkpoints.stores.azure_storage._async.authorized import AuthorizedConnections
from eventhub_checkpoints.stores.azure_storage._async.http import HttpConnections
from eventhub_checkpoints.stores.azure_storage.authorization import Authorization
from eventhub_checkpoints.stores.azure_storage.messages import Refusal, Request
from eventhub_checkpoints.stores.blob import rest
from eventhub_checkpoints.stores.blob.protocol import new_etag
from eventhub_checkpoints.stores.blob.rest import Blob, Page, PageParser


class RestTransport(AuthorizedConnections):
    """Sends each request over connections of our own; a status that refuses it is returned.

    Args:
        container: builds the requests.
        authorization, connect: see `AuthorizedConnections`.
    """

    def __init__(
        self,
        container: rest.Container,
        authorization: Authorization,
        connect: Callable[[], HttpConnections],
    ) -> None:
        super().__init__(authorization, connect)
        self._container = container

    @property
    def address(self) -> str:
        """Return the container's URL, without a SAS."""
        return self._container.url

    async def create_container(self) -> Refusal | None:
        """Send Create Container."""
        answer = await self.send(self._container.create_container())
        return answer if isinstance(answer, Refusal) else None

    async def create(self, name: str, metadata: dict[str, str], overwrite: bool) -> str | Refusal:
        """Send Put Blob; return the new etag."""
        return await self._write(self._container.create(name, metadata, overwrite))

    async def update(self, name: str, metadata: dict[str, str], etag: str | None) -> str | Refusal:
        """Send Set Blob Metadata, if the etag matches or is None; return the new etag."""
        return await self._write(self._container.update(name, metadata, etag))

    async def _write(self, request: Request) -> str | Refusal:
        answer = await self.send(request)
        return answer if isinstance(answer, Refusal) else new_etag(answer.headers.get("ETag"))

    async def read(self, name: str) -> Blob | Refusal:
        """Send Get Blob Properties."""
        answer = await self.send(self._container.read(name))
        return answer if isinstance(answer, Refusal) else rest.properties(name, answer)

    async def download(self, name: str, length: int) -> bytes | Refusal:
        """Send Get Blob for the first bytes."""
        answer = await self.send(self._container.download(name, length))
        return answer if isinstance(answer, Refusal) else answer.body

    async def delete(self, name: str) -> Refusal | None:
        """Send Delete Blob."""
        answer = await self.send(self._container.delete(name))
        return answer if isinstance(answer, Refusal) else None

    async def page(self, prefix: str, marker: str, one_level: bool) -> Page | Refusal:
        """Send List Blobs for one page."""
        answer = await self.send(self._container.list(prefix, marker, one_level))
        if isinstance(answer, Refusal):
            return answer
        parser = PageParser()
        for start in range(0, len(answer.body), rest.SLICE):
            parser.feed(answer.body[start : start + rest.SLICE])
            await compat.sleep(0)
        return parser.close(answer.headers.get("Date"))
