"""Write all pictures of the pages."""

import sys
from collections.abc import Callable
from pathlib import Path

from diagrams import handover, layers, spark, takeover, watermark
from diagrams.drawing import DARK, LIGHT, Palette

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
PICTURES: dict[str, Callable[[Palette], str]] = {
    takeover.NAME: takeover.draw,
    handover.NAME: handover.draw,
    watermark.NAME: watermark.draw,
    layers.NAME: layers.draw,
    spark.NAME: spark.draw,
}


def files() -> dict[str, str]:
    """Return the text of each file, by its name."""
    return {
        f"{name}-{palette.name}.svg": draw(palette)
        for name, draw in PICTURES.items()
        for palette in (LIGHT, DARK)
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    for name, text in files().items():
        (folder / name).write_text(text)
