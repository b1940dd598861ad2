"""Connections of an asynchronous store to Azure Storage."""

import ssl
from inspect import isawaitable
from typing import Any

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from yarl import URL

from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints._shared.paths import is_folder
from eventhub_checkpoints.stores.azure_storage.connection_options import (
    CONNECT_SECONDS,
    ConnectionOptions,
)
from eventhub_checkpoints.stores.azure_storage.messages import Request, RequestLog, Response


class HttpConnections:
    """Connections to one server; each request is sent once."""

    def __init__(self, options: ConnectionOptions, size: int) -> None:
        self._options = options
        self._size = size
        self._session: ClientSession | None = None

    async def send(self, request: Request, url: str) -> Response:
        """Send a request, within the time that the current call has left.

        Args:
            request: what is sent.
            url: its URL, with the credential if that is a SAS.

        Raises:
            ServiceRequestError: there is no connection, so nothing was sent.
            ServiceResponseError: no response arrived.
        """
        left = bound()
        log = RequestLog.of(request)
        session = self._session or self._open()
        try:
            async with session.request(
                request.method,
                URL(url, encoded=True),
                data=request.body or None,
                headers=request.headers,
                skip_auto_headers=("Content-Type",),  # it would not be signed
                allow_redirects=False,
                proxy=self._options.proxy,
                timeout=ClientTimeout(sock_connect=min(left, CONNECT_SECONDS), sock_read=left),
            ) as received:
                body = await received.read()
        except ClientConnectorError as error:
            raise ServiceRequestError(error, error=error) from error
        except (ClientError, TimeoutError) as error:
            raise ServiceResponseError(error, error=error) from error
        response = Response(received.status, received.reason or "", received.headers, body)
        if log is not None:
            log.end(response)
        return response

    def _open(self) -> ClientSession:
        options = self._options
        trusted: ssl.SSLContext | bool = options.authority is not False
        if isinstance(options.authority, str) or (trusted and options.certificate):
            trusted = ssl.create_default_context(**trusted_files(options.authority))
            if options.certificate:
                trusted.load_cert_chain(*options.certificate)
        self._session = session = ClientSession(
            connector=TCPConnector(ssl=trusted, limit=self._size), cookie_jar=DummyCookieJar()
        )
        # When a kept-alive connection ends without a response, aiohttp resends a PUT on its own. A
        # claim that was carried out would then conflict with itself. There is no public option.
        # Source: aiohttp 3.14, `client.py`, `ClientSession._request`.
        session._retry_connection = False
        return session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def trusted_files(authority: str | bool) -> dict[str, Any]:
    """Return the file or directory of trusted certificates, as the ssl module takes it."""
    if not isinstance(authority, str):
        return {}
    return {"capath" if is_folder(authority) else "cafile": authority}


def check_credential(credential: object) -> None:
    """Accept a credential of either kind: the driver awaits a token if necessary."""


async def get_token(credential: Any, scope: str, **options: str) -> Any:
    """Return a token of a credential of either kind."""
    token = credential.get_token(scope, **options)
    return await token if isawaitable(token) else token
