"""Batch of one partition: an Arrow batch whose rows can be taken for events of the client."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import pyarrow as pa
from azure.eventhub import EventData

from eventhub_checkpoints.receive.batches import record_batch, string_array
from eventhub_checkpoints.receive.columns import COLUMNS, OFFSET, SEQUENCE_NUMBER, Columns, Type

ANNOTATIONS = [column for column in COLUMNS.values() if column.annotation is not None]
"""Columns that hold a message annotation each."""
AS_RECEIVED: Mapping[Type, Callable[[Any], Any]] = {
    "string": str.encode,
    "bigint": int,
    "timestamp": lambda time: round(time.timestamp() * 1000),
}
"""How a value of a column becomes that of an annotation again, by the column's type."""
MESSAGE_PROPERTIES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    **{
        name: (name.replace("-", "_"), str.encode)
        for name in (
            *("message-id", "user-id", "to", "subject", "reply-to", "correlation-id"),
            *("content-type", "content-encoding", "group-id", "reply-to-group-id"),
        )
    },
    **{
        name: (name.replace("-", "_"), int)
        for name in ("absolute-expiry-time", "creation-time", "group-sequence")
    },
}
"""Properties of a message by their names in the column `systemProperties`, and how to read them.

Source: azure-eventhub 5.15.1, `EventData.system_properties`.
"""
PIECE = 1_000
"""Rows that are made events of at a time."""


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
        is_chosen = "offset" in schema.names
        offsets = arrow["offset"] if is_chosen else string_array(columns.offsets)
        return cls(arrow, numbers, offsets)

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
        if not isinstance(at, slice):
            (event,) = self._part(range(len(self))[at], 1)
            return event
        begin, end, step = at.indices(len(self))
        if step == 1:
            return self._part(begin, max(0, end - begin))
        rows = pa.array(range(begin, end, step), pa.int64())
        return PartitionBatch(self.arrow.take(rows), self.numbers[at], self._offsets.take(rows))

    def __iter__(self) -> Iterator[EventData]:
        # In pieces: a whole batch of events takes far more memory than its columns.
        for begin in range(0, len(self), PIECE):
            part = self._part(begin, PIECE)
            rows = zip(part.arrow.to_pylist(), part.numbers, part._offsets, strict=True)
            for row, number, offset in rows:
                yield event_of(row, number, offset.as_py())

    def _part(self, begin: int, size: int) -> "PartitionBatch":
        arrow, offsets = self.arrow.slice(begin, size), self._offsets.slice(begin, size)
        return PartitionBatch(arrow, self.numbers[begin : begin + size], offsets)


def event_of(row: Mapping[str, Any], number: int, offset: str | None) -> EventData:
    """Return a row as an event of the client; what is in no chosen column is missing.

    Args:
        row: the columns that were chosen.
        number: its sequence number.
        offset: its offset.
    """
    event = EventData(row.get("body") or b"")
    event.properties = dict(row.get("properties") or [])
    annotations: dict[Any, Any] = {
        column.annotation: AS_RECEIVED[column.type](value)
        for column in ANNOTATIONS
        if (value := row.get(column.name)) is not None
    }
    annotations[SEQUENCE_NUMBER] = number
    if offset is not None:
        annotations[OFFSET] = offset.encode()
    message = event.raw_amqp_message
    message.annotations = annotations
    for key, value in row.get("systemProperties") or []:
        if key in MESSAGE_PROPERTIES:
            name, read = MESSAGE_PROPERTIES[key]
            setattr(message.properties, name, read(value))
        else:
            annotations.setdefault(key.encode(), value.encode())
    return event
