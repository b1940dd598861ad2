"""Check that the fast path supports the installed client, and the error if it does not."""

import re

import azure.eventhub

from eventhub_checkpoints.errors import ConfigurationError

VERSION = azure.eventhub.__version__
OLDEST, NEXT_MAJOR = (5, 12), (6, 0)


class FastPathError(ConfigurationError):
    """The fast path cannot be used, or cannot continue; the message gives the reason."""


class UnreadableFrameError(FastPathError):
    """A frame of the hub cannot be decoded."""


def check_version(version: str = VERSION) -> None:
    """Check that the client's major version is a supported one.

    Raises:
        FastPathError: it is not.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if not found or not OLDEST <= (int(found[1]), int(found[2])) < NEXT_MAJOR:
        raise FastPathError(f"azure-eventhub {version} is not known; 5.12 to 5.x are")


def changed(error: Exception) -> FastPathError:
    """Return the error for a private part of the client that exists but has changed."""
    return FastPathError(f"azure-eventhub {VERSION} has changed: {error}")
