"""Stores from elsewhere, and what `docs/explanation/compared.md` says about them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore
from azure.eventhub.aio._eventprocessor.in_memory_checkpoint_store import (
    InMemoryCheckpointStore as AioInMemoryCheckpointStore,
)
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore
from azure.eventhub.extensions.checkpointstoreblobaio import (
    BlobCheckpointStore as AioBlobCheckpointStore,
)

from backends.blob import BlobPlace
from eventhub_checkpoints.conformance import CHECKS, Accessors, Verdict, certify
from eventhub_checkpoints.conformance.contract import PROCESSES

pytestmark = pytest.mark.waits

PAGE = Path(__file__).parents[2] / "docs/explanation/compared.md"
COLUMNS = ("in memory, sync", "in memory, aio", "Blob, sync", "Blob, aio")
TRIED = [check for check in CHECKS if check.level != 2 and PROCESSES not in check.needs]
"""Threads find already what processes would find of these stores."""


def rows() -> Iterator[list[str]]:
    """The cells of the page's table of checks."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 + len(COLUMNS) and cells[1].startswith("`"):
            yield cells


def named_by_the_page(column: str, *words: str) -> set[str]:
    """The checks that have one of these words on the page."""
    place = 2 + COLUMNS.index(column)
    return {cells[1].strip("`") for cells in rows() if cells[place] in words}


def failed(store_for_a_check: Callable[[], Any], accessors: Accessors | None = None) -> set[str]:
    """The checks that a specimen fails; each check has a new specimen."""
    outcomes = [
        certify(store_for_a_check(), accessors, checks=[check]).outcomes[0] for check in TRIED
    ]
    return {one.check.name for one in outcomes if one.verdict is Verdict.FAILED}


def is_as_the_page_says(column: str, found: set[str]) -> None:
    always, sometimes = named_by_the_page(column, "fails"), named_by_the_page(column, "sometimes")
    assert always, f"the page has no column {column!r}"
    assert found - sometimes == always, f"{column}: the page no longer says what is true"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("in memory, sync", InMemoryCheckpointStore),
        ("in memory, aio", AioInMemoryCheckpointStore),
    ],
)
def test_the_clients_own_store_behaves_as_the_page_says(column: str, kind: Any) -> None:
    def store_for_a_check() -> Callable[[], Any]:
        one = kind()
        return lambda: one

    is_as_the_page_says(column, failed(store_for_a_check))


@pytest.mark.long
@pytest.mark.parametrize(
    ("column", "kind"),
    [("Blob, sync", BlobCheckpointStore), ("Blob, aio", AioBlobCheckpointStore)],
)
def test_the_official_blob_store_behaves_as_the_page_says(
    column: str, kind: Any, blob_container: Any
) -> None:
    text = blob_container.connection_string
    make_store = partial(kind.from_connection_string, text, blob_container.name)
    with BlobPlace(blob_container.url) as place:
        found = failed(lambda: make_store, Accessors(put_raw=place.put_raw))
    is_as_the_page_says(column, found)


def test_the_pages_table_names_checks_by_their_guarantee() -> None:
    known = {check.name: check.guarantees[0] for check in CHECKS}
    named = {cells[1].strip("`"): cells[0] for cells in rows()}
    assert named == {name: known.get(name) for name in named}
    assert {cell for cells in rows() for cell in cells[2:]} <= {
        "",
        "fails",
        "sometimes",
        "not shown",
    }
