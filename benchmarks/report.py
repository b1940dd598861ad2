"""What was measured, as a table and as a JSON file."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import BARE, OFFICIAL, SIDES
from benchmarks.results import Result

PACKAGES = (
    "eventhub-checkpoints",
    "azure-eventhub",
    "azure-storage-blob",
    "azure-core",
    "azure-eventhub-checkpointstoreblob",
    "azure-eventhub-checkpointstoreblob-aio",
)
WIDTH = 172


def show(results: Sequence[Result], console: Console) -> None:
    """Print the table."""
    table = Table(title="cost of one operation: median of the rounds")
    table.add_column("operation")
    for heading in ("measure", *SIDES, "ours / official", "ours / bare", "ours - bare"):
        table.add_column(heading, justify="right")
    table.add_column("target")
    table.add_column("reached")
    for result in results:
        title = result.entry.title
        for measure in result.measures:
            targets = result.reached(measure)
            above = result.above_bare(measure)
            table.add_row(
                title,
                measure,
                *(spelled(result.values(side, measure), measure) for side in SIDES),
                *(times(result.ratio(side, measure)) for side in (OFFICIAL, BARE)),
                spelled([] if above is None else [above], measure),
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
    if measure == "rate":
        return f"{value:,.0f} /s"
    if measure == "trips":
        return f"{value:g}"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


def times(ratio: float | None) -> str:
    """A ratio for the table."""
    return "" if ratio is None else f"{ratio:.2f}"


def write(
    results: Sequence[Result],
    quick: bool,
    path: Path,
    packages: Sequence[str] = (),
    servers: Mapping[str, str] | None = None,
) -> None:
    """Write the JSON file, with the versions of some more packages and of servers."""
    cases = [result.as_dict() for result in results]
    write_json(cases, quick, path, (*PACKAGES, *packages), servers or {})


def write_json(
    cases: Sequence[Mapping[str, Any]],
    quick: bool,
    path: Path,
    packages: Sequence[str],
    servers: Mapping[str, str],
) -> None:
    """Write the JSON file of these cases, with versions of packages and servers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {package: version(package) for package in packages},
        "servers": dict(servers),
        "quick": quick,
        "cases": list(cases),
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def wide_console() -> Console:
    """A console that is wide enough for the table also where there is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
