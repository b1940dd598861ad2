"""Comparison of the promises about one partition with what happened."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
        f"partition {one.partition}: {sentence}"
        for one in outcomes
        for promise in PROMISES
        for sentence in promise(one)
    ]


def _counted(one: PartitionOutcome) -> Iterator[str]:
    if len(one.published) != one.sent:
        yield f"the hub has {len(one.published)} events, and {one.sent} were sent"


def _none_lost(one: PartitionOutcome) -> Iterator[str]:
    if one.lost:
        yield f"lost: {_few(one.lost)}"


def _none_invented(one: PartitionOutcome) -> Iterator[str]:
    strange = sorted({*one.processed, *one.read_by_spark} - {*one.published})
    if strange:
        yield f"processed, but never published: {_few(strange)}"


def _checkpoint_kept(one: PartitionOutcome) -> Iterator[str]:
    if one.checkpoint is None:
        if one.processed:
            yield "its events were processed, and it has no checkpoint"
    elif one.saved is not None and one.checkpoint < one.saved:
        yield f"the checkpoint is {one.checkpoint}, after {one.saved} had been saved"
    elif one.checkpoint not in one.processed:
        yield f"the checkpoint is {one.checkpoint}, an event that no consumer processed"


def _spark_goes_on(one: PartitionOutcome) -> Iterator[str]:
    expected = one.rest.start if one.rest else None
    if one.first_of_spark != expected:
        yield (
            f"Spark's first event is {_or_none(one.first_of_spark)}, "
            f"and the one after the checkpoint is {_or_none(expected)}"
        )
    if sorted(one.read_by_spark) != list(one.rest):
        missed = sorted(set(one.rest) - set(one.read_by_spark))
        again = [number for number, times in Counter(one.read_by_spark).items() if times > 1]
        before = sorted(set(one.read_by_spark) - set(one.rest))
        yield (
            f"Spark read {len(one.read_by_spark)} events, and {len(one.rest)} follow the "
            f"checkpoint (missed: {_few(missed)}; twice: {_few(again)}; others: {_few(before)})"
        )


def _progress_is_back(one: PartitionOutcome) -> Iterator[str]:
    last = one.published.stop - 1 if one.published else one.checkpoint
    if one.checkpoint_of_spark != last:
        yield (
            f"the checkpoint after Spark is {_or_none(one.checkpoint_of_spark)}, "
            f"and the last event is {_or_none(last)}"
        )
    if one.read_after_spark:
        yield f"a consumer after Spark was given: {_few(one.read_after_spark)}"


PROMISES = (
    _counted,
    _none_lost,
    _none_invented,
    _checkpoint_kept,
    _spark_goes_on,
    _progress_is_back,
)


def _or_none(number: int | None) -> str:
    return "none" if number is None else str(number)


def _few(numbers: Sequence[int]) -> str:
    """Return the first numbers as text, and the total count if there are more."""
    shown = ", ".join(map(str, numbers[:SHOWN])) or "none"
    return shown if len(numbers) <= SHOWN else f"{shown}, ... ({len(numbers)} in all)"
