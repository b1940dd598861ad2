"""Line charts as SVG files."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 200, 40, 60
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")

Points = Sequence[tuple[float, float]]


class Axis:
    """Values along one axis, linear or logarithmic, and the pixels where they lie."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, is_log: bool) -> None:
        self._start, self._end, self._is_log = start, end, is_log
        if is_log:
            low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            high = max(high, low + 1)
            self.ticks = [10.0**power for power in range(low, high + 1)]
        else:
            step = nice_step(max(values) or 1.0)
            self.ticks = [step * count for count in range(math.ceil(max(values) / step) + 1)]
        self._low, self._high = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self._is_log else value

    def pixel(self, value: float) -> float:
        """Return the coordinate of a value."""
        share = (self._scaled(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


def nice_step(highest: float) -> float:
    """Return 1, 2 or 5 times a power of ten, for about five ticks."""
    power = 10.0 ** math.floor(math.log10(highest / 5))
    return next(factor * power for factor in (1, 2, 5, 10) if highest / (factor * power) <= 6)


def write_chart(
    path: Path,
    title: str,
    axes: tuple[str, str],
    lines: Mapping[str, Points],
    *,
    is_log: bool = True,
) -> None:
    """Write a chart with one line per name; logarithmic charts leave out values of 0."""
    shown = {
        name: [point for point in points if not is_log or min(point) > 0]
        for name, points in lines.items()
    }
    everything = [point for points in shown.values() for point in points]
    x_axis = Axis([x for x, _ in everything], LEFT, WIDTH - RIGHT, is_log=is_log)
    y_axis = Axis([y for _, y in everything], HEIGHT - BOTTOM, TOP, is_log=is_log)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, TOP - 16, title, weight="bold"),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, axes[0], anchor="middle"),
        f'<g transform="rotate(-90 18 {HEIGHT / 2})">'
        f"{text(18, HEIGHT / 2, axes[1], anchor='middle')}</g>",
    ]
    for value in x_axis.ticks:
        x = x_axis.pixel(value)
        parts.append(rule(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(text(x, HEIGHT - BOTTOM + 18, f"{value:,g}", anchor="middle"))
    for value in y_axis.ticks:
        y = y_axis.pixel(value)
        parts.append(rule(LEFT, y, WIDTH - RIGHT, y))
        parts.append(text(LEFT - 8, y + 4, f"{value:,g}", anchor="end"))
    for number, (name, points) in enumerate(shown.items()):
        color = COLORS[number % len(COLORS)]
        pixels = [(x_axis.pixel(x), y_axis.pixel(y)) for x, y in points]
        path_points = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
        parts.append(
            f'<polyline points="{path_points}" fill="none" stroke="{color}" stroke-width="2"/>'
        )
        if len(pixels) <= 20:
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in pixels
            ]
        y = TOP + 20 * number + 8
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 16}" y="{y - 8}" width="14" height="4" fill="{color}"/>'
        )
        parts.append(text(WIDTH - RIGHT + 36, y, name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal") -> str:
    """Return a text element."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line of the grid."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'
