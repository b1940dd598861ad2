"""What was measured, as a table and as a JSON file."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cases import Entry
from benchmarks.measuring import BARE, OFFICIAL, OURS, SIDES, Round

MEASURES = ("cpu", "wall", "memory")
PACKAGES = (
    "eventhub-checkpoints",
    "azure-eventhub",
    "azure-storage-blob",
    "azure-core",
    "azure-eventhub-checkpointstoreblob",
    "azure-eventhub-checkpointstoreblob-aio",
)
WIDTH = 156


@dataclass(frozen=True)
class Result:
    """All rounds of one case."""

    name: str
    entry: Entry
    rounds: Sequence[Round]

    def values(self, side: str, measure: str) -> list[float]:
        """One figure for each round; empty where this was not measured."""
        found = [getattr(each[side], measure) for each in self.rounds if side in each]
        return [value for value in found if value is not None]

    def ratio(self, other: str, measure: str) -> float | None:
        """Ours divided by another side's: the median of the rounds' ratios.

        Each round is compared with itself, so a machine that gets slower does no harm.
        """
        theirs = self.values(other, measure)
        ours = self.values(OURS, measure)
        return median(a / b for a, b in zip(ours, theirs, strict=True)) if theirs else None

    def reached(self, measure: str) -> list[tuple[str, bool]]:
        """The targets of a measure, and whether each was reached."""
        targets = [target for target in self.entry.targets if target.measure == measure]
        return [
            (str(target), (self.ratio(target.other, measure) or 0.0) <= target.most)
            for target in targets
        ]

    def as_dict(self) -> dict[str, Any]:
        """For the JSON file; seconds and bytes."""
        measures = [measure for measure in MEASURES if self.values(OURS, measure)]
        return {
            "name": self.name,
            "title": self.entry.title,
            "measures": {measure: self._measure(measure) for measure in measures},
        }

    def _measure(self, measure: str) -> dict[str, Any]:
        sides = [side for side in SIDES if self.values(side, measure)]
        return {
            "rounds": {side: self.values(side, measure) for side in sides},
            "median": {side: median(self.values(side, measure)) for side in sides},
            "ratio": {side: self.ratio(side, measure) for side in sides[1:]},
            "targets": [
                {"target": text, "reached": holds} for text, holds in self.reached(measure)
            ],
        }


def show(results: Sequence[Result], console: Console) -> None:
    """Print the table."""
    table = Table(title="cost of one operation: median of the rounds")
    table.add_column("operation")
    for heading in ("measure", OURS, OFFICIAL, BARE, "ours / official", "ours / bare"):
        table.add_column(heading, justify="right")
    table.add_column("target")
    table.add_column("reached")
    for result in results:
        title = result.entry.title
        for measure in MEASURES:
            if result.values(OURS, measure):
                targets = result.reached(measure)
                table.add_row(
                    title,
                    measure,
                    *(spelled(result.values(side, measure), measure) for side in SIDES),
                    *(times(result.ratio(side, measure)) for side in (OFFICIAL, BARE)),
                    "\n".join(text for text, _ in targets),
                    "\n".join("yes" if holds else "NO" for _, holds in targets),
                )
                title = ""
        table.add_section()
    console.print(table)


def spelled(values: Sequence[float], measure: str) -> str:
    """The median with its unit."""
    if not values:
        return ""
    value = median(values)
    if measure == "memory":
        return f"{value / 2**20:.1f} MiB"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


def times(ratio: float | None) -> str:
    """A ratio for the table."""
    return "" if ratio is None else f"{ratio:.2f}"


def write(results: Sequence[Result], quick: bool, path: Path) -> None:
    """Write the JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {package: version(package) for package in PACKAGES},
        "quick": quick,
        "cases": [result.as_dict() for result in results],
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def wide_console() -> Console:
    """A console that is wide enough for the table also where there is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
