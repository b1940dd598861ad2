"""Which cores a tree of processes may use, and what it has used of them; Linux only."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
GONE = (FileNotFoundError, ProcessLookupError)
"""What a process that has just ended answers with."""


@contextmanager
def on_cores(cores: Set[int]) -> Iterator[None]:
    """Let this thread, and what it starts meanwhile, run on these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def answer_of(module: str, words: Sequence[str], cores: Set[int]) -> Any:
    """What a module prints as JSON that runs on these cores, in a process of its own."""
    with on_cores(cores):
        ran = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(ran.stdout)


def move(root: int, cores: Set[int]) -> None:
    """Have a process, and all that it has started, run on these cores from now on."""
    for process in (root, *descendants(root)):
        with suppress(*GONE):
            for thread in (PROCESSES / str(process) / "task").iterdir():
                with suppress(*GONE):
                    os.sched_setaffinity(int(thread.name), cores)


def descendants(root: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = {
        int(entry.name): found[1]
        for entry in PROCESSES.iterdir()
        if entry.name.isdigit() and (found := fields(int(entry.name)))
    }
    below = [root]
    for one in below:
        below += [process for process, parent in parents.items() if parent == one]
    return below[1:]


def used(root: int) -> float:
    """Seconds of processor time of a process and of all that it has started, ended ones too."""
    found = [fields(process) for process in (root, *descendants(root))]
    return sum(sum(each[11:15]) for each in found if each) / TICKS


def fields(process: int) -> list[int]:
    """The numbers of a process after its name; [] where it has ended."""
    try:
        text = (PROCESSES / str(process) / "stat").read_text()
    except GONE:
        return []
    # The name is in brackets, and may have brackets and blanks in it. A letter follows.
    return [0, *map(int, text.rpartition(")")[2].split()[1:])]
