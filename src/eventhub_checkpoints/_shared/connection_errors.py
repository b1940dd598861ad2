"""Why there is no connection to a server, by the error of any driver."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator

from eventhub_checkpoints._shared.error_messages import unmasked_message

LINKS = ("__cause__", "inner_exception", "reason", "os_error", "orig")
"""Attributes that hold an error's cause; not `__context__`, which may be an error of the caller.

Source: Python; azure-core, `AzureError`; urllib3, `MaxRetryError`; aiohttp, `ClientConnectorError`;
SQLAlchemy, `DBAPIError`.
"""
UNRESOLVED = (
    "failed to resolve host|could not translate host name|Name or service not known|"
    "nodename nor servname|getaddrinfo failed|No address associated with hostname|"
    "Temporary failure in name resolution"
)
REFUSED = (
    rf"Connection refused|Errno {errno.ECONNREFUSED}\]|Error {errno.ECONNREFUSED} connecting|"
    r"WinError 10061|0x0000274D"
)
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""Messages of libpq, redis-py, asyncio and azure-eventhub, whose errors do not always keep the
OSError."""


def why_unreached(error: BaseException) -> str | None:
    """Return why there is no connection, and what to check; None for any other error."""
    for cause in linked(error):
        if isinstance(cause, socket.gaierror) or re.search(UNRESOLVED, unmasked_message(cause)):
            return "the host's name cannot be resolved: check its spelling, and DNS"
        if isinstance(cause, ConnectionRefusedError) or re.search(REFUSED, unmasked_message(cause)):
            return "the connection was refused: check host and port, and that the server runs there"
    return None


def is_untrusted(error: BaseException) -> bool:
    """Return whether there is no connection because the server's certificate is not trusted."""
    return any(
        isinstance(cause, ssl.SSLCertVerificationError) or UNTRUSTED in unmasked_message(cause)
        for cause in linked(error)
    )


def innermost(error: BaseException) -> BaseException:
    """Return the innermost cause of a driver's error; the error itself if it has none."""
    *_, last = linked(error)
    return last


def linked(error: BaseException, links: tuple[str, ...] = LINKS) -> Iterator[BaseException]:
    """Yield the error and its causes, as its attributes name them."""
    seen: list[BaseException] = []
    cause: object = error
    while isinstance(cause, BaseException) and cause not in seen:
        yield cause
        seen.append(cause)
        causes = (*(getattr(cause, name, None) for name in links), *cause.args)
        cause = next((each for each in causes if isinstance(each, BaseException)), None)
