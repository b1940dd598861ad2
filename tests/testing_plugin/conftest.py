"""Runs of pytest in a process of their own, as a user's project starts them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import pytest_eventhub_checkpoints as plugin

SOURCES = Path(plugin.__file__).parent
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
"""
REPORTING = """
import gc, json, os, sys, threading
from contextlib import suppress
from pathlib import Path

def opened():
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if not target.startswith(("pipe:", "/dev/")):
                yield target.partition(":")[0]

def state():
    gc.collect()
    return {
        "threads": sorted(each.name for each in threading.enumerate()),
        "files": sorted(opened()) if os.path.exists("/proc/self/fd") else [],
        "imported": sorted({"azure", "eventhub_checkpoints"} & {*sys.modules}),
    }

def pytest_collection_finish(session):
    session.before = state()

def pytest_sessionfinish(session):
    # Of xdist, the process that only hands tests out has collected none.
    if getattr(session, "items", None):
        states = {"before": session.before, "after": state()}
        Path(f"state-{os.getpid()}.json").write_text(json.dumps(states))
"""


@dataclass(frozen=True)
class Ran:
    """A run that has ended: its status, its output, and what its processes had open."""

    status: int
    output: str
    folder: Path

    def states(self) -> list[dict[str, dict[str, list[str]]]]:
        """What each process that ran tests had open and imported before and after them."""
        return [json.loads(file.read_text()) for file in self.folder.glob("state-*.json")]


def run(folder: Path, files: dict[str, str], *words: str) -> Ran:
    """Run pytest, as strict as it can be, in a folder with these files and no other settings."""
    for name, text in {"pytest.ini": INI, "conftest.py": REPORTING, **files}.items():
        (folder / name).write_text(text)
    # From a checkout, the plugin is not registered.
    is_installed = bool(entry_points(group="pytest11", name=plugin.__name__))
    command = [sys.executable, "-m", "pytest", "-W", "error", "--strict-markers", "-ra"]
    command += [] if is_installed else ["-p", plugin.__name__]
    paths = [str(SOURCES), *filter(None, map(os.path.abspath, sys.path))]
    ended = subprocess.run(
        [*command, "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Ran(ended.returncode, ended.stdout, folder)


@pytest.fixture
def run_pytest(tmp_path: Path) -> Callable[..., Ran]:
    """Run pytest on files: `run_pytest({"test_it.py": text}, "-n2")`."""
    return lambda files, *words: run(tmp_path, files, *words)
