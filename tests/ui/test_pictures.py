"""Pictures of the page for the documentation, and groups of 8 and of 1,000 partitions.

`UI_PICTURES=docs/images` renews them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import WIDE, Window, served
from eventhub_checkpoints.ui.board import BLOCK
from fleet import Fleet
from pages import Visitor, opened, path_of
from waiting import eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.server,
]

FULL = "UI_PICTURES" in os.environ
"""Whether the pictures are kept; else, curves are short."""
FOLD = 760
"""Height of a picture of a long page."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(os.environ.get("UI_PICTURES") or tmp_path).absolute()


@contextmanager
def working(
    chromium: Any, tmp_path: Path, partitions: int, members: int, rounds: int, interval: float
) -> Iterator[Window]:
    """Open a window on a group whose members have worked for some polls."""
    with (
        pytest.MonkeyPatch.context() as environment,
        Fleet.opened(tmp_path, environment, partitions, members) as fleet,
    ):
        fleet.add_groups()
        with (
            opened(allow_writes=True, interval=interval) as pages,
            served(pages) as home,
        ):
            visitor = Visitor(pages)
            visitor.wait_known("/", f"{partitions:,} partitions")
            for _ in range(rounds):
                before = visitor.text(path_of(fleet.scope))
                fleet.work()
                wait_other(visitor, path_of(fleet.scope), before)
            fleet.add_orders(0, 12)
            context = chromium.new_context(viewport=WIDE)
            it = Window(context.new_page(), fleet, home)
            yield it
            assert it.problems == []
            context.close()


def wait_other(visitor: Visitor, path: str, before: str) -> None:
    """Wait until a poll has changed a page."""
    read = before.partition("read 20")[2][:20]
    visitor.wait_known(path, "read 20")
    eventually(lambda: visitor.text(path).partition("read 20")[2][:20] != read)


def test_pictures_of_eight_partitions(chromium: Any, tmp_path: Path, folder: Path) -> None:
    with working(chromium, tmp_path, 8, 3, 40 if FULL else 3, 1.0) as it:
        for scheme in ("light", "dark"):
            it.picture(folder / f"ui-overview-{scheme}.png", scheme)
        it.go()
        for scheme in ("light", "dark"):
            it.picture(folder / f"ui-group-{scheme}.png", scheme)
        it.go("partitions", "0", "events", query="?search=on&text=acme")
        it.ready()
        it.page.locator("summary").first.click()
        it.picture(folder / "ui-events-light.png", height=FOLD)
        audit = it.site.scope._replace(consumer_group="audit")
        it.page.goto(f"{it.base}{path_of(audit, 'rewind')}?to=shift&value=-20")
        it.picture(folder / "ui-rewind-light.png", height=FOLD)


def test_a_group_of_1000_partitions_is_shown_in_blocks(
    chromium: Any, tmp_path: Path, folder: Path
) -> None:
    with working(chromium, tmp_path, 1000, 12, 2 if FULL else 1, 5.0) as it:
        it.go()
        # A page of 1,000 rows would have 40,000 elements and 1.5 MB.
        assert it.page.evaluate("document.getElementsByTagName('*').length") < 2_000
        assert it.page.evaluate("document.documentElement.outerHTML.length") < 150_000
        assert it.page.get_by_role("row").count() == 1 + BLOCK
        assert it.page.locator(".blocks a").count() == 1000 // BLOCK
        it.check("1000")
        for scheme in ("light", "dark"):
            it.picture(folder / f"ui-1000-{scheme}.png", scheme, height=FOLD)
        it.page.get_by_role("link", name="950 to 999").press("Enter")
        it.page.get_by_role("link", name="999", exact=True).wait_for()
        it.page.get_by_role("link", name="lag", exact=True).click()
        it.page.locator(".blocks [aria-current]", has_text="1 to ").wait_for()
        lags = it.page.locator("[data-name=Lag]").all_inner_texts()
        assert lags == sorted(lags, key=int, reverse=True)
