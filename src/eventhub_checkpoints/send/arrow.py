"""Arrow batches as rows to send: the columns, and what is refused in them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.amqp.types import Timestamp
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError, MissingDriverError
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.columns import column_types
from eventhub_checkpoints.send.amqp.sender import HubSender
from eventhub_checkpoints.send.events import EventRows, PropertyMaps, PropertyValue
from eventhub_checkpoints.send.sender import Sender
from eventhub_checkpoints.send.settings import SendSettings

try:
    import pyarrow as pa
    from pyarrow import compute
except ImportError as error:
    raise MissingDriverError.of_extra("sending Arrow batches", "arrow") from error

BODY, PARTITION_ID, PARTITION_KEY = "body", "partitionId", "partitionKey"
PROPERTIES, CONTENT_TYPE = "properties", "contentType"
COLUMNS = (BODY, PARTITION_KEY, PARTITION_ID, PROPERTIES, CONTENT_TYPE)
"""Columns of events to send. Only `body` is required."""

DEFAULT_SETTINGS = SendSettings()


def send_batches(
    address: HubAddress,
    batches: Iterable[pa.RecordBatch],
    settings: SendSettings = DEFAULT_SETTINGS,
) -> int:
    """Send each row as an event, and return their number when the hub has confirmed all.

    Each event is sent at least once: a batch whose answer is lost is sent again.

    Args:
        address: the hub.
        batches: with the column `body` (binary or string), and optionally `partitionKey` or
            `partitionId`, `properties` (a map of strings, or of times) and `contentType`.
        settings: how to send.

    Raises:
        ConfigurationError: a column or row cannot be sent, the hub does not exist, or access is
            refused. The message says how many events were sent before.
        HubUnavailableError: the hub did not confirm a batch in time. The message also says this.
    """
    with HubSender(address, settings) as sender:
        send_all(sender, batches)
        return sender.accepted


def send_all(sender: Sender, batches: Iterable[pa.RecordBatch]) -> None:
    """Send all rows and wait for the hub's confirmation; raises as `send_batches`."""
    with stating_progress(sender):
        for batch in batches:
            sender.send(read_rows(batch))
        sender.flush()


ANSWERS_AWAITED = 5.0
"""Seconds after an error for the answers to batches that are on their way."""


@contextmanager
def stating_progress(sender: Sender) -> Iterator[None]:
    """Add to an error how many events were sent in this context, and how many may have been."""
    before = sender.accepted
    try:
        yield
    except CheckpointStoreError as error:
        in_doubt = sender.give_up(ANSWERS_AWAITED)
        sent = sender.accepted - before
        if not (sent or in_doubt):
            raise
        sentences = [str(error)]
        if sent:
            sentences.append(f"{sent:,} events were sent before and are in the hub")
        if in_doubt:
            which = "more" if sent else "events"
            sentences.append(
                f"Up to {in_doubt:,} {which} may be in the hub, which has not answered"
            )
        raise type(error)(". ".join(sentences)) from error


class Expected(NamedTuple):
    """Types that a column may have."""

    description: str
    check: Any


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is a string."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a type is a string, or bytes."""
    return bool(is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Return whether a type is a time that is the same everywhere, as it has a time zone."""
    return bool(pa.types.is_timestamp(kind) and kind.tz)


def is_properties(kind: pa.DataType) -> bool:
    """Return whether a type is a map from strings to strings, or to times."""
    if not (pa.types.is_map(kind) and is_text(kind.key_type)):
        return False
    return is_text(kind.item_type) or is_moment(kind.item_type)


EXPECTED = {
    BODY: Expected("binary or string", is_bytes),
    PARTITION_KEY: Expected("string", is_text),
    PARTITION_ID: Expected("string", is_text),
    PROPERTIES: Expected(
        "map<string,string> or map<string,timestamp>, in which a time has a time zone; cast other "
        "values to strings",
        is_properties,
    ),
    CONTENT_TYPE: Expected("string", is_text),
}

OF_RECEIVED = frozenset(column_types()) - frozenset(COLUMNS)
"""Columns of received events that the receiving hub, or nobody, sets when an event is sent."""


def check_schema(schema: pa.Schema) -> None:
    """Check that the columns can be sent; raises as `check_names` and `check_type`."""
    check_names(schema.names)
    for name in schema.names:
        check_type(name, schema.field(name).type)


def check_names(names: Sequence[str]) -> None:
    """Check that events have these columns.

    Raises:
        ConfigurationError: there is no `body`, another column, or a column twice.
    """
    known = ", ".join(COLUMNS)
    if unknown := sorted(set(names) - set(COLUMNS)):
        received = (
            ". Of events that were read from a hub, select body, partitionKey and properties; "
            "partition as partitionId keeps the partition"
        )
        raise ConfigurationError(
            f"column {quoted(unknown[0])} cannot be sent: an event has the columns {known}; "
            "select these, and put other values into body or properties"
            f"{received if OF_RECEIVED.intersection(unknown) else ''}"
        )
    if BODY not in names:
        raise ConfigurationError(f"the column body is missing; an event has the columns {known}")
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"the column {name} occurs twice; rename or drop one")


def check_type(name: str, kind: pa.DataType | str) -> None:
    """Check the type of a column.

    Args:
        name: one of `COLUMNS`.
        kind: its type; the name of one that Arrow does not have.

    Raises:
        ConfigurationError: it has another type.
    """
    expected = EXPECTED[name]
    if isinstance(kind, str) or not expected.check(kind):
        raise ConfigurationError(
            f"the column {name} has the type {kind}; expected {expected.description}"
        )


def read_rows(batch: pa.RecordBatch) -> EventRows:
    """Return the rows of an Arrow batch.

    Raises:
        ConfigurationError: a column or a row cannot be sent; the message names the row.
    """
    check_schema(batch.schema)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    body = columns[BODY]
    if body.null_count:
        row = compute.index(body.is_null(), True).as_py()
        raise ConfigurationError(
            f"row {row} of a batch has no body; filter it out, or send an empty one"
        )
    ids, keys = (read_texts(columns.get(name)) for name in (PARTITION_ID, PARTITION_KEY))
    check_targets(ids, keys)
    return EventRows(
        bodies=read_bytes(body),
        partition_ids=ids,
        partition_keys=keys,
        content_types=read_content_types(columns.get(CONTENT_TYPE)),
        properties=read_maps(columns.get(PROPERTIES)),
    )


def check_targets(ids: Sequence[str | None] | None, keys: Sequence[str | None] | None) -> None:
    """Check what chooses the partition of each row.

    Raises:
        ConfigurationError: a row has an id and a key, an id that is not a number, or an empty key.
    """
    for row, partition_id in enumerate(ids or ()):
        if partition_id is not None and not (partition_id.isascii() and partition_id.isdigit()):
            raise ConfigurationError(
                f"row {row} of a batch has the partitionId {quoted(partition_id)}; expected a "
                "number such as 0"
            )
        if partition_id is not None and keys is not None and keys[row] is not None:
            raise ConfigurationError(
                f"row {row} of a batch has a partitionKey and a partitionId; leave one of them out"
            )
    if keys is not None and "" in keys:
        raise ConfigurationError(
            f"row {keys.index('')} of a batch has an empty partitionKey; expected a key, or null"
        )


def read_bytes(column: pa.Array) -> list[bytes]:
    """Return the values of a column without nulls as bytes."""
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, ends, data = column.buffers()
    if data is None:
        return [b""] * len(column)
    begin = column.offset
    offsets = memoryview(ends).cast("q" if wide else "i")[begin : begin + len(column) + 1].tolist()
    # Slices of one object are three times as fast as `to_pylist`, which creates a scalar for each.
    first = offsets[0]
    raw = data[first : offsets[-1]].to_pybytes()
    if first:
        offsets = [at - first for at in offsets]
    return [raw[begin:end] for begin, end in pairwise(offsets)]


def read_texts(column: pa.Array | None) -> list[str | None] | None:
    """Return the values of a column of strings; None where it is missing or holds only nulls."""
    if column is None or column.null_count == len(column):
        return None
    values: list[str | None] = column.to_pylist()
    return values


def read_content_types(column: pa.Array | None) -> list[str | None] | None:
    """Return content types, which are ASCII as AMQP requires.

    Raises:
        ConfigurationError: a content type is not ASCII.
    """
    kinds = read_texts(column)
    for kind in set(kinds or ()):
        if kind is not None and not kind.isascii():
            raise ConfigurationError(f"the contentType is {quoted(kind)}; expected ASCII")
    return kinds


def read_maps(column: pa.Array | None) -> PropertyMaps | None:
    """Return properties; None where the column is missing or no row has any."""
    if column is None or column.null_count == len(column):
        return None
    if column.null_count:
        # The offsets of a null row may enclose pairs that are not part of it.
        column = compute.if_else(column.is_null(), pa.scalar([], column.type), column)
    begin = column.offset
    ends = memoryview(column.buffers()[1]).cast("i")[begin : begin + len(column) + 1].tolist()
    first, last = ends[0], ends[-1]
    if first == last:
        return None
    keys, items = column.keys[first:last], column.items[first:last]
    values: Sequence[PropertyValue | None]
    if pa.types.is_timestamp(items.type):
        values = read_moments(items)
    else:
        values = items.cast(pa.binary()).to_pylist() if items.null_count else read_bytes(items)
    return PropertyMaps(ends=[at - first for at in ends], keys=read_bytes(keys), values=values)


PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of a type of times, by its unit."""


def read_moments(column: pa.Array) -> list[Timestamp | None]:
    """Return times as those of AMQP, in milliseconds; the rest of a time is dropped."""
    ticks = PER_SECOND[column.type.unit]
    return [
        None if value is None else Timestamp(value * 1000 // ticks)
        for value in column.cast(pa.int64()).to_pylist()
    ]
