"""Whether the fast path knows the official client, and the error that says it does not."""

import re

import azure.eventhub

from eventhub_checkpoints.errors import ConfigurationError

VERSION = azure.eventhub.__version__
OLDEST, NEXT_MAJOR = (5, 12), (6, 0)


class FastPathError(ConfigurationError):
    """The fast path cannot be taken, or cannot go on: says why."""


class UnreadableFrameError(FastPathError):
    """A frame of the hub cannot be decoded."""


def check_version(version: str = VERSION) -> None:
    """See that the client is of the major version whose parts are known.

    Raises:
        FastPathError: it is not.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if not found or not OLDEST <= (int(found[1]), int(found[2])) < NEXT_MAJOR:
        raise FastPathError(f"azure-eventhub {version} is not known; 5.12 to 5.x are")


def changed(error: Exception) -> FastPathError:
    """A part is there and is not what it was."""
    return FastPathError(f"azure-eventhub {VERSION} has changed: {error}")
