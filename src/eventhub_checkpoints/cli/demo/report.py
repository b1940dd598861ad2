"""Promises about each partition, compared with what happened; and what the demo prints."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from rich.box import SIMPLE
from rich.console import Console
from rich.live import Live
from rich.table import Table

SHOWN = 5
"""Maximum number of sequence numbers in a message."""


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """Final state of one partition.

    Attributes:
        partition: its id.
        sent: number of events that the publisher sent.
        published: the sequence numbers that the hub reports.
        processed: those that the consumers logged, in order, repetitions included.
        saved: the highest checkpoint that the store confirmed to a consumer; None for none.
        checkpoint: the one that Spark found in the store; None for none.
        read_by_spark: the sequence numbers that Spark read, in its order.
        checkpoint_of_spark: the one that is stored after Spark; None for none.
        read_after_spark: the sequence numbers that a consumer read after that.
    """

    partition: str
    sent: int
    published: range
    processed: Sequence[int]
    saved: int | None
    checkpoint: int | None
    read_by_spark: Sequence[int]
    checkpoint_of_spark: int | None
    read_after_spark: Sequence[int]

    @property
    def twice(self) -> int:
        """Number of events that were processed more than once, by any program."""
        seen = Counter(self.processed) + Counter(self.read_by_spark)
        return sum(times > 1 for times in seen.values())

    @property
    def lost(self) -> list[int]:
        """Published events that were not processed."""
        seen = {*self.processed, *self.read_by_spark}
        return [number for number in self.published if number not in seen]

    @property
    def first_of_spark(self) -> int | None:
        """Lowest sequence number that Spark read."""
        return min(self.read_by_spark, default=None)

    @property
    def rest(self) -> range:
        """Events after the checkpoint, which a job that begins there must read."""
        if self.checkpoint is None:
            return self.published
        return range(self.checkpoint + 1, self.published.stop)


def broken_promises(outcomes: Iterable[PartitionOutcome]) -> list[str]:
    """Return a message for each broken promise; empty if every promise was kept."""
    return [
        f"partition {outcome.partition}: {sentence}"
        for outcome in outcomes
        for sentence in (*_broken_by_consumers(outcome), *_broken_by_spark(outcome))
    ]


def _broken_by_consumers(outcome: PartitionOutcome) -> Iterator[str]:
    if len(outcome.published) != outcome.sent:
        yield f"the hub has {len(outcome.published)} events, and {outcome.sent} were sent"
    if outcome.lost:
        yield f"lost: {_few(outcome.lost)}"
    invented = sorted({*outcome.processed, *outcome.read_by_spark} - {*outcome.published})
    if invented:
        yield f"processed, but never published: {_few(invented)}"
    if outcome.checkpoint is None:
        if outcome.processed:
            yield "its events were processed, but it has no checkpoint"
    elif outcome.saved is not None and outcome.checkpoint < outcome.saved:
        yield f"the checkpoint is {outcome.checkpoint}, although {outcome.saved} was saved before"
    elif outcome.checkpoint not in outcome.processed:
        yield f"the checkpoint is {outcome.checkpoint}, an event that no consumer processed"


def _broken_by_spark(outcome: PartitionOutcome) -> Iterator[str]:
    read, rest = outcome.read_by_spark, outcome.rest
    expected = rest.start if rest else None
    if outcome.first_of_spark != expected:
        yield (
            f"Spark's first event is {_or_none(outcome.first_of_spark)}, "
            f"and the one after the checkpoint is {_or_none(expected)}"
        )
    if sorted(read) != list(rest):
        missed, others = sorted(set(rest) - set(read)), sorted(set(read) - set(rest))
        twice = [number for number, times in Counter(read).items() if times > 1]
        yield (
            f"Spark read {len(read)} events, and {len(rest)} follow the checkpoint "
            f"(missed: {_few(missed)}; twice: {_few(twice)}; others: {_few(others)})"
        )
    last = outcome.published.stop - 1 if outcome.published else outcome.checkpoint
    if outcome.checkpoint_of_spark != last:
        yield (
            f"the checkpoint after Spark is {_or_none(outcome.checkpoint_of_spark)}, "
            f"and the last event is {_or_none(last)}"
        )
    if outcome.read_after_spark:
        yield f"a consumer after Spark received: {_few(outcome.read_after_spark)}"


def _or_none(number: int | None) -> str:
    return "none" if number is None else str(number)


def _few(numbers: Sequence[int]) -> str:
    """Return the first numbers as text, and the total count if there are more."""
    shown = ", ".join(map(str, numbers[:SHOWN])) or "none"
    return shown if len(numbers) <= SHOWN else f"{shown}, ... ({len(numbers)} in all)"


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
    for outcome in outcomes:
        counts = (
            len(outcome.published),
            len(set(outcome.processed)),
            outcome.twice,
            len(outcome.lost),
            outcome.checkpoint,
            outcome.first_of_spark,
            len(outcome.read_by_spark),
            outcome.checkpoint_of_spark,
        )
        table.add_row(outcome.partition, *map(_or_dash, counts))
    return table


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
