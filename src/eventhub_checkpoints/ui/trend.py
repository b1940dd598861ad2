"""Curves of a lag, as SVG paths."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eventhub_checkpoints.ui.observations import Point

WIDTH, HEIGHT = 120, 24
"""Size of a sparkline in its own units; the style sheet scales it."""
CURVE_WIDTH, CURVE_HEIGHT = 480, 64
"""Size of the curve of a group, likewise."""
MARGIN = 2
"""Room for the width of the line."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Curve of a lag.

    Attributes:
        path: value of the attribute `d` of an SVG path; `""` if nothing is known.
        area: the same of the area below it.
        label: the same in words, for who does not see it.
        highest: what its top stands for; None if nothing is known.
    """

    path: str
    area: str
    label: str
    highest: int | None


def trend(lags: Sequence[int | None], places: int) -> Trend:
    """Draw a lag by sample; the newest one is at the right edge.

    Args:
        lags: oldest first; None where it was unknown, which leaves a gap.
        places: number of samples that the whole width stands for, 2 or more.
    """
    points = [(float(number), lag) for number, lag in enumerate(lags)][-places:]
    return drawn(points, len(lags) - places, places - 1, WIDTH, HEIGHT)


def curve(points: Sequence[Point]) -> Trend:
    """Draw a lag over time; the width stands for all of it."""
    begin, end = (points[0][0], points[-1][0]) if points else (0.0, 0.0)
    return drawn(points, begin, end - begin or 1.0, CURVE_WIDTH, CURVE_HEIGHT)


def drawn(points: Sequence[Point], begin: float, span: float, width: int, height: int) -> Trend:
    """Draw a lag.

    Args:
        points: oldest first.
        begin: what the left edge stands for.
        span: what the width stands for.
        width: of the drawing.
        height: of the drawing.
    """
    known = [lag for _, lag in points if lag is not None]
    if not known:
        return Trend("", "", "lag unknown", None)
    scale = (height - 2 * MARGIN) / (max(known) or 1)
    lines, areas = [], []
    for run in runs(points):
        places = [
            (f"{(at - begin) / span * width:.0f}", f"{height - MARGIN - lag * scale:.0f}")
            for at, lag in run
        ]
        line = "L".join(f"{x} {y}" for x, y in places)
        # A path of one point is invisible, unless its line has a length.
        lines.append(f"M{line}{'h1' if len(places) == 1 else ''}")
        areas.append(f"M{places[0][0]} {height}L{line}L{places[-1][0]} {height}Z")
    last = points[-1][1]
    now = "unknown" if last is None else f"{last:,}"
    label = f"lag {now}, between {min(known):,} and {max(known):,}"
    return Trend("".join(lines), "".join(areas), label, max(known))


def runs(points: Sequence[Point]) -> Iterable[list[tuple[float, int]]]:
    """Yield the points between two gaps."""
    run: list[tuple[float, int]] = []
    for at, lag in points:
        if lag is not None:
            run.append((at, lag))
        elif run:
            yield run
            run = []
    if run:
        yield run
