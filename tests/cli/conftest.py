"""A group whose positions the commands change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from operators import Site
from prompt_client import prompt_client

__all__ = ["prompt_client", "site"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with Site.opened(tmp_path, monkeypatch) as opened:
        yield opened
