"""A terminal with what the demo has printed, line by line.

`ehcp demo >docs/images/demo.txt` records it anew, and a test of the demo compares the lines.
"""

import re
from html import escape

from diagrams.drawing import DARK, MONOSPACE, Drawing

COMMAND = "ehcp demo"
TITLE = (
    "The output of ehcp demo: two consumers share the partitions of a hub, one is killed, the "
    "other takes over, PySpark continues from the checkpoints, and every event is counted."
)
SIZE, LINE, CHARACTER = 13, 19, 7.83
LEFT, TOP, BAR = 18, 22, 34
LONGEST = 80
"""Characters of a line, as a terminal has them."""
SECONDS_A_LINE = 0.25
STEP = re.compile(r" *[\d.]+ s  ")
PROGRESS = re.compile(r"(?: *[\d.]+ s  )(?:published \d|.*, for \d+ s$)")
"""Lines that come as often as time passes."""
AFTER = "\nTwice: "
"""Beginning of what explains the table."""
KILLED, GOOD = "kill -9", "Nothing was lost"

GROUND = "#10202e"
BUTTONS = ("#ff6b60", "#f5bd4f", "#61c554")


def shown(recorded: str) -> list[str]:
    """Return the lines of a recording that tell the story: from the first step to the table."""
    lines = [line.rstrip() for line in recorded.partition(AFTER)[0].rstrip().splitlines()]
    first = next(number for number, line in enumerate(lines) if STEP.match(line))
    return [line for line in lines[first:] if not PROGRESS.match(line)]


def draw(recorded: str) -> str:
    """Return the terminal, which is dark on any page.

    Args:
        recorded: what the command has printed, without colours.

    Raises:
        ValueError: a line is longer than the terminal is wide.
    """
    lines = shown(recorded)
    for line in lines:
        if len(line) > LONGEST:
            raise ValueError(f"more than {LONGEST} characters: {line}")
    width = round(2 * LEFT + LONGEST * CHARACTER)
    height = BAR + TOP + LINE * (len(lines) + 2)
    terminal = Drawing(width, height, DARK, TITLE, font=MONOSPACE)
    terminal.add(f"<style>{_style(len(lines))}</style>")
    terminal.add(f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>')
    for number, color in enumerate(BUTTONS):
        terminal.add(f'<circle cx="{22 + 20 * number}" cy="20" r="6" fill="{color}"/>')
    rows = [f'<tspan fill="{DARK.first}">$ </tspan>{COMMAND}', *map(_colored, lines)]
    for number, row in enumerate(rows):
        terminal.add(
            f'<text class="line n{number}" x="{LEFT}" y="{BAR + TOP + LINE * number}" '
            f'font-size="{SIZE}" fill="{DARK.ink}" xml:space="preserve">{row}</text>'
        )
    return terminal.svg()


def _colored(line: str) -> str:
    if line.startswith(GOOD):
        return f'<tspan fill="{DARK.store}" font-weight="700">{escape(line)}</tspan>'
    step = STEP.match(line)
    if step is None:
        return escape(line)
    time, text = escape(step[0]), escape(line[step.end() :])
    if KILLED in text:
        text = f'<tspan fill="{DARK.alarm}">{text}</tspan>'
    return f'<tspan fill="{DARK.muted}">{time}</tspan>{text}'


def _style(count: int) -> str:
    """Light one line after the other; a line that waits is dim, so the picture is never empty."""
    return "".join(
        (
            "@media (prefers-reduced-motion: no-preference) {",
            "@keyframes show { from { opacity: 0.3 } }",
            ".line { animation: show 0.1s backwards }",
            *(f".n{n} {{ animation-delay: {n * SECONDS_A_LINE:g}s }}" for n in range(count + 1)),
            "}",
        )
    )


def kinds(recorded: str) -> set[str]:
    """Return the lines of a recording without what differs from run to run."""
    found = set()
    for line in shown(recorded):
        words = re.sub(r"checkpoints go to .*", "checkpoints go to a store", line)
        found.add(re.sub(r"#(?:,? #)*", "#", re.sub(r"[\d.]+", "#", " ".join(words.split()))))
    return found
