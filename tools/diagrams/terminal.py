"""A terminal with what the demo has printed, line by line.

`ehcp demo > docs/images/demo.txt` records it anew.
"""

import re
from collections.abc import Iterator
from html import escape

from diagrams.drawing import MONOSPACE, Drawing, Palette

NAME = "demo"
COMMAND = "ehcp demo"
TITLE = (
    "The output of ehcp demo: two consumers share the partitions of a hub, one is killed, the "
    "other takes over, PySpark continues from the checkpoints, and every event is counted."
)
SIZE, LINE, CHARACTER = 13, 19, 7.83
LEFT, TOP, BAR = 18, 22, 34
LONGEST = 80
"""Characters of a line, as a terminal has them."""
SECONDS_A_LINE = 0.45
STEP = re.compile(r" *[\d.]+ s  ")
PROGRESS = re.compile(r"(?: *[\d.]+ s  )(?:published \d|.*, for \d+ s$)")
"""Lines that come as often as time passes."""
KILLED, GOOD = "kill -9", "Nothing was lost"

GROUND = {"light": "#10202e", "dark": "#151a21"}
INK, MUTED, RED, GREEN, PROMPT = "#e8edf3", "#a9b5c2", "#ff8a90", "#6fdcae", "#86b7ff"


def shown(recorded: str) -> list[str]:
    """Return the lines of a recording that tell the story."""
    lines = [line.rstrip() for line in recorded.rstrip().splitlines()]
    return [line for line in lines if not PROGRESS.match(line)]


def draw(recorded: str, palette: Palette) -> str:
    """Return the terminal.

    Args:
        recorded: what the command has printed, without colours.
        palette: of the page.

    Raises:
        ValueError: a line is longer than the terminal is wide.
    """
    lines = shown(recorded)
    for line in lines:
        if len(line) > LONGEST:
            raise ValueError(f"more than {LONGEST} characters: {line}")
    width = round(2 * LEFT + LONGEST * CHARACTER)
    height = BAR + TOP + LINE * (len(lines) + 2)
    terminal = Drawing(width, height, palette, TITLE, font=MONOSPACE)
    terminal.add(f"<style>{_style(len(lines))}</style>")
    terminal.add(f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND[palette.name]}"/>')
    for number, color in enumerate(("#ff6b60", "#f5bd4f", "#61c554")):
        terminal.add(f'<circle cx="{22 + 20 * number}" cy="20" r="6" fill="{color}"/>')
    rows = [f'<tspan fill="{PROMPT}">$ </tspan>{COMMAND}', *map(_colored, lines)]
    for number, row in enumerate(rows):
        terminal.add(
            f'<text class="line n{number}" x="{LEFT}" y="{BAR + TOP + LINE * number}" '
            f'font-size="{SIZE}" fill="{INK}" xml:space="preserve">{row}</text>'
        )
    return terminal.svg()


def _colored(line: str) -> str:
    if line.startswith(GOOD):
        return f'<tspan fill="{GREEN}" font-weight="700">{escape(line)}</tspan>'
    step = STEP.match(line)
    if step is None:
        return escape(line)
    time, text = escape(step[0]), escape(line[step.end() :])
    if KILLED in text:
        text = f'<tspan fill="{RED}">{text}</tspan>'
    return f'<tspan fill="{MUTED}">{time}</tspan>{text}'


def _style(count: int) -> str:
    """Show one line after the other, for those who like to see motion; then all of them."""
    return "".join(
        (
            "@media (prefers-reduced-motion: no-preference) {",
            "@keyframes show { from { opacity: 0 } to { opacity: 1 } }",
            ".line { opacity: 0; animation: show 0.1s forwards }",
            *(f".n{n} {{ animation-delay: {n * SECONDS_A_LINE:g}s }}" for n in range(count + 1)),
            "}",
        )
    )


def kinds(recorded: str) -> Iterator[str]:
    """Yield the lines of a recording without what differs from run to run."""
    for line in shown(recorded):
        yield re.sub(r"[\d.]+", "#", re.sub(r" +", " ", line)).strip()
