"""Ranges of events, and the settings for reading them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import is_count, require, require_flag, require_seconds
from eventhub_checkpoints.errors import ConfigurationError

ROWS_PER_BATCH = 2000
PREFETCH = 1000
RECEIVER_TIMEOUT = 60.0
OPERATION_TIMEOUT = 60.0

ReceivePath = Literal["auto", "fast", "public"]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Events of one partition from a sequence number up to, not including, another.

    Raises:
        ConfigurationError: it ends before it begins, or one of the three values is invalid.
    """

    partition_id: str
    from_sequence_number: int
    until_sequence_number: int

    def __post_init__(self) -> None:
        numbers = (self.from_sequence_number, self.until_sequence_number)
        if not isinstance(self.partition_id, str) or not all(
            type(number) is int and number >= 0 for number in numbers
        ):
            raise ConfigurationError(
                f"{quoted(self)} is not a range; expected a partition id, such as '0', and two "
                "sequence numbers of at least 0"
            )
        if self.from_sequence_number > self.until_sequence_number:
            raise ConfigurationError(
                f"partition {self.partition_id}: until_sequence_number is "
                f"{self.until_sequence_number}; expected {self.from_sequence_number} or more"
            )

    @property
    def is_empty(self) -> bool:
        """Return whether the range is empty."""
        return self.from_sequence_number == self.until_sequence_number


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings for reading a range.

    Attributes:
        receive_path: `fast` decodes the frames of the client's connection, `public` uses the
            client's events, `auto` uses `fast` where it works, else `public`.
        rows_per_batch: maximum number of rows of an Arrow batch.
        prefetch: events that the service may send ahead. On the public path the memory of a task
            is bounded by four times as many events and one batch of `rows_per_batch` rows or
            16 MiB of bodies: at 1000 events of 1 KiB some 4 MiB, of 1 MiB some 4 GiB, so lower it
            for large ones. The fast path requests up to twenty times as many, and keeps what it
            reads for a batch and the batch: the rest waits in the sockets.
        receiver_timeout: seconds without an event before the hub is queried for the reason.
        operation_timeout: seconds for that query.
        fail_on_data_loss: False continues after a warning where events have expired.
        owner_level: makes a receiver exclusive (AMQP only): the hub disconnects receivers of the
            group that have none, the same or a lower one, and refuses them while this one reads.
            None: it shares the partition with up to four others.

    Raises:
        ConfigurationError: one of them is invalid.
    """

    rows_per_batch: int = ROWS_PER_BATCH
    prefetch: int = PREFETCH
    receiver_timeout: float = RECEIVER_TIMEOUT
    operation_timeout: float = OPERATION_TIMEOUT
    fail_on_data_loss: bool = True
    receive_path: ReceivePath = "auto"
    owner_level: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows_per_batch", "prefetch"):
            value = getattr(self, name)
            require(name, value, is_count(value), "a whole number, 1 or more")
        require_seconds("receiver_timeout", self.receiver_timeout)
        require_seconds("operation_timeout", self.operation_timeout)
        require_flag("fail_on_data_loss", self.fail_on_data_loss)
        paths = get_args(ReceivePath)
        is_path = isinstance(self.receive_path, str) and self.receive_path in paths
        require("receive_path", self.receive_path, is_path, f"one of {', '.join(paths)}")
        level = self.owner_level
        is_level = level is None or is_count(level, least=0)
        require("owner_level", level, is_level, "a whole number, 0 or more, or None")


def runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and end of each run of consecutive numbers; the end is not part of the run."""
    breaks = [at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1]
    for begin, end in pairwise([0, *breaks, len(numbers)] if numbers else []):
        yield numbers[begin], numbers[end - 1] + 1
