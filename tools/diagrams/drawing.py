"""SVG pictures from a few shapes, in colours for light and for dark pages.

A picture loads nothing: its text is set in the fonts of the reader's system. Widths are chosen with
room to spare, because no two systems have the same font.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import atan2, cos, pi, sin

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"
MONOSPACE = (
    "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', "
    "monospace"
)
SIZE = 15
HEAD = 7
"""Length of an arrow's head."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Palette:
    """Colours of a picture, by what they are used for.

    Attributes:
        name: the end of the file's name.
        ink: of most text.
        muted: of what explains.
        line: of frames and axes.
        paper: of what lies on the page.
        first: of the first consumer; `first_fill` for its areas.
        second: of the second consumer.
        store: of the store and of checkpoints.
        alarm: of a crash or a refusal.
    """

    name: str
    ink: str
    muted: str
    line: str
    paper: str
    first: str
    first_fill: str
    second: str
    second_fill: str
    store: str
    store_fill: str
    alarm: str

    def __getitem__(self, role: str) -> str:
        """Return the colour of a role."""
        return str(getattr(self, role))


LIGHT = Palette(
    name="light",
    ink="#18232f",
    muted="#52606d",
    line="#b9c4cf",
    paper="#f5f7fa",
    first="#1b5fb8",
    first_fill="#d6e6fb",
    second="#a34a05",
    second_fill="#fde5cf",
    store="#13704d",
    store_fill="#d3f0e2",
    alarm="#c0222b",
)
DARK = Palette(
    name="dark",
    ink="#e8edf3",
    muted="#a9b5c2",
    line="#4a5666",
    paper="#252b36",
    first="#86b7ff",
    first_fill="#1f3d66",
    second="#ffb877",
    second_fill="#5a3714",
    store="#6fdcae",
    store_fill="#17472f",
    alarm="#ff8a90",
)


class Drawing:
    """Picture of a fixed size, in the colours of one palette."""

    def __init__(
        self, width: int, height: int, palette: Palette, title: str, *, font: str = FONT
    ) -> None:
        self._size = (width, height)
        self._palette = palette
        self._title = title
        self._font = font
        self._parts: list[str] = []

    def add(self, element: str) -> None:
        """Add an element as it is."""
        self._parts.append(element)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        color: str = "ink",
        anchor: str = "start",
        bold: bool = False,
        size: float = SIZE,
    ) -> None:
        """Write words, whose middle line is at `y`."""
        weight = ' font-weight="600"' if bold else ""
        end = "" if anchor == "start" else f' text-anchor="{anchor}"'
        large = "" if size == SIZE else f' font-size="{size:g}"'
        self.add(
            f'<text x="{x:g}" y="{y + size * 0.35:g}" fill="{self._palette[color]}"'
            f"{large}{weight}{end}>{escape(words)}</text>"
        )

    def lines(
        self, x: float, y: float, words: Sequence[str], *, step: float = 18, **style: object
    ) -> None:
        """Write lines of text, whose block has its middle at `y`."""
        first = y - step * (len(words) - 1) / 2
        for number, line in enumerate(words):
            self.text(x, first + number * step, line, **style)  # type: ignore[arg-type]

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        color: str = "line",
        fill: str = "paper",
        dashed: bool = False,
        radius: float = 5,
    ) -> None:
        """Draw a rectangle with round corners."""
        style = ' stroke-dasharray="4 4"' if dashed else ""
        inside = self._palette[fill] if fill else "none"
        self.add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
            f'fill="{inside}" stroke="{self._palette[color]}" stroke-width="1.5"{style}/>'
        )

    def line(
        self,
        *points: Point,
        color: str = "muted",
        dashed: bool = False,
        arrow: bool = False,
        width: float = 1.5,
    ) -> None:
        """Draw straight lines through points; an arrow has its head at the last one."""
        (x, y), (end_x, end_y) = points[-2:]
        style = ' stroke-dasharray="4 4"' if dashed else ""
        angle = atan2(end_y - y, end_x - x)
        tip = (end_x, end_y)
        if arrow:
            points = (*points[:-1], (end_x - HEAD * cos(angle), end_y - HEAD * sin(angle)))
        self.add(
            f'<polyline points="{_path(points)}" fill="none" stroke="{self._palette[color]}" '
            f'stroke-width="{width:g}"{style}/>'
        )
        if arrow:
            corners = [
                (end_x - HEAD * cos(angle + side), end_y - HEAD * sin(angle + side))
                for side in (pi / 7, -pi / 7)
            ]
            self.add(f'<polygon points="{_path([tip, *corners])}" fill="{self._palette[color]}"/>')

    def dot(self, x: float, y: float, *, color: str, radius: float = 4) -> None:
        """Draw a filled circle."""
        self.add(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{self._palette[color]}"/>')

    def cross(self, x: float, y: float, *, color: str = "alarm", radius: float = 6) -> None:
        """Draw two lines that cross."""
        path = f"M{x - radius:g} {y - radius:g}L{x + radius:g} {y + radius:g}"
        path += f"M{x - radius:g} {y + radius:g}L{x + radius:g} {y - radius:g}"
        self.add(f'<path d="{path}" stroke="{self._palette[color]}" stroke-width="3"/>')

    def svg(self) -> str:
        """Return the file."""
        width, height = self._size
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}" role="img" font-family="{self._font}" '
                f'font-size="{SIZE}">',
                f"<title>{escape(self._title)}</title>",
                *self._parts,
                "</svg>",
                "",
            )
        )


def _path(points: Sequence[Point]) -> str:
    return " ".join(f"{round(x, 2):g},{round(y, 2):g}" for x, y in points)
