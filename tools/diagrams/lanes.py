"""What two consumers and a store do, as three lanes in time."""

from diagrams.drawing import Drawing, Palette

WIDTH, HEIGHT = 520, 298
LEFT, RIGHT = 108, 516
FIRST, STORE, SECOND = 40, 136, 232
"""Middles of the lanes."""
HALF = 18
"""Half the height of a bar."""
MOMENTS = 20
GAP = 2
"""Half the space between two bars."""
FIRST_WORDS, SECOND_WORDS = (FIRST + STORE) / 2, (STORE + SECOND) / 2
"""Middles of what is written between the lanes."""


def at(moment: float) -> float:
    """Return where a moment lies, from 0 to `MOMENTS`."""
    return LEFT + (RIGHT - LEFT) * moment / MOMENTS


class Lanes(Drawing):
    """Picture with the lanes of A, of the store and of B."""

    def __init__(self, palette: Palette, title: str, *, end_of_first: float) -> None:
        super().__init__(WIDTH, HEIGHT, palette, title)
        for y, name, color, end in (
            (FIRST, "consumer A", "first", end_of_first),
            (STORE, "store", "store", MOMENTS),
            (SECOND, "consumer B", "second", MOMENTS),
        ):
            self.text(0, y, name, color=color, bold=True)
            self.line((LEFT, y), (at(end), y), color="line")
        self.line((LEFT, HEIGHT - 26), (RIGHT, HEIGHT - 26), color="muted", arrow=True)
        self.text(LEFT, HEIGHT - 10, "time", color="muted", size=13)

    def bar(self, y: float, start: float, end: float, owner: str, words: str) -> None:
        """Draw a time that belongs to a consumer."""
        self._bar(y, start, end, owner, f"{owner}_fill", words, "ink", is_open=False)

    def waiting(self, y: float, start: float, end: float, owner: str, words: str) -> None:
        """Draw a time in which nothing happens."""
        self._bar(y, start, end, owner, "paper", words, "muted", is_open=True)

    def _bar(
        self,
        y: float,
        start: float,
        end: float,
        owner: str,
        fill: str,
        words: str,
        ink: str,
        *,
        is_open: bool,
    ) -> None:
        x, right = at(start), at(end)
        width = right - x - 2 * GAP
        self.box(x + GAP, y - HALF, width, 2 * HALF, color=owner, fill=fill, dashed=is_open)
        self.text((x + right) / 2, y, words, color=ink, anchor="middle")

    def first_asks(self, moment: float, words: str) -> None:
        """Draw a request of A to the store."""
        x = at(moment)
        self.line((x, FIRST + HALF), (x, STORE - HALF), color="first", arrow=True)
        self.text(x + 6, FIRST_WORDS, words, color="muted")

    def second_asks(self, moment: float, words: str, *, side: str = "start") -> None:
        """Draw a request of B to the store."""
        x = at(moment)
        self.line((x, SECOND), (x, STORE + HALF), color="second", arrow=True)
        self.text(
            x + (6 if side == "start" else -6), SECOND_WORDS, words, color="muted", anchor=side
        )
