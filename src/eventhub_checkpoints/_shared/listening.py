"""Addresses on which a command listens."""

from collections.abc import Iterator
from contextlib import contextmanager

from eventhub_checkpoints._shared.secrets import without_secret
from eventhub_checkpoints._shared.settings import require_text
from eventhub_checkpoints.errors import ConfigurationError

EXPECTED = "an address to listen on, such as 127.0.0.1, or 0.0.0.0 for every interface"


@contextmanager
def listening_on(host: str, port: int) -> Iterator[None]:
    """Refuse an address that cannot be opened in this block.

    Raises:
        ConfigurationError: the address is not available, or it is empty: sockets would then listen
            on every interface. The message names the options `--host` and `--port`.
    """
    require_text("--host", host, EXPECTED)
    try:
        yield
    except (OSError, TypeError, UnicodeError) as failure:
        reason = getattr(failure, "strerror", None) or "this is no address"
        reason = reason.partition(" (while")[0]  # `create_server` repeats the address in it
        raise not_available(host, port, f" ({reason})") from None


def not_available(
    host: str, port: int, reason: str = "", *, option: str = "--port"
) -> ConfigurationError:
    """Return the error for an address that cannot be opened.

    Args:
        host: address to listen on.
        port: port to listen on.
        reason: why, in parentheses after a space; `""` if it is not known.
        option: that names the port.
    """
    return ConfigurationError(
        f"port {port} of {without_secret(host)} is not available{reason}; choose another one with "
        f"{option}, or another address with --host"
    )
