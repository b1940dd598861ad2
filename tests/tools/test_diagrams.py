"""The pictures of the pages are what `python -m diagrams` draws."""

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from diagrams import card
from diagrams.__main__ import CARD, DOCS, PICTURES, files
from diagrams.drawing import DARK, LIGHT, Palette

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
DRAWN = files()
OF_PAGES = [name for name in DRAWN if name.startswith("images/")]
NARROWEST = 0.48
"""Width of a character, as a share of its size, in a narrow font."""


@pytest.mark.parametrize("name", DRAWN)
def test_the_committed_file_is_the_one_that_is_drawn(name: str) -> None:
    assert (DOCS / name).read_text() == DRAWN[name], "run PYTHONPATH=tools python -m diagrams"


@pytest.mark.parametrize("name", OF_PAGES)
def test_a_picture_says_what_it_shows_and_loads_nothing(name: str) -> None:
    root = ElementTree.fromstring(DRAWN[name])
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert len((title.text or "").split()) > 20
    assert not re.search(r"href|url\(|@import", DRAWN[name])


@pytest.mark.parametrize("name", OF_PAGES)
def test_no_words_begin_or_end_outside_of_the_picture(name: str) -> None:
    root = ElementTree.fromstring(DRAWN[name])
    width = float(root.get("width", 0))
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        size = float(text.get("font-size", root.get("font-size", 0)))
        length = NARROWEST * size * len(text.text or "")
        start = float(text.get("x", 0))
        start -= length * {"middle": 0.5, "end": 1}.get(text.get("text-anchor", ""), 0)
        assert start >= 0, text.text
        assert start + length <= width, text.text


def test_the_card_was_made_from_what_is_drawn_now() -> None:
    png = (DOCS / CARD).read_bytes()
    again = "run PYTHONPATH=tools python -m diagrams --card"
    assert b"tEXtSource\0" + card.mark(card.draw(DARK)) in png, again
    assert struct.unpack(">II", png[16:24]) == (card.WIDTH, card.HEIGHT)


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("palette", "page"), [(LIGHT, "#ffffff"), (DARK, "#1e2129")])
def test_words_can_be_read_on_what_they_stand_on(palette: Palette, page: str) -> None:
    """Contrast of at least 4.5, as the WCAG have it for level AA."""
    areas = [page, palette.paper, palette.first_fill, palette.second_fill, palette.store_fill]
    assert [area for area in areas if contrast(palette.ink, area) < 4.5] == []
    for role in ("muted", "first", "second", "store", "alarm"):
        assert contrast(palette[role], page) >= 4.5, role
    assert contrast(palette.muted, palette.paper) >= 4.5


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_shows_both_variants_of_a_picture(name: str) -> None:
    shown = [page.read_text() for page in PAGES if f"images/{name}-light.svg" in page.read_text()]
    light, dark = (rf"\(\S*images/{name}-{one}\.svg#only-{one}\)" for one in ("light", "dark"))
    assert shown
    for text in shown:
        both = rf"!\[([^]]+)\]{light}\s*!\[\1\]{dark}"
        assert re.search(both, text)
