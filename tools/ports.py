"""Ports of this machine."""

import socket


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that is free now; another process may take it first."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
