"""What is at a path that a user has named.

The methods of `pathlib.Path` raise an `OSError` for a name that is too long, and for a folder that
may not be entered.
"""

import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is there that this process can see."""
    return S_ISREG(_mode_of(path))


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is there that this process can see."""
    return S_ISDIR(_mode_of(path))


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether anything is there that this process can see."""
    return _mode_of(path) != 0


def _mode_of(path: str | os.PathLike[str]) -> int:
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return 0
