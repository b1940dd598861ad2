"""Batch of one partition: an Arrow batch whose rows can be taken for events of the client."""

from collections.abc import Sequence
from typing import Any, overload

import pyarrow as pa
from azure.eventhub import EventData

from eventhub_checkpoints.receive.batches import record_batch, string_array
from eventhub_checkpoints.receive.columns import (
    ENQUEUED_TIME,
    OFFSET,
    PARTITION_KEY,
    PUBLISHER,
    SEQUENCE_NUMBER,
    Columns,
)

ANNOTATIONS = {
    "enqueuedTime": ENQUEUED_TIME,
    "publisher": PUBLISHER,
    "partitionKey": PARTITION_KEY,
}
"""Message annotations by the columns that hold them."""


class PartitionBatch(Sequence[EventData]):
    """Rows of a partition, in order.

    What follows the progress of a partition, retries and keeps dead letters needs events: as a
    sequence, a batch makes those that are asked for.

    Args:
        arrow: the columns that were chosen.
        numbers: sequence number of each row, ascending; a range if none is missing.
        offsets: of each row; they need not be among the columns.

    Attributes:
        arrow, numbers: see above.
    """

    __slots__ = ("_offsets", "arrow", "numbers")

    def __init__(self, arrow: pa.RecordBatch, numbers: Sequence[int], offsets: pa.Array) -> None:
        self.arrow = arrow
        self.numbers = numbers
        self._offsets = offsets

    @classmethod
    def of(cls, partition_id: str, columns: Columns, schema: pa.Schema) -> "PartitionBatch":
        """Return received events as a batch with the columns of a schema."""
        numbers: Sequence[int] = columns.numbers
        if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
            numbers = range(numbers[0], numbers[-1] + 1)
        arrow = record_batch(partition_id, columns, schema)
        return cls(arrow, numbers, string_array(columns.offsets))

    @property
    def last(self) -> tuple[int, str | None]:
        """Sequence number and offset of the last row."""
        return self.numbers[-1], self._offsets[-1].as_py()

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> EventData: ...

    @overload
    def __getitem__(self, at: slice) -> "PartitionBatch": ...

    def __getitem__(self, at: int | slice) -> "EventData | PartitionBatch":
        if isinstance(at, slice):
            begin, end, _ = at.indices(len(self))
            size = max(0, end - begin)
            arrow, offsets = self.arrow.slice(begin, size), self._offsets.slice(begin, size)
            return PartitionBatch(arrow, self.numbers[begin:end], offsets)
        return self._event(range(len(self))[at])

    def _event(self, at: int) -> EventData:
        """Return a row as an event of the client; what is in no chosen column is missing."""
        (row,) = self.arrow.slice(at, 1).to_pylist()
        event = EventData(row.get("body") or b"")
        event.properties = dict(row.get("properties") or [])
        annotations: dict[Any, Any] = {SEQUENCE_NUMBER: self.numbers[at]}
        if (offset := self._offsets[at].as_py()) is not None:
            annotations[OFFSET] = offset.encode()
        for name, annotation in ANNOTATIONS.items():
            if (value := row.get(name)) is not None:
                is_time = name == "enqueuedTime"
                annotations[annotation] = round(value.timestamp() * 1000) if is_time else value
        event.raw_amqp_message.annotations = annotations
        return event
