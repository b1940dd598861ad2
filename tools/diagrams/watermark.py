"""Events that are finished in any order, and the checkpoint that waits for the oldest of them."""

from diagrams.drawing import Drawing, Palette

NAME = "watermark"
TITLE = (
    "Events 40 to 47 are processed at the same time. While 40 is in progress, the checkpoint "
    "stays at 39, although 41, 43 and 44 are done. When 40 is done it moves to 41, and when 42 is "
    "done to 44: it never passes an event that is not done."
)
WIDTH, HEIGHT = 520, 300
LEFT, CELL, HEIGHT_OF_CELL = 116, 50, 36
NUMBERS = range(40, 48)
ROWS = (
    (34, ("40 is still", "in progress"), {41, 43, 44}, 39),
    (132, ("40 is done,", "42 is not"), {40, 41, 43, 44}, 41),
    (230, ("42 is", "done too"), {40, 41, 42, 43, 44}, 44),
)


def draw(palette: Palette) -> str:
    """Return the picture in the colours of a palette."""
    drawing = Drawing(WIDTH, HEIGHT, palette, TITLE)
    for y, words, done, checkpoint in ROWS:
        drawing.lines(0, y, words)
        for number in NUMBERS:
            is_done = number in done
            x = LEFT + CELL * (number - NUMBERS.start)
            drawing.box(
                x,
                y - HEIGHT_OF_CELL / 2,
                CELL - 6,
                HEIGHT_OF_CELL,
                color="store" if is_done else "line",
                fill="store_fill" if is_done else "paper",
                dashed=not is_done,
            )
            drawing.text(
                x + (CELL - 6) / 2,
                y,
                str(number),
                anchor="middle",
                color="ink" if is_done else "muted",
            )
        edge = LEFT + CELL * (checkpoint + 1 - NUMBERS.start) - 3
        drawing.line((edge, y - 26), (edge, y + 28), color="second", width=3)
        drawing.text(
            edge + (6 if checkpoint < NUMBERS.start else 0),
            y + 37,
            f"checkpoint {checkpoint}",
            color="second",
            bold=True,
            anchor="start" if checkpoint < NUMBERS.start else "middle",
        )
    return drawing.svg()
