"""Promises about each partition, compared with what happened; and what the demo prints."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

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

WAIT_SECONDS = 10.0
"""Interval of the lines about a program that works in silence, without a terminal."""

PLAIN_WIDTH = 80
BAR_WIDTH = 22
TIME_WIDTH = 9
STYLES = {"A": "cyan", "B": "magenta", "C": "blue"}
"""Colors of the consumers."""
SAVED, PROCESSED, PUBLISHED = "green", "yellow", "bright_black"
"""Colors of a partition's events."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """Current state of a partition."""

    partition: str
    holders: str
    published: int
    processed: int
    checkpoint: int | None


class Screen(AbstractContextManager["Screen"]):
    """Steps above a live table; plain lines if standard output is not a terminal.

    Args:
        console: where to print; default: standard output.
        of_partition: number of events that each partition will have; 0 if that is not known.
    """

    def __init__(self, console: Console | None = None, of_partition: int = 0) -> None:
        console = console or Console(highlight=False)
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        if not console.is_terminal:
            console.width = PLAIN_WIDTH
        self._console, self._of_partition = console, of_partition
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._began = time.monotonic()
        self._shown_at = self._began
        self._shown = ""
        self._waiting, self._waits_since = "", 0.0
        self._spinner = Spinner("line" if console.options.ascii_only else "dots")

    @property
    def seconds(self) -> float:
        """Seconds since this screen was created."""
        return time.monotonic() - self._began

    def step(self, text: str) -> None:
        """Print a step with its time."""
        began = f"{self.seconds:5.1f} s".ljust(TIME_WIDTH)
        if self._is_live:
            line = Table.grid()
            line.add_column(width=TIME_WIDTH, style="dim")
            line.add_column(overflow="fold")
            line.add_row(began, Text(text))
            self._console.print(line)
        else:
            self.say(began + text)

    def say(self, text: str) -> None:
        """Print a line unchanged."""
        self._console.print(text, markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print an explanation, between empty lines."""
        self._console.print(Text(f"\n{text}\n", style="dim"), soft_wrap=True)

    def verdict(self, text: str, is_good: bool) -> None:
        """Print the result in one line."""
        style = f"bold {'green' if is_good else 'red'}"
        self._console.print(Text(f"\n{text}", style=style), soft_wrap=True)

    def show(self, rows: Sequence[PartitionRow], waiting: str = "") -> None:
        """Show the progress of each partition.

        Args:
            rows: the partitions.
            waiting: what is waited for, if that may take long without any progress.
        """
        if waiting != self._waiting:
            self._waiting, self._waits_since = waiting, time.monotonic()
            if waiting and not self._is_live:
                self.step(waiting)
        if self._is_live:
            self._live.update(Group(*self._progress(rows)), refresh=True)
        elif time.monotonic() - self._shown_at >= (WAIT_SECONDS if waiting else PLAIN_SECONDS):
            self._shown_at = time.monotonic()
            line = self._waited() if waiting else _progress_line(rows)
            if line != self._shown:
                self.step(line)
            self._shown = line

    def _waited(self) -> str:
        return f"{self._waiting}, for {time.monotonic() - self._waits_since:.0f} s"

    def _progress(self, rows: Sequence[PartitionRow]) -> Iterator[RenderableType]:
        most = max(self._of_partition, *(row.published for row in rows), 1)
        sign = "-" if self._console.options.ascii_only else "\N{BOX DRAWINGS HEAVY HORIZONTAL}"
        yield _progress_table(rows, most, sign)
        if self._waiting:
            self._spinner.update(text=Text(self._waited()))
            yield self._spinner
        else:
            yield Text(f"  {self.seconds:.0f} s", style="dim")

    def results(self, outcomes: Sequence[PartitionOutcome]) -> None:
        """Print the final table."""
        if not self._is_live:  # its box begins with an empty line
            self._console.print()
        self._console.print(_results_table(outcomes, self._is_live))

    def __enter__(self) -> Self:
        if self._is_live:
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


def _progress_table(rows: Sequence[PartitionRow], most: int, sign: str) -> Table:
    table = Table("partition", "held by", box=SIMPLE, caption_justify="left")
    table.add_column(
        Text.assemble(("saved", SAVED), " ", ("processed", PROCESSED), " ", ("sent", PUBLISHED)),
        width=BAR_WIDTH,
    )
    for heading in ("sent", "processed", "checkpoint"):
        table.add_column(heading, justify="right")
    for row in rows:
        counts = (row.published, row.processed, row.checkpoint)
        holders = Text(row.holders or "-", style=STYLES.get(row.holders, ""))
        table.add_row(row.partition, holders, _bar(row, most, sign), *map(_or_dash, counts))
    return table


def _bar(row: PartitionRow, most: int, sign: str) -> Text:
    saved = 0 if row.checkpoint is None else row.checkpoint + 1
    ends = (saved, max(saved, row.processed), max(saved, row.processed, row.published))
    bar, begin = Text(), 0
    for count, color in zip(ends, (SAVED, PROCESSED, PUBLISHED), strict=True):
        end = min(BAR_WIDTH, round(BAR_WIDTH * count / most))
        bar.append(sign * (end - begin), style=color)
        begin = end
    return bar


HEADINGS = (
    *("partition", "sent", "processed", "twice", "lost"),
    *("saved\nat", "Spark\nfrom", "Spark\nread", "saved\nafter"),
)


def _results_table(outcomes: Sequence[PartitionOutcome], is_live: bool) -> Table:
    rows = [
        (
            len(outcome.published),
            len(set(outcome.processed)),
            outcome.twice,
            len(outcome.lost),
            outcome.checkpoint,
            outcome.first_of_spark,
            len(outcome.read_by_spark),
            outcome.checkpoint_of_spark,
        )
        for outcome in outcomes
    ]
    sent, processed, twice, lost, _, _, read, _ = (
        sum(count or 0 for count in column) for column in zip(*rows, strict=True)
    )
    totals = ("all", sent, processed, twice, lost, "", "", read, "")
    table = Table(box=SIMPLE if is_live else None, pad_edge=is_live, show_footer=True)
    for heading, total in zip(HEADINGS, totals, strict=True):
        style = ("red" if lost else "green") if heading == "lost" else None
        table.add_column(heading, str(total), justify="right", style=style, no_wrap=True)
    for outcome, row in zip(outcomes, rows, strict=True):
        table.add_row(outcome.partition, *map(_or_dash, row))
    return table


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
