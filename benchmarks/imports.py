"""What it costs a program to import a store: time from nothing, and memory."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import count

from benchmarks.measuring import BARE, OFFICIAL, OURS, Cost, Round, Rounds, turned

PROGRAM = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import {modules}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
from pathlib import Path
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
print(cpu, wall, *[1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")])
"""
TURNS, QUICK_TURNS = 5, 1

MEMORY = {OURS: "eventhub_checkpoints.memory", BARE: "azure.eventhub"}
MEMORY_AIO = {OURS: "eventhub_checkpoints.aio.memory", BARE: "azure.eventhub.aio"}
BLOB = {
    OURS: "eventhub_checkpoints.blob",
    OFFICIAL: "azure.eventhub.extensions.checkpointstoreblob",
    BARE: "azure.eventhub, azure.storage.blob",
}
BLOB_AIO = {
    OURS: "eventhub_checkpoints.aio.blob",
    OFFICIAL: "azure.eventhub.extensions.checkpointstoreblobaio",
    BARE: "azure.eventhub.aio, azure.storage.blob.aio",
}


def importing(modules: Mapping[str, str], quick: bool) -> Rounds:
    """Import the modules of each side, every time in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        for each in modules.values():
            cost_of_import(each, cache)  # compiles them
        for number in count():
            turns = range(number, number + (QUICK_TURNS if quick else TURNS))
            yield least([one_turn(modules, turn, cache) for turn in turns])


def one_turn(modules: Mapping[str, str], turn: int, cache: str) -> Round:
    """Each side once."""
    return {side: cost_of_import(modules[side], cache) for side in turned([*modules], turn)}


def cost_of_import(modules: str, cache: str) -> Cost:
    """The cost of importing them in a new process.

    It reads no settings of this user or shell, and all bytecode from the same place: a package
    whose bytecode may not be written beside it would be compiled each time.
    """
    command = [sys.executable, "-I", "-X", f"pycache_prefix={cache}", "-c"]
    ran = subprocess.run(
        [*command, PROGRAM.format(modules=modules)], capture_output=True, text=True, check=True
    )
    cpu, wall, *memory = map(float, ran.stdout.split())
    return Cost(cpu, wall, *memory)


def least(turns: list[Round]) -> Round:
    """The least of each side: the work is the same each time, and all else is disturbance."""
    return {
        side: Cost(
            min(turn[side].cpu for turn in turns),
            min(turn[side].wall for turn in turns),
            min((m for turn in turns if (m := turn[side].memory) is not None), default=None),
        )
        for side in turns[0]
    }
