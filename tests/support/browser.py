"""The page of `ehcp ui` in a real Chromium."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe import axe_core
from eventhub_checkpoints.ui.pages import Pages
from eventhub_checkpoints.ui.server import LOCAL_NAMES, listen, serving, url
from fleet import Fleet
from operators import Site
from pages import path_of

WIDE = {"width": 1200, "height": 800}
PHONE = {"width": 400, "height": 800}
NARROW = {"width": 360, "height": 740}
BACKGROUNDS = {"light": "rgb(245, 247, 249)", "dark": "rgb(15, 19, 24)"}

CONTRAST = """
() => {
  const parse = text => text.match(/[0-9.]+/g).slice(0, 3).map(n => n * (text.startsWith('color(') ? 255 : 1));
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


@contextmanager
def served(pages: Pages) -> Iterator[str]:
    """Serve pages on a free port, and return the URL with the token."""
    with (
        listen("127.0.0.1", 0) as port,
        serving(pages.application(port.getsockname()[1], LOCAL_NAMES), port),
    ):
        yield url(port, pages.token)


class Window:
    """A window of the browser, with what went wrong in it."""

    def __init__(self, page: Any, site: Site | Fleet, home: str) -> None:
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

    def ready(self) -> int:
        """Wait for what the page requests, and return the number of its events."""
        self.page.locator("[aria-busy]").wait_for(state="detached")
        return int(self.page.locator(".events > li").count())

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )

    def check(self, name: str) -> None:
        """Check colours and width of the page, and what axe-core finds, in both schemes."""
        self.page.wait_for_load_state("load")  # its text may be there before its style sheet
        for scheme, background in BACKGROUNDS.items():
            self.page.emulate_media(color_scheme=scheme)
            body = "getComputedStyle(document.body).backgroundColor"
            assert self.page.evaluate(body) == background
            assert self.page.evaluate(CONTRAST) >= 4.5, name
            assert self.violations() == [], (name, scheme)
        for size in (PHONE, NARROW, WIDE):
            self.page.set_viewport_size(size)
            assert self.overflow == 0, (name, size)

    def violations(self) -> list[str]:
        """Return what axe-core finds on the page, with the first element of each."""
        self.page.evaluate(axe_core())
        found = self.page.evaluate("axe.run().then(result => result.violations)")
        return [f"{each['impact']} {each['id']}: {each['nodes'][0]['html']}" for each in found]

    def picture(self, path: Path, scheme: str = "light", *, height: int = 0) -> None:
        """Take a picture of the page, down to its end or to a height."""
        self.page.emulate_media(color_scheme=scheme)
        bottom = self.page.evaluate("document.body.getBoundingClientRect().bottom")
        width = self.page.viewport_size["width"]
        area = {"x": 0, "y": 0, "width": width, "height": min(bottom, height or bottom)}
        self.page.screenshot(path=path, clip=area, full_page=True)
        assert path.stat().st_size > 10_000

    def focused(self) -> str:
        """Text or name of the element that has the focus."""
        return str(
            self.page.evaluate(
                "(document.activeElement.innerText || document.activeElement.name || '').trim()"
            )
        )
