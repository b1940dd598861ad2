"""A group whose partitions are behind, have lost events, have read all, and were never used.

The tests of a module share one, and its pages; those that change something take fresh ones.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chromium import launched
from dead_letter import write_dead_letters
from operators import Site
from pages import Visitor, opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as environment, Site.opened(folder, environment) as made:
        yield made


@pytest.fixture(scope="module")
def letters(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with dead letters of the group, of another group and of another hub."""
    path = tmp_path_factory.mktemp("letters") / "dead-letters.jsonl"
    write_dead_letters(path, site.scope)
    return str(path)


@pytest.fixture(scope="module")
def visitor(site: Site, letters: str) -> Iterator[Visitor]:
    with opened(dead_letters=letters) as pages:
        yield Visitor(pages)


@pytest.fixture(scope="module")
def operator(site: Site, letters: str) -> Iterator[Visitor]:
    """A visitor who may change positions."""
    with opened(allow_writes=True, dead_letters=letters) as pages:
        yield Visitor(pages)


@pytest.fixture
def fresh_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with Site.opened(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def fresh_visitor(fresh_site: Site) -> Iterator[Visitor]:
    with opened() as pages:
        yield Visitor(pages)


@pytest.fixture
def fresh_operator(fresh_site: Site) -> Iterator[Visitor]:
    """A visitor who may change positions."""
    with opened(allow_writes=True) as pages:
        yield Visitor(pages)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser
