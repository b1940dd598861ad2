# Not derived: edit this file and its async twin together.
"""Connections of a synchronous store to Azure Storage."""

import os
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import certifi
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from urllib3 import (
    BaseHTTPResponse,
    HTTPConnectionPool,
    HTTPSConnectionPool,
    PoolManager,
    ProxyManager,
    Timeout,
    make_headers,
)
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError
from urllib3.util import parse_url

from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.azure_storage.connection_options import (
    CONNECT_SECONDS,
    ConnectionOptions,
)
from eventhub_checkpoints.stores.azure_storage.messages import Request, RequestLog, Response

SAS_HEADER = "eventhub-checkpoints-sas"
"""Carries a SAS through a pool to its connection, which sends it as a part of the URL."""


class SasConnection(HTTPConnection):
    """Connection that adds the SAS to the URL of a request.

    urllib3's pools write the URL of every request to the log, at DEBUG.
    """

    def request(
        self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any
    ) -> None:
        """Send a request; the value of `SAS_HEADER` becomes the end of its URL."""
        if headers and SAS_HEADER in headers:
            headers = dict(headers)
            url += headers.pop(SAS_HEADER)
        super().request(method, url, body, headers, **options)


class TlsSasConnection(SasConnection, HTTPSConnection):
    """The same, over TLS."""


class SasPool(HTTPConnectionPool):
    """Pool of such connections."""

    ConnectionCls = SasConnection


class TlsSasPool(HTTPSConnectionPool):
    """Pool of such connections, over TLS."""

    ConnectionCls = TlsSasConnection


SAS_POOLS = {"http": SasPool, "https": TlsSasPool}


class HttpConnections:
    """Connections to one server; each request is sent once."""

    def __init__(self, options: ConnectionOptions, size: int) -> None:
        arguments: dict[str, Any] = {"maxsize": size, **tls_arguments(options)}
        if options.proxy:
            auth = unquote(parse_url(options.proxy).auth or "")
            headers = make_headers(proxy_basic_auth=auth or None)
            arguments |= {"proxy_url": options.proxy, "proxy_headers": headers}
        self._pools = ProxyManager(**arguments) if options.proxy else PoolManager(**arguments)
        self._pools.pool_classes_by_scheme = SAS_POOLS
        self._server = "" if options.proxy else options.server
        self._start = len(self._server)
        self._open()

    def _open(self) -> None:
        self._urlopen: Any = self._pools.urlopen
        if self._server:
            # The manager would parse the URL of each request to find this pool.
            self._pool = self._pools.connection_from_url(self._server)
            self._urlopen = self._pool.urlopen

    def send(self, request: Request, url: str) -> Response:
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
        sas = url[len(request.url) :]
        try:
            received: BaseHTTPResponse = self._urlopen(
                request.method,
                request.url[self._start :],
                body=request.body or None,
                headers={**request.headers, SAS_HEADER: sas} if sas else request.headers,
                redirect=False,
                retries=False,
                timeout=Timeout(connect=min(left, CONNECT_SECONDS), read=left, total=left),
            )
        except (NewConnectionError, ConnectTimeoutError, ProxyError) as error:
            raise ServiceRequestError(error, error=error) from error
        except HTTPError as error:
            raise ServiceResponseError(error, error=error) from error
        headers, reason = received.headers, received.reason or ""
        response = Response(received.status, reason, headers, received.data)
        if log is not None:
            log.end(response)
        return response

    def close(self) -> None:
        """Close the connections; a late request opens one of its own."""
        # The manager only forgets its pools, and this one is referred to here.
        if self._server:
            self._pool.close()
        self._pools.clear()
        self._open()


def tls_arguments(options: ConnectionOptions) -> dict[str, Any]:
    """Return how certificates are verified, as urllib3 takes it.

    The defaults are those of requests, which the driver uses.
    """
    if options.authority is False:
        return {"cert_reqs": "CERT_NONE"}
    authority = options.authority
    if not isinstance(authority, str):
        names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") if options.use_environment else ()
        paths = [os.environ[name] for name in names if os.environ.get(name)]
        authority = paths[0] if paths else certifi.where()
    place = "ca_cert_dir" if Path(authority).is_dir() else "ca_certs"
    files = zip(("cert_file", "key_file"), options.certificate, strict=False)
    return {"cert_reqs": "CERT_REQUIRED", place: authority, **dict(files)}


def check_credential(credential: object) -> None:
    """Refuse an asynchronous credential: the driver would use its coroutine as a token.

    Raises:
        ConfigurationError: the credential is asynchronous.
    """
    if iscoroutinefunction(getattr(credential, "get_token", None)):
        raise ConfigurationError(
            f"credential is a {kind_of(credential)}, which is asynchronous; expected one of "
            "azure.identity, not of azure.identity.aio"
        )


def get_token(credential: Any, scope: str, **options: str) -> Any:
    """Return a token of a credential."""
    return credential.get_token(scope, **options)
