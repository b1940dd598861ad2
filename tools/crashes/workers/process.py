"""Process of a worker, as its parent handles it."""

import os
import signal
import time
from pathlib import Path

from crashes.workers.journal import Journal
from crashes.workers.nursery import SHOW_STACKS, Nursery
from crashes.workers.orders import Orders

END_SECONDS = 30.0
STACKS_SECONDS = 1.0
POLL_SECONDS = 0.02


class Worker:
    """Process of a worker, recorded by the parent.

    Attributes:
        has_begun: whether it was seen at work, so that it handles SIGTERM.
    """

    def __init__(self, orders: Orders, folder: Path, nursery: Nursery) -> None:
        self.orders = orders
        self.has_begun = False
        self._journal = Journal(Path(orders.journal), orders.name)
        self._log = folder / f"{orders.name}.log"
        self._nursery = nursery
        self._pid = nursery.start(orders.to_json(), self._log)
        self._status: int | None = None

    def freeze(self) -> None:
        """Suspend it (SIGSTOP), as a paused machine would."""
        self._signal(signal.SIGSTOP)
        self._journal.write("frozen")

    def thaw(self) -> None:
        """Let it go on where it was."""
        self._journal.write("thawed")
        self._signal(signal.SIGCONT)

    def kill(self) -> str:
        """Kill it; return a description of the problem, if there is one."""
        died = self.ended()
        self._journal.write("kill")
        self._kill()
        return "" if died is None else f"it ended by itself with {died}: {self._tail()}"

    def end(self) -> str:
        """Stop it gracefully; return a description of the problem, if there is one."""
        died = self.ended()
        self._signal(signal.SIGTERM)
        status = self._wait(END_SECONDS)
        if status is None:
            self._signal(SHOW_STACKS)
            status = self._wait(STACKS_SECONDS)
        if status is None:
            status = self._kill()
        self._journal.write("ended", number=status)
        if died is not None:
            return f"it ended by itself with {died}: {self._tail()}"
        if status == -signal.SIGTERM and not self.has_begun:
            return ""
        return f"SIGTERM ended it with {status}: {self._tail()}" if status else ""

    def ended(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        if self._status is None:
            self._status = self._nursery.poll(self._pid)
        return self._status

    def _wait(self, seconds: float) -> int | None:
        end = time.monotonic() + seconds
        while self.ended() is None and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        return self._status

    def _kill(self) -> int:
        self._signal(signal.SIGKILL)
        while (status := self.ended()) is None:
            time.sleep(POLL_SECONDS)
        return status

    def _signal(self, number: int) -> None:
        if self.ended() is None:
            os.kill(self._pid, number)

    def _tail(self, lines: int = 60) -> str:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
