"""A group whose partitions are behind, have lost events, have read all, and were never used."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from operators import Site
from pages import Visitor, opened


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with Site.opened(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def visitor(site: Site) -> Iterator[Visitor]:
    with opened() as pages:
        yield Visitor(pages)


@pytest.fixture
def operator(site: Site) -> Iterator[Visitor]:
    """A visitor who may change positions."""
    with opened(allow_writes=True) as pages:
        yield Visitor(pages)
