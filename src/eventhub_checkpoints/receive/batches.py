"""A range of one partition as Arrow batches: exactly these events, or an error."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.address import HubAddress
from eventhub_checkpoints.receive.columns import body_bytes, record_batch
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.reader import RangeReader

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "spark") from error

if TYPE_CHECKING:
    from azure.eventhub import EventData

BYTES_PER_BATCH = 16 * 2**20
"""A batch is given out when its bodies have reached this, however few its rows."""

DEFAULT_SETTINGS = ReadSettings()


def read_range(
    address: HubAddress, wanted: OffsetRange, settings: ReadSettings = DEFAULT_SETTINGS
) -> Iterator[pa.RecordBatch]:
    """Read a range, in order, each event once, in batches of the columns in `columns.SCHEMA`.

    Sequence numbers that were removed by compaction are passed over. The generator closes its
    receiver when it ends or is closed.

    Raises:
        DataLossError: events of the range have expired, or the hub ends before it.
        HubUnavailableError: the hub has the events, yet delivers none of them.
        EventHubError: the client gave up after its own retries.
    """
    rows: list[EventData] = []
    bodies: list[bytes] = []
    size = 0
    with closing(RangeReader(address, wanted, settings).lists()) as lists:
        for event in (event for events in lists for event in events):
            rows.append(event)
            bodies.append(body := body_bytes(event))
            size += len(body)
            if len(rows) >= settings.rows_per_batch or size >= BYTES_PER_BATCH:
                yield record_batch(wanted.partition_id, rows, bodies)
                rows, bodies, size = [], [], 0
    if rows:
        yield record_batch(wanted.partition_id, rows, bodies)
