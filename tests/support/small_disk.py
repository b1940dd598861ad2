"""Small file system, where this user may mount one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tmpfs import MountError, mounted


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount an empty file system of a size such as `256k` on a folder, or skip the test."""
    with ExitStack() as opened:
        try:
            opened.enter_context(mounted(folder, size))
        except MountError as error:
            pytest.skip(str(error))
        yield folder
