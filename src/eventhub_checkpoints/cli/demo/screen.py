"""Output of the demo: steps as they happen, a live table on a terminal, the final table."""

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from rich.box import SIMPLE
from rich.console import Console
from rich.live import Live
from rich.table import Table

from eventhub_checkpoints.cli.demo.verdict import PartitionOutcome

PLAIN_SECONDS = 2.0
"""Interval of the lines about the partitions, without a terminal."""

PLAIN_WIDTH = 100


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """Current state of a partition."""

    partition: str
    holders: str
    published: int
    processed: int
    checkpoint: int | None


class Screen(AbstractContextManager["Screen"]):
    """Steps above a live table; plain lines if standard output is not a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(highlight=False)
        if not console.is_terminal:
            console.width = PLAIN_WIDTH
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._began = time.monotonic()
        self._shown_at = self._began
        self._shown = ""

    @property
    def seconds(self) -> float:
        """Seconds since this screen was created."""
        return time.monotonic() - self._began

    def step(self, text: str) -> None:
        """Print a step with its time."""
        self._console.print(f"{self.seconds:5.1f} s  {text}", markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a line unchanged."""
        self._console.print(text, markup=False, soft_wrap=True)

    def show(self, rows: Sequence[PartitionRow]) -> None:
        """Show the progress of each partition."""
        if self._console.is_terminal:
            table = _progress_table(rows)
            table.title = f"{self.seconds:.0f} s"
            self._live.update(table, refresh=True)
        elif time.monotonic() - self._shown_at > PLAIN_SECONDS:
            self._shown_at = time.monotonic()
            line = _progress_line(rows)
            if line != self._shown:
                self.step(line)
            self._shown = line

    def results(self, outcomes: Iterable[PartitionOutcome]) -> None:
        """Print the final table."""
        self._console.print(_results_table(outcomes, self._console.is_terminal))

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def _progress_line(rows: Sequence[PartitionRow]) -> str:
    published, processed = sum(row.published for row in rows), sum(row.processed for row in rows)
    held: dict[str, list[str]] = {}
    for row in rows:
        held.setdefault(row.holders or "nobody", []).append(row.partition)
    shares = "; ".join(f"{name} holds {' '.join(of)}" for name, of in sorted(held.items()))
    return f"published {published}, processed {processed}; {shares}"


def _progress_table(rows: Sequence[PartitionRow]) -> Table:
    table = Table("partition", "held by", box=SIMPLE)
    for heading in ("published", "processed", "checkpoint"):
        table.add_column(heading, justify="right")
    for row in rows:
        counts = (row.published, row.processed, row.checkpoint)
        table.add_row(row.partition, row.holders or "-", *map(_or_dash, counts))
    return table


def _results_table(outcomes: Iterable[PartitionOutcome], terminal: bool) -> Table:
    table = Table(box=SIMPLE if terminal else None, pad_edge=terminal)
    headings = "partition, published, processed, processed twice, lost, last checkpoint"
    for heading in f"{headings}, Spark's first, Spark read, stored after".split(", "):
        table.add_column(heading, justify="right")
    for one in outcomes:
        counts = (
            len(one.published),
            len(set(one.processed)),
            one.twice,
            len(one.lost),
            one.checkpoint,
            one.first_of_spark,
            len(one.read_by_spark),
            one.checkpoint_of_spark,
        )
        table.add_row(one.partition, *map(_or_dash, counts))
    return table


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
