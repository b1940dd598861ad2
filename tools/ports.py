"""Ports of this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that is free now; another process may take it first."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def kept_port() -> Iterator[int]:
    """Keep a port for a server that comes and goes: nobody else gets it while that is down.

    The server must reuse addresses, as those of asyncio do.
    """
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
