"""What a consumer of many partitions keeps in memory, each store in a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

from benchmarks.measuring import BARE, OFFICIAL, OURS, Cost, Rounds
from benchmarks.operations import MANY, QUICK_MANY
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY

ROOT = Path(__file__).resolve().parent.parent
Urls = Callable[[], AbstractContextManager[dict[str, str]]]
"""Gives the URL of a new place on each backend, and of one for the official store."""


def consumers(open_urls: Urls, quick: bool, variant: str = "") -> Rounds:
    """Claim, list and checkpoint all partitions of a group; `variant` is `"--aio"` or empty."""
    words = ["--partitions", str(QUICK_MANY if quick else MANY), *([variant] if variant else [])]
    with open_urls() as urls:
        for number in count():
            group = ["--group", f"g{number}", *words]
            bare = cost_of_process(BARE, *group)
            costs = {f"{name}-{BARE}": bare for name in urls}
            for name, url in urls.items():
                if name == OFFICIAL:
                    by_key = "--url", url, "--credential", EMULATOR_KEY
                    costs[OFFICIAL] = cost_of_process(OFFICIAL, *by_key, *group)
                else:
                    costs[f"{name}-{OURS}"] = cost_of_process(OURS, "--url", url, *group)
            yield costs


def cost_of_process(*words: str) -> Cost:
    """The cost of one side in a new process."""
    command = [sys.executable, "-m", "benchmarks.memory_once", *words]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return Cost(*map(float, ran.stdout.split()))
