"""Processes that run Spark: each leads a group of its own, with its Java VM and Python workers."""

import os
import sys
from pathlib import Path

import eventhub_checkpoints
from eventhub_checkpoints.cli.demo.children import Child

SOURCES, TOOLS = (str(Path(one).parents[1]) for one in (eventhub_checkpoints.__file__, __file__))


def driver(module: str, *arguments: str | Path, log: Path) -> Child:
    """Start a module of these tools as a program; it leaves its files beside its log."""
    path = [SOURCES, TOOLS, os.environ.get("PYTHONPATH", "")]
    return Child(
        [sys.executable, "-m", module, *arguments],
        log=log,
        env={"PYTHONPATH": os.pathsep.join(filter(None, path)), "TMPDIR": str(log.parent)},
        name=module,
    )
