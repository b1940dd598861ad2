"""Code that runs in a forked child, and whether a process still runs."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from waiting import LIMIT


def in_a_child(code: Callable[[], object]) -> int:
    """The exit status of a forked process that runs the code: 0, unless it raises or returns False.

    A child that hangs is killed.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(int(LIMIT))
            status = 2 if code() is False else 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_running(process_id: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    with suppress(FileNotFoundError, ProcessLookupError):  # also while its file is read
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
