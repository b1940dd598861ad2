"""Range of one partition as Arrow batches: exactly these events, or an error."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import accumulate

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.columns import record_batch
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.reader import RangeReader

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error

BYTES_PER_BATCH = 16 * 2**20
"""Bytes of bodies at which a batch is complete, however few its rows."""

DEFAULT_SETTINGS = ReadSettings()


def read_range(
    address: Address, wanted: OffsetRange, settings: ReadSettings = DEFAULT_SETTINGS
) -> Generator[pa.RecordBatch, None, None]:
    """Read a range in order, each event once, in batches of the columns in `columns.SCHEMA`.

    Sequence numbers removed by compaction are skipped. The generator closes its receiver when it
    ends or is closed.

    Raises:
        DataLossError: events of the range have expired, or the hub ends before it.
        ConfigurationError: the hub or consumer group does not exist, or access is refused.
        HubUnavailableError: the hub has the events, but delivers none of them, or the client gave
            up after its own retries.
    """
    with closing(RangeReader(address, wanted, settings).parts()) as parts:
        for columns in in_batches(parts, settings.rows_per_batch, BYTES_PER_BATCH):
            yield record_batch(wanted.partition_id, columns)


def in_batches(parts: Iterable[Columns], rows: int, size: int) -> Iterator[Columns]:
    """Yield the same events in parts of `rows` rows, or fewer if bodies reach `size` (bytes)."""
    held = Columns()
    for part in parts:
        held.extend(part)
        while end := full_at(held, rows, size):
            yield held.part(0, end)
            held = held.part(end, len(held))
    if held:
        yield held


def full_at(held: Columns, rows: int, size: int) -> int | None:
    """Return how many rows complete a batch; None while there are too few."""
    if held.size >= size:
        reached = accumulate(len(body) for body in held.bodies)
        return min(rows, 1 + next(place for place, sum_ in enumerate(reached) if sum_ >= size))
    return rows if len(held) >= rows else None
