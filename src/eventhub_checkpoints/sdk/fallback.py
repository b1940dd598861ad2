"""Why a fast path ends, and what the log says when the public API takes over."""

import logging
import threading
from collections import Counter

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.sdk.versions import TESTED, VERSION, is_known, is_tested, numbers

log = logging.getLogger("eventhub_checkpoints")


class FastPathError(ConfigurationError):
    """The fast path cannot be used, or cannot continue; the message gives the reason."""


class UnreadableFrameError(FastPathError):
    """A frame of the hub cannot be decoded."""


class StalledError(FastPathError):
    """A link of the fast path is open and makes no progress, although there is something to do."""


def changed(error: Exception) -> FastPathError:
    """Return the error for a private part of the client that exists but has changed."""
    return FastPathError(f"azure-eventhub {VERSION} has changed: {error}")


def check_version(version: str = VERSION) -> None:
    """Check that a fast path may be tried with this release, and say once if it is an untested one.

    Raises:
        FastPathError: it is older than the oldest tested one, or of another major version.
    """
    if not is_known(version):
        raise FastPathError(f"azure-eventhub {version} is not supported; install 5.12 to 5.x")
    note_version(version)


def note_version(version: str = VERSION) -> None:
    """Say once per process that the client's minor version is an untested one, if it is."""
    if is_tested(version):
        return
    major, minor = numbers(TESTED[-1])
    warn_once(
        log,
        f"azure-eventhub {version} is not tested with this release of eventhub-checkpoints, which "
        f"uses private parts of the client; {TESTED[0]} to {TESTED[-1]} are. If something does not "
        "work, look for a newer release of eventhub-checkpoints, or install "
        f"'azure-eventhub<{major}.{minor + 1}'",
    )


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


ADVICE = (
    "A connection may have died without an error. If this is said again and again, azure-eventhub "
    f"{VERSION} may work otherwise than the tested releases ({TESTED[0]} to {TESTED[-1]}): look "
    "for a newer release of eventhub-checkpoints, and until then use the public API from the "
    "start, with 'public' as receive_path and send_path (in Spark receivePath and sendPath)"
)

_stalls: Counter[str] = Counter()
_guard = threading.Lock()


def report_fallback(logger: logging.Logger, error: FastPathError, link: str, result: str) -> None:
    """Log why the public API is used and what follows.

    Each reason is logged once per process. A stall concerns one link: each is counted and logged.

    Args:
        logger: of the module that falls back.
        error: the reason.
        link: what it was for, such as `receiving`.
        result: the rest of the sentence.
    """
    if not isinstance(error, StalledError):
        warn_once(logger, f"{error}; {result}")
        return
    with _guard:
        _stalls[link] += 1
        count = _stalls[link]
    logger.warning(
        "%s; %s. Stalled links for %s in this process: %d. %s", error, result, link, count, ADVICE
    )
