"""Small file system in memory, to be filled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MountError(Exception):
    """Raised if this user may not mount a file system."""


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Mount an empty file system of a size such as `256k` on a folder, and remove the folder.

    Raises:
        MountError: this user may not.
    """
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode:
        raise MountError(f"no right to mount a small file system: {run.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(folder: Path) -> Path:
    """Write a file that leaves no room; return its path."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"0" * 4096):
                pass
        except OSError:  # it is full
            return filler
    raise AssertionError("the disk takes everything")
