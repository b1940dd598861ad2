"""Requests to one container, without the driver."""

from collections.abc import Callable
from typing import Any

from azure.core.exceptions import HttpResponseError

from eventhub_checkpoints._shared._async import compat
from eventhub_checkpoints.stores.blob import protocol, rest
from eventhub_checkpoints.stores.blob._async.http import HttpConnections, get_token
from eventhub_checkpoints.stores.blob.protocol import Verdict
from eventhub_checkpoints.stores.blob.rest import Blob, ListParser, Request, Response, Token
from eventhub_checkpoints.stores.connections import PerProcessClient


class RestRequests:
    """Requests to one container, limited to the time that the current call has left.

    Args:
        container: builds the requests.
        connect: creates the connections; called again in a forked child or another event loop.
    """

    def __init__(self, container: rest.Container, connect: Callable[[], HttpConnections]) -> None:
        self._container = container
        self._connections = PerProcessClient(connect)
        self._tokens = rest.TokenCache()

    def begin_anew(self) -> None:
        """Create new connections."""
        self._connections.begin_anew()

    @property
    def address(self) -> str:
        """Return the container's URL, without a SAS."""
        return self._container.url

    async def create(
        self, name: str, metadata: dict[str, str], overwrite: bool = False
    ) -> str | Verdict:
        """Send Put Blob; return the new etag, or the reason for a failure."""
        request = self._container.create(name, metadata, overwrite)
        try:
            response = await self._send(request, 201)
        except HttpResponseError as error:
            return protocol.expected(error)
        return protocol.new_etag(response.headers)

    async def update(self, name: str, metadata: dict[str, str], etag: str | None) -> str | Verdict:
        """Send Set Blob Metadata, if the etag matches or is None; return as `create`."""
        try:
            response = await self._send(self._container.update(name, metadata, etag), 200)
        except HttpResponseError as error:
            reason = protocol.expected(error)
            is_unclear = reason is Verdict.LOST and protocol.may_be_absent(error)
            if is_unclear and await self.read(name) is None:
                return Verdict.ABSENT
            return reason
        return protocol.new_etag(response.headers)

    async def read(self, name: str) -> Blob | None:
        """Send Get Blob Properties; return None if the blob does not exist."""
        try:
            response = await self._send(self._container.read(name), 200)
        except HttpResponseError as error:
            if protocol.is_absent(error):
                return None
            raise
        return rest.properties(name, response)

    async def delete(self, name: str) -> bool:
        """Send Delete Blob; return whether the blob existed."""
        try:
            await self._send(self._container.delete(name), 202)
        except HttpResponseError as error:
            if protocol.expected(error) is not Verdict.ABSENT:
                raise
            return False
        return True

    async def list_blobs(self, prefix: str) -> tuple[list[Blob], float | None]:
        """List blobs with their metadata; also return the service's time at the last page."""
        parser, date = await self._list(prefix, one_level=False)
        return parser.blobs, protocol.server_time(date)

    async def list_below(self, prefix: str) -> list[str]:
        """List one level of the blobs' names: each prefix up to the next `/`."""
        parser, _ = await self._list(prefix, one_level=True)
        return parser.prefixes

    async def _list(self, prefix: str, one_level: bool) -> tuple[ListParser, str | None]:
        parser, marker = ListParser(), ""
        while True:
            response = await self._send(self._container.list(prefix, marker, one_level), 200)
            parser.begin_page()
            for start in range(0, len(response.body), rest.SLICE):
                parser.feed(response.body[start : start + rest.SLICE])
                await compat.sleep(0)
            marker = parser.end_page()
            if not marker:
                return parser, response.headers.get("Date")

    async def _send(self, request: Request, expected: int) -> Response:
        connections, authorization = self._connections.now, self._container.authorization
        if isinstance(authorization, Token):
            response = await self._send_with_token(request, authorization.credential)
        else:
            response = await connections.send(request, rest.authorized(request, authorization))
        return rest.checked(response, expected)

    async def _send_with_token(self, request: Request, credential: Any) -> Response:
        tokens = self._tokens
        while True:
            token = tokens.current
            if not token:
                token = tokens.keep(await get_token(credential, tokens.scope, **tokens.options))
            request.headers["Authorization"] = f"Bearer {token}"
            response = await self._connections.now.send(request, request.url)
            # After a 401 nothing was written, so the request may be repeated.
            if not tokens.follow(response):
                return response

    async def close(self) -> None:
        """Close the connections, unless they belong to the parent process."""
        if self._connections.is_of_this_process:
            await self._connections.now.close()
