"""Stores that do well in the process that certifies them, and not in the processes that race."""

import os
import threading
from multiprocessing import parent_process
from typing import Any

from mutants_of_processes import SoundOnFile


def hangs_elsewhere(rows: Any) -> Any:
    """Open a store; in another process never."""
    if parent_process() is not None:
        threading.Event().wait()
    return SoundOnFile(rows)


def fails_elsewhere(rows: Any) -> Any:
    """Open a store; in another process fail."""
    if parent_process() is not None:
        raise RuntimeError("no store\nhere")
    return SoundOnFile(rows)


def dies_elsewhere(rows: Any) -> Any:
    """Open a store; another process ends at once."""
    if parent_process() is not None:
        os._exit(7)
    return SoundOnFile(rows)


class HangsInTheRace(SoundOnFile):
    """Answers until it is to race."""

    def claim_ownership(self, *args: Any, **kwargs: Any) -> Any:
        threading.Event().wait()


class DiesInTheRace(SoundOnFile):
    """Ends its process when it is to race."""

    def claim_ownership(self, *args: Any, **kwargs: Any) -> Any:
        os._exit(7)


class FailsInTheRace(SoundOnFile):
    """Raises what a driver would."""

    def claim_ownership(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError("the backend\nis away")
