"""How this colour waits for the threads that read, and asks the hub: it does nothing else."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from eventhub_checkpoints._arrow_reading import CLOSE_TIMEOUT, Reading
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.receive.side_by_side import SideBySide

T = TypeVar("T")

IS_ASYNC = False


class Source(SideBySide):
    """Some ranges, read side by side."""

    def __init__(self, reading: Reading, ranges: Sequence[OffsetRange]) -> None:
        at_once = reading.partitions_at_once
        super().__init__(reading.address, ranges, reading.settings, at_once)

    def abandon(self) -> None:
        """Have all threads end soon; for whoever may not wait."""
        self.stop()

    def close(self) -> None:
        """Have all threads end, and wait for it."""
        self.stop()
        self.join(CLOSE_TIMEOUT)


def call(function: Callable[..., T], *args: object) -> T:
    """Call the function."""
    return function(*args)
