"""Settings for sending events."""

from dataclasses import dataclass
from typing import Literal, get_args

from eventhub_checkpoints._shared.partition_keys import Partitioner
from eventhub_checkpoints._shared.settings import is_count, require, require_seconds

SendPath = Literal["auto", "fast", "public"]

BYTES_PER_BATCH = 1024 * 1024
MOST_IN_FLIGHT = 8
OPERATION_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class SendSettings:
    """Settings for sending events.

    Attributes:
        send_path: `fast` puts encoded batches on the client's connection, `public` uses the
            client's own batches, `auto` uses `fast` where it works, else `public`.
        bytes_per_batch: a batch is sent when the next event would exceed this size, or the
            hub's limit where that is smaller. A larger event is sent alone, up to that limit.
        most_in_flight: maximum number of batches without an answer. At most one of a partition
            is, unless its events name neither partition nor key.
        operation_timeout: seconds after which a batch that was not accepted is an error; they
            include all repetitions, and the pauses for which the service asks.
        partitioner: which partition a key gets: `service`, as the service and the official .NET,
            Java and JavaScript clients decide; `python`, as azure-eventhub's producer with
            `buffered_mode`, which places up to half of the keys elsewhere.

    Raises:
        ConfigurationError: one of them is invalid.
    """

    send_path: SendPath = "auto"
    bytes_per_batch: int = BYTES_PER_BATCH
    most_in_flight: int = MOST_IN_FLIGHT
    operation_timeout: float = OPERATION_TIMEOUT
    partitioner: Partitioner = "service"

    def __post_init__(self) -> None:
        for name in ("bytes_per_batch", "most_in_flight"):
            value = getattr(self, name)
            require(name, value, is_count(value), "a whole number, 1 or more")
        require_seconds("operation_timeout", self.operation_timeout)
        for name, choices in (("send_path", SendPath), ("partitioner", Partitioner)):
            value, known = getattr(self, name), get_args(choices)
            is_known = isinstance(value, str) and value in known
            require(name, value, is_known, f"one of {', '.join(known)}")
