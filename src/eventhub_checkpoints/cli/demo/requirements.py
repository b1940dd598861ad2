"""What the demo needs besides the extra `cli`, asked for before anything is started."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from eventhub_checkpoints.cli.demo.storage import AZURITE
from eventhub_checkpoints.errors import CheckpointStoreError

DRIVERS = {
    "spark": ["pyspark", "pyarrow"],
    "sql": ["sqlalchemy"],
    "blob": ["azure.storage.blob"],
}
"""By the extra that installs them."""

DRIVERS_OF_AIO = {"sql": ["aiosqlite"], "blob": ["aiohttp"]}
OLDEST_JAVA = 17
"""Source: Spark 4.0, docs/index.md, "Downloading"."""


class CannotBeginError(CheckpointStoreError):
    """Something is missing; nothing was started."""


def check_requirements(store: str | None, consumer: str) -> None:
    """Say what is missing. A store that is given by its URL says so itself, later.

    Args:
        store: what `--store` names.
        consumer: the client that the consumers use.

    Raises:
        CannotBeginError: a Python package; or Java, or a Java that is new enough; or this is no
            POSIX system.
    """
    if os.name != "posix":
        raise CannotBeginError("the demo runs on Linux and macOS: it kills as they do")
    missing = missing_packages(store, consumer)
    if missing:
        packages = [package for of_extra in missing.values() for package in of_extra]
        raise CannotBeginError(
            f"the demo needs {' and '.join(packages)}: "
            f"python -m pip install 'eventhub-checkpoints[{','.join(missing)}]'"
        )
    version = java_version()
    if version is None or version < OLDEST_JAVA:
        found = "none was found" if version is None else f"Java {version} was found"
        raise CannotBeginError(
            f"the demo needs Java {OLDEST_JAVA} or newer for Spark, and {found}: install one, "
            "such as the package openjdk-17-jre-headless, or set JAVA_HOME"
        )


def missing_packages(store: str | None, consumer: str) -> dict[str, list[str]]:
    """What this run needs and does not find, by the extra that installs it."""
    extras = ["spark", *{None: ["sql"], AZURITE: ["blob"]}.get(store, [])]
    of_aio = DRIVERS_OF_AIO if consumer == "aio" else {}
    found = {
        extra: [
            module.replace(".", "-")
            for module in [*DRIVERS[extra], *of_aio.get(extra, [])]
            if not _is_there(module)
        ]
        for extra in extras
    }
    return {extra: packages for extra, packages in found.items() if packages}


def java_version() -> int | None:
    """The major version of the Java that Spark will use; None if there is none that runs."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin/java")) if home else shutil.which("java")
    if java is None:
        return None
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    # Until 8 it was called 1.8.
    found = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(found[1]) if found else None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False
