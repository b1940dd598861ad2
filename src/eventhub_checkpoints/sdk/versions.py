"""Releases of azure-eventhub: those that the tests ran with, and what is said of others."""

import logging
import re

import azure.eventhub

from eventhub_checkpoints.sdk.fallback import FastPathError, warn_once

log = logging.getLogger("eventhub_checkpoints")

VERSION = azure.eventhub.__version__

TESTED = ("5.12.0", "5.15.1")
"""Oldest and newest release that the tests ran with. The oldest is the one of `tox -e min`, and the
smallest that pyproject.toml allows; the newest is the one that `tox -e py` installs.
"""


def numbers(version: str) -> tuple[int, int]:
    """Return the major and the minor number of a release; (0, 0) if it has none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def changed(error: Exception) -> FastPathError:
    """Return the error for a private part of the client that exists but has changed."""
    return FastPathError(f"azure-eventhub {VERSION} has changed: {error}")


def check_version(version: str = VERSION) -> None:
    """Check that a fast path may be tried with this release; say once if it is an untested one.

    Raises:
        FastPathError: it is older than the oldest tested one, or of another major version.
    """
    oldest = numbers(TESTED[0])
    if not oldest <= numbers(version) < (oldest[0] + 1, 0):
        raise FastPathError(f"azure-eventhub {version} is not known; 5.12 to 5.x are")
    note_version(version)


def note_version(version: str = VERSION) -> None:
    """Say once per process that the client's minor version is an untested one, if it is."""
    newest = numbers(TESTED[-1])
    if not numbers(TESTED[0]) <= numbers(version) <= newest:
        warn_once(
            log,
            f"azure-eventhub {version} is not tested with this release of eventhub-checkpoints, "
            f"which uses private parts of the client; {TESTED[0]} to {TESTED[-1]} are. If it "
            "misbehaves, look for a newer release of eventhub-checkpoints, or install "
            f"'azure-eventhub<{newest[0]}.{newest[1] + 1}'",
        )
