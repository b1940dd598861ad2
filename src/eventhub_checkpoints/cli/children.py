"""Child processes that do not outlive the program that started them.

Used by the demo and by the tests. POSIX only. Where `setpriv` can do it, the kernel kills a child
when its parent dies, however the parent dies; elsewhere only `stop` and `kill` end it.
"""

import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from eventhub_checkpoints.errors import CheckpointStoreError

POLL_SECONDS = 0.02
T = TypeVar("T")


class ChildError(CheckpointStoreError):
    """A child process that ended early or was not ready in time; carries the end of its log."""


class Child:
    """One running child process; leaving the `with` block stops it.

    It leads a process group of its own: Ctrl-C in the terminal does not reach it, and what it
    started itself ends with it. Start it from a thread that stays: the kernel counts the end of
    the starting thread as the parent's death.

    Args:
        command: program and arguments.
        log: file that takes standard output and standard error; emptied first.
        env: variables added to this process's own.
        cwd: working folder.
        name: what errors call it; the program's file name if not given.
        user: the account to run as, with its group, for servers that refuse to run as root.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        name: str | None = None,
        user: str | None = None,
    ) -> None:
        self.name = name or Path(command[0]).name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*_unless_orphaned(), *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
                user=user,
                group=user and pwd.getpwnam(user).pw_gid,
                extra_groups=user and [],
            )

    @property
    def pid(self) -> int:
        """The process id, which is its group's id too."""
        return self._process.pid

    def poll(self) -> int | None:
        """The exit status, negative for a signal; `None` while it runs."""
        return self._ended(within=0)

    def wait(self, seconds: float) -> int:
        """Wait until it has ended by itself; return its exit status.

        Raises:
            ChildError: it still runs after that many seconds.
        """
        if (status := self._ended(within=seconds)) is None:
            raise ChildError(f"{self.name} still runs after {seconds:g} s{self._log_ending()}")
        return status

    def wait_ready(self, predicate: Callable[[], T | None], seconds: float) -> T:
        """Ask until the predicate gives something true; return that.

        Raises:
            ChildError: the process ended first, or the seconds went by.
        """
        deadline = time.monotonic() + seconds
        while not (answer := predicate()):
            if (status := self.poll()) is not None:
                ended = f"{self.name} ended with status {status} before it was ready"
                raise ChildError(ended + self._log_ending())
            if time.monotonic() > deadline:
                raise ChildError(f"{self.name} not ready after {seconds:g} s{self._log_ending()}")
            time.sleep(POLL_SECONDS)
        return answer

    def stop(self, seconds: float = 5) -> int:
        """Ask its group to end, kill it after that many seconds; return the exit status."""
        if self.poll() is None:
            self._signal(signal.SIGTERM)
        return self.kill() if (status := self._ended(within=seconds)) is None else status

    def kill(self) -> int:
        """Kill its group at once, as `kill -9` does; return the exit status."""
        if self.poll() is None:
            self._signal(signal.SIGKILL)
        return self._process.wait()

    def _ended(self, *, within: float) -> int | None:
        if self._process.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(within)
                # Now, not later: once it is reaped, another process may get the group's number.
                self._signal(signal.SIGKILL)
        return self._process.returncode

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, number)

    def _log_ending(self) -> str:
        return f"; the end of {self.log}:\n{self.tail()}"

    def tail(self, lines: int = 20) -> str:
        """The last lines that it has printed."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free just now; another process may take it first."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _unless_orphaned() -> tuple[str, ...]:
    """The words before a command that make the kernel kill it when this process dies."""
    words = _asks_for_the_signal()
    return (*words, str(os.getpid())) if words else ()


# The signal comes for a death after it was asked for: who has another parent by then is too late.
_STILL_A_CHILD = 'test $PPID = $0 && exec "$@"'


@functools.cache
def _asks_for_the_signal() -> tuple[str, ...]:
    setpriv, shell = map(shutil.which, ("setpriv", "sh"))
    if setpriv is None or shell is None:
        return ()
    words = (setpriv, "--pdeathsig", "KILL", "--", shell, "-c", _STILL_A_CHILD)
    # Small builds of setpriv (busybox) lack the option.
    tried = subprocess.run([*words, str(os.getpid()), "true"], capture_output=True, check=False)
    return words if tried.returncode == 0 else ()
