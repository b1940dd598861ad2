"""The page in a real Chromium: keyboard, colour schemes, a phone's width, refreshing, a rewind.

`UI_PICTURES=docs/images` renews the pictures of the documentation.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints.ui.pages import Pages
from eventhub_checkpoints.ui.server import LOCAL_NAMES, listen, serving, url
from operators import Site
from pages import opened, path_of

pytestmark = [pytest.mark.server, pytest.mark.slow]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDE = {"width": 1100, "height": 620}
PHONE = {"width": 360, "height": 740}


@contextmanager
def served(pages: Pages) -> Iterator[str]:
    """Serve pages on a free port, and return the URL with the token."""
    with (
        listen("127.0.0.1", 0) as port,
        serving(pages.application(port.getsockname()[1], LOCAL_NAMES), port),
    ):
        yield url(port, pages.token)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        # The sandbox needs a user namespace, which containers often lack.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Window:
    """A window of the browser, with what went wrong in it."""

    def __init__(self, page: Any, site: Site, home: str) -> None:
        self.page, self.site = page, site
        self.base = home.partition("/?")[0]
        self.problems: list[str] = []
        page.on("console", lambda message: self.note(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(home)

    def note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def go(self, *rest: str, query: str = "") -> None:
        self.page.goto(f"{self.base}{path_of(self.site.scope, *rest)}{query}")

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )

    def focused(self) -> str:
        """Text or name of the element that has the focus."""
        return str(
            self.page.evaluate(
                "(document.activeElement.innerText || document.activeElement.name || '').trim()"
            )
        )


@contextmanager
def window(
    chromium: Any, site: Site, *, allow_writes: bool = False, **options: Any
) -> Iterator[Window]:
    with opened(allow_writes=allow_writes, interval=0.1) as pages, served(pages) as home:
        context = chromium.new_context(**{"viewport": WIDE, **options})
        try:
            made = Window(context.new_page(), site, home)
            # Known once the first poll has ended; the state depends on the number of samples.
            made.page.locator("[data-name=Lost]", has_text="5").wait_for()
            yield made
            assert made.problems == []
        finally:
            context.close()


def test_the_token_leaves_the_address_bar(chromium: Any, site: Site) -> None:
    with window(chromium, site) as it:
        assert it.page.url == f"{it.base}/"
        assert it.page.evaluate("document.cookie") == ""
        assert it.page.get_by_role("link", name="orders / $default").count() == 1


def test_the_page_refreshes_itself_and_keeps_the_focus(chromium: Any, site: Site) -> None:
    with window(chromium, site) as it:
        it.go()
        it.page.locator("#p-0").focus()
        site.save("0", 18)
        it.page.locator("tr", has=it.page.locator("#p-0")).get_by_text("18").wait_for()
        assert it.focused() == "0"


def test_everything_is_reached_by_keyboard_with_a_visible_focus(chromium: Any, site: Site) -> None:
    with window(chromium, site) as it:
        it.go(query="?live=off")
        reached = []
        for _ in range(12):
            it.page.keyboard.press("Tab")
            reached.append(it.focused())
            outline = it.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", reached
        assert reached[0] == "Skip to the content"
        assert "Apply" in reached
        assert "Rewind…" in reached
        assert reached[-5:] == ["0", "1", "2", "3", "Refresh again"]
        it.page.locator("#p-1").focus()
        it.page.keyboard.press("Enter")
        it.page.get_by_role("heading", name="Partition 1").wait_for()


def test_landmarks_and_labels_name_every_part(chromium: Any, site: Site) -> None:
    with window(chromium, site) as it:
        it.go("rewind")
        for role in ("banner", "main", "navigation", "contentinfo"):
            assert it.page.get_by_role(role).count() == 1
        for label in ("Read next", "Number, time or duration", "Partitions, such as"):
            assert it.page.get_by_label(label).count() == 1
        it.go()
        assert it.page.get_by_role("table", name="Partitions").count() == 1
        assert it.page.get_by_role("row").count() == 5
        assert it.page.get_by_role("img", name="lag").count() == 5


CONTRAST = """
() => {
  const parse = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const light = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (color !== 'rgba(0, 0, 0, 0)') return parse(color);
    }
    return [255, 255, 255];
  };
  return Math.min(...[...document.querySelectorAll('body *')]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .map(e => {
      const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
      return (a + .05) / (b + .05);
    }));
}
"""  # noqa: E501
"""Lowest contrast of a text with its background. Source: WCAG 2.2, "contrast ratio"."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_have_enough_contrast(
    chromium: Any, site: Site, tmp_path: Path, scheme: str
) -> None:
    folder = Path(os.environ.get("UI_PICTURES") or tmp_path)
    site.own("0", "1", "2")
    with window(chromium, site, color_scheme=scheme, allow_writes=True) as it:
        backgrounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 19, 24)"}
        body = "getComputedStyle(document.body).backgroundColor"
        assert it.page.evaluate(body) == backgrounds[scheme]
        # A few samples, for a trend and a state.
        for number in range(12):
            site.hub.publish("orders", "2", [b"event"] * (number % 5))
            site.hub.publish("orders", "0", [b"event"] * (number % 3))
            site.save("0", 16 + number)
            it.page.wait_for_timeout(300)
        it.go()
        assert it.page.evaluate(CONTRAST) >= 4.5
        picture = folder / f"ui-group-{scheme}.png"
        it.page.screenshot(path=picture)
        assert picture.stat().st_size > 10_000
        for rest, query in [(("partitions", "0"), ""), (("rewind",), "?to=earliest")]:
            it.go(*rest, query=query)
            assert it.page.evaluate(CONTRAST) >= 4.5


def test_a_phone_shows_everything_without_scrolling_sideways(
    chromium: Any, site: Site, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("UI_PICTURES") or tmp_path)
    site.own("0", "1")
    with window(chromium, site, viewport=PHONE) as it:
        assert it.overflow == 0
        it.go()
        assert it.overflow == 0
        for word in ("consumer-7", "LOST"):
            assert it.page.get_by_text(word).first.is_visible()
        it.page.screenshot(path=folder / "ui-phone.png")
        for rest in (("partitions", "0"), ("rewind",)):
            it.go(*rest, query="?to=earliest" if rest == ("rewind",) else "")
            assert it.overflow == 0


def test_a_rewind_by_keyboard_changes_what_was_previewed(chromium: Any, site: Site) -> None:
    with window(chromium, site, allow_writes=True) as it:
        it.go("rewind")
        it.page.get_by_label("Read next").focus()
        it.page.keyboard.press("Tab")
        it.page.keyboard.press("Tab")
        it.page.keyboard.type("0,1")
        it.page.keyboard.press("Enter")
        it.page.get_by_role("heading", name="Preview").wait_for()
        assert site.rows()["0"][0] == 15
        it.page.get_by_role("button", name="Change 2 partitions").focus()
        it.page.keyboard.press("Enter")
        it.page.get_by_role("status").wait_for()
        assert {id_: row[0] for id_, row in site.rows().items()} == {"0": -1, "1": 9, "2": 19}


def test_a_page_of_another_origin_cannot_change_anything(
    chromium: Any, site: Site, tmp_path: Path
) -> None:
    before = site.rows()
    with window(chromium, site, allow_writes=True) as it:
        target = f"{it.base}{path_of(site.scope, 'rewind')}"
        it.page.route(
            "http://evil.example/",
            lambda route: route.fulfill(
                content_type="text/html",
                body=f'<form method="post" action="{target}"><button>x</button></form>',
            ),
        )
        it.page.goto("http://evil.example/")
        it.page.get_by_role("button").click()
        it.page.get_by_text("needs the token").wait_for()
        assert site.rows() == before
        # The browser reports the status of the refused request.
        assert all("403" in problem for problem in it.problems)
        it.problems.clear()


def test_scripts_in_the_page_do_not_run(chromium: Any, site: Site) -> None:
    with window(chromium, site) as it:
        it.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.x = 1\">')"
        )
        it.page.wait_for_function("document.images[0].complete")
        assert it.page.evaluate("window.x") is None
        assert any("Content Security Policy" in problem for problem in it.problems)
        it.problems.clear()
