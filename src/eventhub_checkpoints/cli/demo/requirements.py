"""What the demo needs besides the extra `cli`, asked for before anything is started."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from eventhub_checkpoints.errors import ConfigurationError, MissingDriverError

DRIVERS = {
    "azure.storage.blob": "azure-storage-blob",
    "aiohttp": "aiohttp",
    "pyspark": "pyspark",
    "pyarrow": "pyarrow",
}
OLDEST_JAVA = 17
"""Source: Spark 4.0, docs/index.md, "Downloading"."""


def check_requirements() -> None:
    """Say what is missing.

    Raises:
        MissingDriverError: a Python package.
        ConfigurationError: Java, or a Java that is new enough; or this is no POSIX system.
    """
    if os.name != "posix":
        raise ConfigurationError("the demo runs on Linux and macOS: it kills as they do")
    missing = [package for module, package in DRIVERS.items() if not _is_there(module)]
    if missing:
        raise MissingDriverError(
            f"the demo needs {' and '.join(missing)}: "
            "python -m pip install 'eventhub-checkpoints[all]'"
        )
    version = java_version()
    if version is None or version < OLDEST_JAVA:
        found = "none was found" if version is None else f"Java {version} was found"
        raise ConfigurationError(
            f"the demo needs Java {OLDEST_JAVA} or newer for Spark, and {found}: install one, "
            "such as the package openjdk-17-jre-headless, or set JAVA_HOME"
        )


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
