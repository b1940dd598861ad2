"""Releases of azure-eventhub: the installed one, and those that the tests ran with."""

import re

import azure.eventhub

VERSION = azure.eventhub.__version__

TESTED = ("5.12.0", "5.15.1")
"""Oldest and newest release that the tests ran with. The oldest is that of `tox -e min`, and the
smallest that pyproject.toml allows; the newest is the one that `tox -e py` installs.
"""


def numbers(version: str) -> tuple[int, int]:
    """Return the major and the minor number of a release; (0, 0) if it has none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def is_known(version: str) -> bool:
    """Return whether the major version is the tested one, and the release not too old."""
    oldest = numbers(TESTED[0])
    return oldest <= numbers(version) < (oldest[0] + 1, 0)


def is_tested(version: str) -> bool:
    """Return whether the minor version is one of those between the oldest and the newest tested."""
    return numbers(TESTED[0]) <= numbers(version) <= numbers(TESTED[-1])
