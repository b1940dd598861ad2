"""Errors that end a fast path, and what the log says when the public API takes over."""

import logging
import threading
from collections import Counter

from eventhub_checkpoints.errors import ConfigurationError


class FastPathError(ConfigurationError):
    """The fast path cannot be used, or cannot continue; the message gives the reason."""


class UnreadableFrameError(FastPathError):
    """A frame of the hub cannot be decoded."""


class StalledError(FastPathError):
    """A link of the fast path is open and makes no progress, although there is something to do."""


_said: set[str] = set()


def warn_once(logger: logging.Logger, sentence: str) -> None:
    """Log a sentence as a warning, once per process.

    Args:
        logger: of the module that notices it.
        sentence: what was noticed, and what follows.
    """
    if sentence not in _said:
        _said.add(sentence)
        logger.warning("%s", sentence)


_stalls: Counter[str] = Counter()
_guard = threading.Lock()


def report_fallback(logger: logging.Logger, error: FastPathError, kind: str, result: str) -> None:
    """Log why the public API is used and what follows.

    Each reason is logged once per process. A stall is logged each time, because it concerns one
    link, and counted.

    Args:
        logger: of the module that falls back.
        error: the reason.
        kind: what the link was for, such as `receive`.
        result: the rest of the sentence.
    """
    if not isinstance(error, StalledError):
        warn_once(logger, f"{error}; {result}")
        return
    with _guard:
        _stalls[kind] += 1
        count = _stalls[kind]
    logger.warning("%s; %s. Stalled links of this kind in this process: %d", error, result, count)


def stalls() -> dict[str, int]:
    """Return how many links of each kind have stalled in this process."""
    with _guard:
        return dict(_stalls)
