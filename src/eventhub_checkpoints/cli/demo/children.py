"""Child processes that do not outlive the program that started them.

POSIX only. If `setpriv` supports it, the kernel kills a child when its parent dies, however the
parent dies; otherwise only `stop` and `kill` end it.
"""

import functools
import os
import pwd
import shutil
import signal
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
    """Raised if a child process exits early or is not ready in time; has the end of its log."""


class Child:
    """Running child process; leaving the `with` block stops it.

    It leads a new process group: Ctrl-C in the terminal does not reach it, and its own children end
    with it. Start it from a long-lived thread: the kernel treats the end of the starting thread as
    the parent's death.

    Args:
        command: program and arguments.
        log: file for standard output and standard error; truncated first.
        env: variables added to this process's environment.
        cwd: working directory.
        name: its name in errors; default: the program's file name.
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
        """Process id, which is also the id of its group."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; `None` while it runs."""
        return self._ended(within=0)

    def wait(self, seconds: float) -> int:
        """Wait until it exits by itself; return its exit status.

        Raises:
            ChildError: it is still running after that many seconds.
        """
        if (status := self._ended(within=seconds)) is None:
            raise ChildError(f"{self.name} still runs after {seconds:g} s{self._log_ending()}")
        return status

    def wait_ready(self, predicate: Callable[[], T | None], seconds: float) -> T:
        """Poll until the predicate returns a true value; return that value.

        Raises:
            ChildError: the process exited first, or the time is over.
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
        """Send SIGTERM to its group, kill it after that many seconds; return the exit status."""
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
                # Immediately, because another process may get the group id of a reaped process.
                self._signal(signal.SIGKILL)
        return self._process.returncode

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, number)

    def _log_ending(self) -> str:
        return f"; the end of {self.log}:\n{self.tail()}"

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of its output."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _unless_orphaned() -> tuple[str, ...]:
    """Return a command prefix that makes the kernel kill the command when this process dies."""
    words = _asks_for_the_signal()
    return (*words, str(os.getpid())) if words else ()


# The kernel sends the signal only if the parent dies after the request, so the shell checks that
# its parent has not died before.
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
