"""Sparkline of a lag, as an SVG path."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 120, 24
"""Size of a sparkline in its own units; the style sheet scales it."""
MARGIN = 2
"""Room for the width of the line."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Sparkline.

    Attributes:
        path: value of the attribute `d` of an SVG path; `""` if nothing is known.
        label: the same in words, for who does not see it.
    """

    path: str
    label: str


def trend(lags: Sequence[int | None], places: int) -> Trend:
    """Draw a lag over time; the newest sample is at the right edge.

    Args:
        lags: oldest first; None where it was unknown, which leaves a gap.
        places: number of samples that the whole width stands for, 2 or more.
    """
    lags = lags[-places:]
    known = [each for each in lags if each is not None]
    if not known:
        return Trend("", "lag unknown")
    highest = max(known)
    step = WIDTH / (places - 1)
    scale = (HEIGHT - 2 * MARGIN) / (highest or 1)
    x = WIDTH - step * (len(lags) - 1)
    path, pen = [], "M"
    for each in lags:
        if each is None:
            pen = "M"
        else:
            path.append(f"{pen}{x:.0f} {HEIGHT - MARGIN - each * scale:.0f}")
            pen = "L"
        x += step
    if len(known) == 1:
        # A path of one point is invisible, unless its line has a length.
        path.append("h1")
    now = "unknown" if lags[-1] is None else f"{lags[-1]:,}"
    return Trend("".join(path), f"lag {now}, between {min(known):,} and {highest:,}")
