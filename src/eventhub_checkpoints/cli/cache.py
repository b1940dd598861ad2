"""Where downloads are kept, each whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

INSTALL_SECONDS = 600
"""For one download, and for the wait while another process does the same."""


def cache_folder() -> Path:
    """Where downloads are kept: `EVENTHUB_CHECKPOINTS_CACHE`, else the user's cache folder."""
    given = os.environ.get("EVENTHUB_CHECKPOINTS_CACHE")
    return Path(given) if given else user_cache_path("eventhub-checkpoints", appauthor=False)


def install_once(home: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder, unless it is there; two processes at once do not meet.

    Args:
        home: the folder; its name appears only with everything in it, even after a kill.
        fill: is given the path of a folder, which it makes and fills.
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
