"""State of a partition, from a window of samples of its lag.

The rules for OK, WARN, STALL, STOP and REWIND are those of Burrow, which need no thresholds: they
compare the checkpoints with each other and with the end of the partition.

Source: Burrow, `core/internal/evaluator/caching.go`, and its wiki, "Consumer Lag Evaluation Rules".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Self

from eventhub_checkpoints.operations import positions
from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag

WINDOW = 10
"""Samples by which states are found, as many as Burrow's window has."""
FEWEST_SAMPLES = 3
"""Fewer say nothing about a partition with lag."""


class State(StrEnum):
    """State of a partition, from the best to the worst.

    A group has the worst state of its partitions. MOVED comes first, so a group that was moved in
    part has the worst state of the partitions that remain. UNKNOWN is worse than a warning, and
    better than an error.

    Attributes:
        meaning: what it says of a partition.
        rank: how bad it is: its place in the order, from 0.
    """

    meaning: str
    rank: int

    def __new__(cls, name: str, meaning: str) -> Self:
        """Return the state of this name."""
        state = str.__new__(cls, name)
        state._value_ = name
        state.meaning = meaning
        state.rank = len(cls.__members__)
        return state

    MOVED = (
        positions.MOVED,
        "The partition was moved to another store, or is being moved here.",
    )
    OK = "OK", f"The lag is 0, or was 0 or fell in the last polls (at most {WINDOW})."
    WARN = (
        "WARN",
        "Checkpoints advance, but the lag did not fall between any two of the last polls "
        f"(at most {WINDOW}).",
    )
    UNOWNED = "UNOWNED", "No live member owns the partition, so nobody processes it."
    UNKNOWN = (
        "UNKNOWN",
        "The last poll failed, there were too few polls, or the checkpoint has no sequence number.",
    )
    REWIND = "REWIND", "A checkpoint went back, and has not reached its former position again."
    STALL = "STALL", "Checkpoints are stored, but always at the same event, and events wait."
    STOP = (
        "STOP",
        "Events wait, and more time has passed since the newest checkpoint than between the oldest "
        f"and the newest one of the last polls (at most {WINDOW}).",
    )
    LOST = "LOST", "Events expired before they were processed."
    GONE = "GONE", "The checkpoint is ahead of the newest event: the hub was re-created."

    @property
    def severity(self) -> int:
        """Return 0 (as expected), 1 (warning), 2 (error) or 3 (unknown), as monitoring plugins do.

        Source: Monitoring Plugins Development Guidelines, "Plugin Return Codes".
        """
        if self is State.UNKNOWN:
            return 3
        if self in (State.OK, State.MOVED):
            return 0
        return 1 if self in (State.WARN, State.UNOWNED) else 2


@dataclass(frozen=True, slots=True)
class Sample:
    """Position in one partition at one time.

    Attributes:
        time: in seconds since the epoch.
        written: when the checkpoint was stored, in seconds since the epoch; None if unknown.
    """

    time: float
    position: PartitionLag
    written: float | None

    @classmethod
    def of(cls, position: PartitionLag, now: float) -> "Sample":
        """Return the sample of a position that was read at a time."""
        age = position.checkpoint_age
        return cls(now, position, None if age is None else now - age)


def state_of(samples: Sequence[Sample], fewest: int = FEWEST_SAMPLES) -> State:
    """Return the state of a partition.

    Args:
        samples: of this partition, oldest first.
        fewest: number of samples below which the state is unknown, unless the newest one alone
            shows that something is wrong.
    """
    if not samples:
        return State.UNKNOWN
    newest = samples[-1].position
    if newest.is_moved:
        return State.MOVED
    if newest.is_gone:
        return State.GONE
    if newest.lost:
        return State.LOST
    if not newest.owner_id:
        return State.UNOWNED
    if newest.lag is None or len(samples) < fewest:
        return State.UNKNOWN
    return by_movement(samples)


def by_movement(samples: Sequence[Sample]) -> State:
    """Apply Burrow's rules, in its order."""
    newest = samples[-1]
    if newest.position.lag == 0:
        return State.OK
    commits = [
        (sample.position.checkpoint or 0, sample.time if sample.written is None else sample.written)
        for sample in distinct(samples)
    ]
    numbers = [number for number, _ in commits]
    first, last = commits[0][1], commits[-1][1]
    had_caught_up = any(sample.position.lag == 0 for sample in samples)
    if newest.time - last > last - first and not had_caught_up:
        return State.STOP
    if numbers[-1] < max(numbers):
        return State.REWIND
    if had_caught_up:
        return State.OK
    if len({*numbers}) == 1:
        return State.STALL
    lags = [sample.position.lag or 0 for sample in samples]
    return State.WARN if all(later >= earlier for earlier, later in pairwise(lags)) else State.OK


def distinct(samples: Sequence[Sample]) -> Iterable[Sample]:
    """Return the first sample of each write of a checkpoint.

    Where the time of the writes is unknown, two writes at the same event count as one.
    """
    previous: tuple[int | None, float | None] | None = None
    for sample in samples:
        write = sample.position.checkpoint, sample.written
        if write != previous:
            yield sample
        previous = write


def states(window: Sequence[GroupLag], fewest: int = FEWEST_SAMPLES) -> dict[str, State]:
    """Return the state of each partition of the newest sample, by partition id.

    Args:
        window: samples of one group, oldest first.
        fewest: see `state_of`.
    """
    samples: dict[str, list[Sample]] = {}
    for each in window:
        for position in each.partitions:
            samples.setdefault(position.partition_id, []).append(Sample.of(position, each.time))
    newest = window[-1].partitions if window else ()
    return {
        position.partition_id: state_of(samples[position.partition_id], fewest)
        for position in newest
    }


def worst(of_partitions: Iterable[State]) -> State:
    """Return the state of a group: the worst of its partitions."""
    return max(of_partitions, key=lambda state: state.rank, default=State.UNKNOWN)
