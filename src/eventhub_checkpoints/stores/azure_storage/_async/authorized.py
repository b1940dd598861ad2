"""Connections to one server, over which requests are sent with a credential."""

from collections.abc import Callable
from typing import Any

from eventhub_checkpoints.stores.azure_storage._async.http import HttpConnections, get_token
from eventhub_checkpoints.stores.azure_storage.authorization import (
    Authorization,
    Token,
    TokenCache,
    authorized,
)
from eventhub_checkpoints.stores.azure_storage.messages import Refusal, Request, Response
from eventhub_checkpoints.stores.connections import PerProcessClient


class AuthorizedConnections:
    """Connections to one server, and how requests to it are authorised.

    Args:
        authorization: key, SAS or source of tokens; None for what is public.
        connect: creates the connections; called again in a forked child or another event loop.
    """

    def __init__(
        self, authorization: Authorization, connect: Callable[[], HttpConnections]
    ) -> None:
        self._authorization = authorization
        self._connections = PerProcessClient(connect)
        self._tokens = TokenCache()

    def reset(self) -> None:
        """Create new connections."""
        self._connections.reset()

    async def send(self, request: Request) -> Response | Refusal:
        """Send a request once, within the time that the current call has left.

        Raises:
            ServiceRequestError: there is no connection, so nothing was sent.
            ServiceResponseError: no response arrived.
            ClientAuthenticationError: there is no token, or the key cannot sign.
        """
        connections, authorization = self._connections.now, self._authorization
        if isinstance(authorization, Token):
            response = await self._send_with_token(request, authorization.credential)
        else:
            response = await connections.send(request, authorized(request, authorization))
        if response.status_code != request.expected:
            return Refusal.of(request, response)
        return response

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
