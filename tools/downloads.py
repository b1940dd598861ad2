"""Downloads of package managers, kept in a cache folder that the user's processes share."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

INSTALL_SECONDS = 600
"""Timeout of one download, and of waiting for another process that does the same."""


class DownloadError(Exception):
    """Raised if a package manager failed; the message is the end of its output."""


def cache_folder() -> Path:
    """Return the download folder: `EVENTHUB_CHECKPOINTS_CACHE`, else the user's cache folder."""
    folder = os.environ.get("EVENTHUB_CHECKPOINTS_CACHE")
    return Path(folder) if folder else user_cache_path("eventhub-checkpoints", appauthor=False)


def install_once(home: Path, fill: Callable[[Path], None]) -> None:
    """Create a folder unless it exists; safe for concurrent processes.

    Args:
        home: the folder; it appears only when complete, even after a kill.
        fill: called with the path of a folder, which it creates and fills.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock", timeout=INSTALL_SECONDS):
        if home.exists():
            return
        with tempfile.TemporaryDirectory(
            dir=home.parent, prefix="partial-", ignore_cleanup_errors=True
        ) as partial:
            fill(Path(partial, "whole"))
            Path(partial, "whole").rename(home)


def download(command: Sequence[str | Path], cwd: Path | None = None) -> None:
    """Run a package manager.

    Raises:
        DownloadError: it failed.
    """
    ran = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        raise DownloadError(ran.stdout[-2000:])
