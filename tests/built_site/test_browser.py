"""The built pages in a real Chromium: widths, what is copied, keyboard, and axe-core.

They need the site, Chromium and npm: `tox -e site` builds the one and says what else is missing.
"""

import functools
import http.server
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from axe import axe_core
from chromium import launched
from page_blocks import blocks

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
BASE = "/eventhub-checkpoints/"
"""Where the site lies on its server, as `site_url` has it: its page 404 knows its place."""
WIDE, PHONE = 1400, 400
LONGEST_LINE = 88
PAGES = sorted(page.parent.relative_to(SITE).as_posix() for page in SITE.rglob("index.html"))
SCHEMES = ["light", "dark"]
SERIOUS = {"serious", "critical"}


def main_pages() -> list[str]:
    """The first page, the pages that it links to, and the one for what is not there."""
    _, _, article = (SITE / "index.html").read_text().partition("<article")
    links = re.findall(r'<a href="([\w/-]+)/?"', article.partition("</article>")[0])
    linked = {link.rstrip("/") for link in links} & {*PAGES}
    return [".", *sorted(linked), "404.html"]


MAIN = main_pages() if PAGES else []


def test_the_site_is_built() -> None:
    assert "." in PAGES, f"{SITE} has no pages: mkdocs build --strict"
    assert len(MAIN) > 10


@pytest.mark.parametrize("path", ["index.html", "404.html"])
def test_a_page_names_the_card_that_stands_for_it_elsewhere(path: str) -> None:
    text = (SITE / path).read_text()
    (card,) = re.findall(r'<meta property="og:image" content="https://[^/]+/[^/]+/([^"]+)">', text)
    assert (SITE / card).exists()
    assert re.search(r'<meta property="og:title" content="[^"]{8,}">', text)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site below `BASE`."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(BASE.rstrip("/")))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    handler = functools.partial(Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{BASE}"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@contextmanager
def window(chromium: Any, width: int, scheme: str = "light", **options: Any) -> Iterator[Any]:
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
        **options,
    )
    try:
        yield context.new_page()
    finally:
        context.close()


@pytest.fixture(scope="module")
def wide(chromium: Any) -> Iterator[Any]:
    with window(chromium, WIDE) as page:
        yield page


@pytest.fixture(scope="module")
def phone(chromium: Any) -> Iterator[Any]:
    with window(chromium, PHONE) as page:
        yield page


def show(page: Any, address: str) -> Any:
    """Open a page; wait until its code has buttons."""
    page.goto(address)
    page.wait_for_function(
        "[...document.querySelectorAll('.highlight pre')].filter(e => e.offsetParent)"
        ".every(e => e.querySelector('button'))"
    )
    return page


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CODE = """
[...document.querySelectorAll('.md-content pre > code')].filter(e => e.offsetParent).map(e => ({
    longest: Math.max(...e.textContent.split('\\n').map(line => line.length)),
    hidden: e.scrollWidth - e.clientWidth,
    scrolls: getComputedStyle(e).overflowX,
    text: e.textContent.slice(0, 60),
}))
"""
COVERED = """
[...document.querySelectorAll('.md-content pre')].filter(pre => {
    const code = pre.querySelector('code').getBoundingClientRect();
    const button = pre.querySelector('button')?.getBoundingClientRect();
    return button && code.right > button.left + 0.5;
}).length
"""


@pytest.mark.parametrize("path", PAGES)
def test_code_fits_its_column_and_lies_beside_its_button(wide: Any, home: str, path: str) -> None:
    page = show(wide, f"{home}{path}/")
    assert page.evaluate(OVERFLOW) == 0
    assert page.evaluate(COVERED) == 0
    found = page.evaluate(CODE)
    assert [code for code in found if code["longest"] <= LONGEST_LINE and code["hidden"] > 0] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_code_and_not_the_page(phone: Any, home: str, path: str) -> None:
    page = show(phone, f"{home}{path}/")
    assert page.evaluate(OVERFLOW) == 0
    assert page.evaluate(COVERED) == 0
    found = page.evaluate(CODE)
    assert [code for code in found if code["hidden"] > 0 and code["scrolls"] != "auto"] == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("path", MAIN)
def test_axe_finds_nothing_serious(chromium: Any, home: str, path: str, scheme: str) -> None:
    for width in (WIDE, PHONE) if path == "." else (WIDE,):
        with window(chromium, width, scheme) as page:
            show(page, f"{home}{path}")
            page.evaluate(axe_core())
            found = page.evaluate("axe.run().then(result => result.violations)")
        assert [
            (rule["id"], [node["target"] for node in rule["nodes"]])
            for rule in found
            if rule["impact"] in SERIOUS
        ] == []


def test_what_is_copied_can_be_pasted(chromium: Any, home: str) -> None:
    shell = [block for block in blocks(ROOT / "docs/index.md") if block.language == "console"]
    with window(chromium, WIDE) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        show(page, home)
        buttons = page.locator("pre:has(.gp) button")
        assert buttons.count() == len(shell) > 0
        for number, block in enumerate(shell):
            buttons.nth(number).click()
            copied = page.evaluate("navigator.clipboard.readText()")
            lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
            assert copied.splitlines() == lines


COPIED = """
[...document.querySelectorAll('pre:has(.gp) > code')].filter(e => e.offsetParent).map(code => {
    code.setAttribute('data-md-copying', '');
    const text = code.innerText;
    code.removeAttribute('data-md-copying');
    return text;
}).filter(text => !text.trim() || /^[$>] /m.test(text))
"""


@pytest.mark.parametrize("path", MAIN)
def test_no_prompt_and_no_output_is_copied(wide: Any, home: str, path: str) -> None:
    """As the theme does it: it marks the code for as long as it reads the text."""
    assert show(wide, f"{home}{path}").evaluate(COPIED) == []


def test_the_keyboard_skips_to_the_content_searches_and_scrolls_code(
    chromium: Any, home: str
) -> None:
    with window(chromium, PHONE) as page:
        show(page, home)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.classList.contains('md-skip')")
        page.keyboard.press("/")
        page.wait_for_function("document.activeElement.name === 'query'")
        page.keyboard.press("Escape")
        code = page.locator("pre:not(:has(.gp)) > code").first
        code.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("document.activeElement.scrollLeft > 0")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_page_asks_no_other_server_and_shows_one_picture_of_two(
    chromium: Any, home: str, scheme: str
) -> None:
    with window(chromium, WIDE, scheme) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        show(page, home)
        page.wait_for_load_state("networkidle")
        here = home.removesuffix(BASE)
        assert [url for url in asked if not url.startswith((here, "data:", "blob:"))] == []
        shown = page.locator("img[src*='#only-']:visible")
        assert shown.count() == page.locator("img[src*='#only-']").count() / 2 > 0
        assert all(f"#only-{scheme}" in str(each.get_attribute("src")) for each in shown.all())


def test_pictures_of_pages(chromium: Any, home: str, tmp_path: Path) -> None:
    """Not compared with anything; `SITE_PICTURES=FOLDER` keeps them, to be looked at."""
    folder = Path(os.environ.get("SITE_PICTURES", tmp_path))
    for width in (WIDE, PHONE):
        for scheme in SCHEMES:
            with window(chromium, width, scheme) as page:
                for path in (".", "404.html"):
                    show(page, f"{home}{path}")
                    name = f"{path.partition('.')[0] or 'landing'}-{scheme}-{width}.png"
                    page.screenshot(path=folder / name, full_page=True)
                    assert (folder / name).stat().st_size > 10_000
