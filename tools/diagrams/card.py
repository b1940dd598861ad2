"""The card that is shown where someone links to a page.

No network takes a card as SVG, so that a browser makes a picture of it. The file names what it was
made from: two browsers never make the same bytes.
"""

import hashlib
import struct
import subprocess
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

from diagrams.drawing import FONT, Drawing, Palette
from diagrams.logo import sign

WIDTH, HEIGHT = 1200, 630
GROUND = "#0f3d5c"
TITLE = "Azure Event Hubs consumers that continue where they stopped"
HEADLINE = ("Azure Event Hubs consumers", "that continue where they stopped")
STORES = (
    "Checkpoints in Blob or Table Storage, PostgreSQL, MySQL,",
    "SQLite, Redis or Cassandra. For Python, Spark and Arrow.",
)


def draw(palette: Palette) -> str:
    """Return the card; of the palette, it takes the colour of checkpoints."""
    card = Drawing(WIDTH, HEIGHT, palette, TITLE, font=FONT)
    card.add(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{GROUND}"/>')
    card.add('<g transform="translate(72 64) scale(5)">')
    for part in sign("#fff", "#ffffff55", palette.second):
        card.add(part)
    card.add("</g>")
    card.text(224, 124, "eventhub-checkpoints", color="ink", size=44, bold=True)
    for number, line in enumerate(HEADLINE):
        card.text(80, 284 + number * 72, line, color="ink", size=52, bold=True)
    for number, line in enumerate(STORES):
        card.text(80, 462 + number * 46, line, color="muted", size=30)
    return card.svg()


def picture(svg: str, browser: str) -> bytes:
    """Return the card as a PNG that a browser has made, with a note of its source."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "card.svg"), Path(folder, "card.png")
        source.write_text(svg)
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={target}",
                source.as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        return noted(target.read_bytes(), svg)


BEGINNING = 33
"""Bytes of a PNG's signature and of its header, which comes first."""


def noted(png: bytes, svg: str) -> bytes:
    """Return a PNG with a note of its source behind the header."""
    note = b"tEXtSource\0" + mark(svg)
    chunk = struct.pack(">I", len(note) - 4) + note + struct.pack(">I", zlib.crc32(note))
    return png[:BEGINNING] + chunk + png[BEGINNING:]


def mark(svg: str) -> bytes:
    """Return what tells one source from another."""
    return hashlib.sha256(svg.encode()).hexdigest().encode()
