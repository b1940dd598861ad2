"""Names and position format of iothub-react's checkpoints.

Source: Azure/toketi-iothubreact 0.9: `AzureBlob.scala`, `CheckpointsTableSchema.scala`,
`CheckpointRecord.scala`, `IoTHubPartition.scala`.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from eventhub_checkpoints._shared.offset_words import meaning_of
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.legacy.leases import PARTITION_ID

BLOB_PREFIX = "partition-"
TABLE = "checkpoints"
LONGEST_VALUE = 64
"""Bytes; longer than any offset, or than the placeholders that were stored instead of one."""
OFFSET = re.compile("[0-9]{1,19}")


class StoredOffset(NamedTuple):
    """Contents of one row.

    Attributes:
        where: location of the row, for messages.
        partition: its number, as a string.
        offset: None if it is not a string.
    """

    where: str
    partition: str
    offset: str | None


def keyspace_of(namespace: str) -> str:
    """Return the keyspace of a namespace, with `_` for all but ASCII letters, digits and `_`.

    It was not quoted in the statements, so Cassandra folded it to lower case.
    """
    return re.sub("[^A-Za-z0-9_]", "_", namespace).lower()


def checkpoints_of(
    rows: Iterable[StoredOffset], scope: Scope, report: Callable[[str], None]
) -> list[Checkpoint]:
    """Return the checkpoints that rows hold, in the partitions' order.

    A row that records that nothing was saved yields none, and is not reported.

    Args:
        rows: the rows that were found.
        scope: the scope of the checkpoints; the rows do not contain it.
        report: called with a sentence for each row that cannot be read.
    """
    checkpoints: dict[int, Checkpoint] = {}
    for where, partition, offset in rows:
        # It never stored an empty text: such a row is damaged.
        if PARTITION_ID.fullmatch(partition) and offset and meaning_of(offset) is not None:
            continue
        if not PARTITION_ID.fullmatch(partition) or not OFFSET.fullmatch(offset or ""):
            report(f"{where} was left out: it holds no offset of a partition")
            continue
        checkpoints[int(partition)] = Checkpoint(scope, partition, offset or "", None)
    return [checkpoints[number] for number in sorted(checkpoints)]
