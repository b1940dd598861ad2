"""Write all pictures of the pages.

`python -m diagrams` needs nothing; `python -m diagrams --card` also makes the card, with Chromium.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from diagrams import card, handover, layers, logo, spark, takeover, terminal, watermark
from diagrams.drawing import DARK, LIGHT, Palette

DOCS = Path(__file__).resolve().parents[2] / "docs"
CARD = "assets/card.png"
RECORDED = DOCS / "images/demo.txt"
PICTURES: dict[str, Callable[[Palette], str]] = {
    takeover.NAME: takeover.draw,
    handover.NAME: handover.draw,
    watermark.NAME: watermark.draw,
    layers.NAME: layers.draw,
    spark.NAME: spark.draw,
}


def files() -> dict[str, str]:
    """Return the text of each file, by its name in `docs`."""
    return {
        **{
            f"images/{name}-{palette.name}.svg": draw(palette)
            for name, draw in PICTURES.items()
            for palette in (LIGHT, DARK)
        },
        "images/demo.svg": terminal.draw(RECORDED.read_text()),
        "assets/logo.svg": logo.logo(),
        "assets/favicon.svg": logo.favicon(),
    }


if __name__ == "__main__":
    for name, text in files().items():
        (DOCS / name).write_text(text)
    if "--card" in sys.argv:
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            sys.exit("Chromium is not installed: apt-get install chromium")
        (DOCS / CARD).write_bytes(card.picture(card.draw(DARK), browser))
