"""Small file system in memory, to be filled: for root, or in CI where sudo asks for no password."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MountError(Exception):
    """Raised if this user may not mount a file system."""


def as_root(*words: str) -> list[str]:
    """Return a command of root; only in CI with sudo, which tests of a person should not use."""
    needs_sudo = os.geteuid() != 0 and bool(os.environ.get("CI"))
    return ["sudo", "-n", *words] if needs_sudo else [*words]


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Mount an empty file system of a size such as `256k` on a folder, and remove the folder.

    Raises:
        MountError: this user may not.
    """
    folder.mkdir(exist_ok=True)
    words = as_root("mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder))
    try:
        subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MountError(
            "no right to mount a small file system, which needs root, or CI=1 and sudo without a "
            f"password: {getattr(error, 'stderr', '') or error}"
        ) from error
    try:
        yield folder
    finally:
        subprocess.run(as_root("umount", "--lazy", str(folder)), check=True)
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
