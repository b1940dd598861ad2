"""Stores over a file that processes share, and one that only a lock in memory guards."""

import fcntl
import pickle
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from sound import Sound, StallingRows, mutant


class FileRows(StallingRows):
    """Rows in a file: read before each step and written after it, under the lock of the file."""

    locks_file = True

    def __init__(self, folder: str = "") -> None:
        super().__init__()
        self._folder = folder or tempfile.mkdtemp(prefix="rows-")
        if not folder:
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._file = Path(self._folder, "rows")
        self._threads = threading.Lock()
        self._lock: Any = self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return type(self), (self._folder,)

    def __enter__(self) -> Self:
        self._threads.acquire()
        self._flock = Path(self._folder, "lock").open("w")
        if self.locks_file:
            fcntl.flock(self._flock, fcntl.LOCK_EX)
        self._rows = pickle.loads(self._file.read_bytes()) if self._file.exists() else {}
        return self

    def __exit__(self, *_: object) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as unfinished:
            unfinished.write(pickle.dumps(self._rows))
        Path(unfinished.name).replace(self._file)
        self._flock.close()
        self._threads.release()


class SoundOnFile(Sound):
    """A store without a fault that several processes can share."""

    rows_class = FileRows
    for_one_process = False


class RowsLockedInMemory(FileRows):
    """The rows of a file, each of which a lock in memory guards for the threads of one process."""

    locks_file = False

    def _table(self, kind: Any, scope: Any) -> Any:
        found = super()._table(kind, scope)
        # Nobody ends this wait: another process may read meanwhile.
        threading.Event().wait(0.0005)
        return found


RACES = (
    "one_of_several_processes_wins",
    "racing_processes_keep_the_highest_checkpoint",
    "a_paused_claim_has_one_winner",
    "a_paused_checkpoint_has_one_winner",
)


class RowsOfOneProcess(FileRows):
    """Rows in a file of their own in each process."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:  # type: ignore[override]
        return type(self), ()


@mutant(*RACES)
class KeepsToItsProcess(SoundOnFile):
    """Says that processes share it, and each has all to itself."""

    rows_class = RowsOfOneProcess


@mutant(*RACES)
class LocksInMemoryOnly(SoundOnFile):
    """One winner among threads; among processes, each is the only one that it knows of."""

    rows_class = RowsLockedInMemory
