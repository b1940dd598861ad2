"""Causes of connection failures, in the errors of any driver."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator

LINKS = ("__cause__", "inner_exception", "reason", "os_error", "orig")
"""Attributes that hold an error's cause; not `__context__`, which may be an error of the caller.

Source: Python; azure-core, `AzureError`; urllib3, `MaxRetryError`; aiohttp, `ClientConnectorError`;
SQLAlchemy, `DBAPIError`.
"""
UNRESOLVED = re.compile(
    "failed to resolve host|could not translate host name|Name or service not known|"
    "nodename nor servname|getaddrinfo failed|No address associated with hostname|"
    "Temporary failure in name resolution"
)
REFUSED = re.compile(
    rf"Connection refused|Errno {errno.ECONNREFUSED}\]|Error {errno.ECONNREFUSED} connecting|"
    r"WinError 10061|0x0000274D"
)
"""Messages of libpq, redis-py and asyncio, whose errors do not always keep the OSError."""


def why_unreached(error: BaseException) -> str | None:
    """Return why there is no connection, and what to check; None for any other error."""
    for one in linked(error):
        if isinstance(one, socket.gaierror) or UNRESOLVED.search(str(one)):
            return "the host's name cannot be resolved: check its spelling, and DNS"
        if isinstance(one, ConnectionRefusedError) or REFUSED.search(str(one)):
            return "the connection was refused: check host and port, and that the server runs there"
    return None


def is_untrusted(error: BaseException) -> bool:
    """Return whether there is no connection because the server's certificate is not trusted."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in linked(error))


def innermost(error: BaseException) -> BaseException:
    """Return the innermost cause of a driver's error; the error itself if it has none."""
    *_, last = linked(error)
    return last


def linked(error: BaseException, links: tuple[str, ...] = LINKS) -> Iterator[BaseException]:
    """Yield the error and its causes, as its attributes name them."""
    seen: list[BaseException] = []
    following: object = error
    while isinstance(following, BaseException) and following not in seen:
        yield following
        seen.append(following)
        found = (getattr(following, name, None) for name in links)
        args = (one for one in following.args if isinstance(one, BaseException))
        following = next((one for one in (*found, *args) if isinstance(one, BaseException)), None)
