"""HTTP server of the pages."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from eventhub_checkpoints._shared.listening import listening_on

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Values of the header `Host`, without the port, of browsers on the same machine."""
GRACE_SECONDS = 2
"""Seconds in which running requests may end."""


def listen(host: str, port: int) -> socket.socket:
    """Open the port; 0 takes a free one.

    Raises:
        ConfigurationError: it is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with listening_on(host, port):
        return socket.create_server((host, port), family=family)


def names(host: str, more: Sequence[str]) -> list[str]:
    """Return the names under which the pages may be called.

    Args:
        host: address to listen on.
        more: names that the operator allows.
    """
    own = [] if host in ("0.0.0.0", "::") else [f"[{host}]" if ":" in host else host]
    return [*LOCAL_NAMES, *own, *more]


def url(opened: socket.socket, token: str) -> str:
    """Return the address that admits to the pages."""
    host, port = opened.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={token}"


@contextmanager
def serving(application: ASGIApp, opened: socket.socket) -> Iterator[None]:
    """Serve in a thread, where Uvicorn leaves the signals alone, until the end of the block."""
    configuration = uvicorn.Config(
        application,
        lifespan="off",
        # Uvicorn would log tracebacks, which may quote a credential; the pages log errors masked.
        log_level="critical",
        # The first request has the token in its URL.
        access_log=False,
        server_header=False,
        # A header of a client must not change what the checks of the host see.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = uvicorn.Server(configuration)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [opened]}, name="http", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(2 * GRACE_SECONDS)
