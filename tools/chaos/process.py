"""Process of a worker, as its parent handles it."""

import os
import signal
import sys
from pathlib import Path

import chaos
import eventhub_checkpoints
from chaos.journal import Journal
from chaos.orders import Orders
from eventhub_checkpoints.cli.children import Child

END_SECONDS = 30.0
PATHS = [str(Path(one.__path__[0]).parent) for one in (eventhub_checkpoints, chaos)]
"""Gives workers the import path of the parent."""


class Worker:
    """Process of a worker, recorded by the parent.

    Attributes:
        has_begun: whether it was seen at work, so that it handles SIGTERM.
    """

    def __init__(self, orders: Orders, folder: Path) -> None:
        self.orders = orders
        self.has_begun = False
        self._journal = Journal(Path(orders.journal), orders.name)
        self._child = Child(
            [sys.executable, "-m", "chaos.worker", orders.to_json()],
            log=folder / f"{orders.name}.log",
            env={"PYTHONPATH": os.pathsep.join(PATHS)},
            name=orders.name,
        )

    def freeze(self) -> None:
        """Suspend it (SIGSTOP), as a paused machine would."""
        os.killpg(self._child.pid, signal.SIGSTOP)
        self._journal.write("frozen")

    def thaw(self) -> None:
        """Let it go on where it was."""
        self._journal.write("thawed")
        os.killpg(self._child.pid, signal.SIGCONT)

    def kill(self) -> str:
        """Kill it; return a description of the problem, if there is one."""
        died = self._child.poll()
        self._journal.write("kill")
        self._child.kill()
        return "" if died is None else f"it ended by itself with {died}: {self._child.tail()}"

    def end(self) -> str:
        """Stop it gracefully; return a description of the problem, if there is one."""
        died = self._child.poll()
        status = self._child.stop(END_SECONDS)
        self._journal.write("ended", number=status)
        if died is not None:
            return f"it ended by itself with {died}: {self._child.tail()}"
        if status == -signal.SIGTERM and not self.has_begun:
            return ""
        return f"SIGTERM ended it with {status}: {self._child.tail()}" if status else ""
