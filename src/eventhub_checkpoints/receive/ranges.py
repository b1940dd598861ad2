"""What is read, and how."""

from dataclasses import dataclass
from typing import Literal, get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import is_count, is_seconds, require
from eventhub_checkpoints.errors import ConfigurationError

ROWS_PER_BATCH = 2000
PREFETCH = 1000
RECEIVER_TIMEOUT = 60.0
OPERATION_TIMEOUT = 60.0

ReceivePath = Literal["auto", "fast", "public"]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The events of one partition from a sequence number until, not including, another.

    Raises:
        ConfigurationError: it ends before it begins, or one of the three is none.
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
                "sequence numbers, of which the smallest is 0"
            )
        if self.from_sequence_number > self.until_sequence_number:
            raise ConfigurationError(
                f"partition {self.partition_id}: a range from {self.from_sequence_number} until "
                f"{self.until_sequence_number} ends before it begins"
            )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.from_sequence_number == self.until_sequence_number


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How a range is read.

    Attributes:
        receive_path: `fast` reads the frames of the client's connection by itself, `public` takes
            the client's events, `auto` is the first of them that works.
        rows_per_batch: an Arrow batch has at most this many rows.
        prefetch: events that the service may send ahead. On the public path the memory of a task
            is bounded by four times as many events and one batch of `rows_per_batch` rows or
            16 MiB of bodies: at 1000 events of 1 KiB some 4 MiB, of 1 MiB some 4 GiB, so lower it
            for large ones. The fast path asks for up to twenty times as many, and keeps what it
            reads for a batch and the batch: the rest waits in the sockets.
        receiver_timeout: seconds without an event before the hub is asked why.
        operation_timeout: seconds for that question.
        fail_on_data_loss: False goes on after a warning where events have expired.

    Raises:
        ConfigurationError: one of them cannot work.
    """

    rows_per_batch: int = ROWS_PER_BATCH
    prefetch: int = PREFETCH
    receiver_timeout: float = RECEIVER_TIMEOUT
    operation_timeout: float = OPERATION_TIMEOUT
    fail_on_data_loss: bool = True
    receive_path: ReceivePath = "auto"

    def __post_init__(self) -> None:
        for name in ("rows_per_batch", "prefetch"):
            value = getattr(self, name)
            require(name, value, is_count(value), "a whole number, 1 or more")
        for name in ("receiver_timeout", "operation_timeout"):
            value = getattr(self, name)
            require(name, value, is_seconds(value), "a number of seconds above 0")
        is_flag = isinstance(self.fail_on_data_loss, bool)
        require("fail_on_data_loss", self.fail_on_data_loss, is_flag, "True or False")
        paths = get_args(ReceivePath)
        is_path = isinstance(self.receive_path, str) and self.receive_path in paths
        require("receive_path", self.receive_path, is_path, f"one of {', '.join(paths)}")
