"""How iothub-react named places, and how it stored positions.

Source: Azure/toketi-iothubreact 0.9: `AzureBlob.scala`, `CheckpointsTableSchema.scala`,
`CheckpointRecord.scala`, `IoTHubPartition.scala`.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from eventhub_checkpoints.records import Checkpoint, Scope

BLOB_PREFIX = "partition-"
TABLE = "checkpoints"
LONGEST = 64
"""More bytes than any offset has, or anything else that it stored in the place of one."""
NOTHING_SAVED = frozenset({"-1", "{offset checkpoint not found}"})
"""The beginning of the stream, and what its backends answer where they have no offset."""
PARTITION = re.compile("0|[1-9][0-9]{0,8}")
OFFSET = re.compile("[0-9]{1,19}")


class StoredOffset(NamedTuple):
    """What one row holds.

    Attributes:
        place: where it is, in words.
        partition: its number, as text.
        offset: None where it is no text.
    """

    place: str
    partition: str
    offset: str | None


def keyspace_of(namespace: str) -> str:
    """The keyspace of a namespace: others than ASCII letters, digits and `_` became `_`.

    It stood in the statements without quotes, so Cassandra took it in lower case.
    """
    return re.sub("[^A-Za-z0-9_]", "_", namespace).lower()


def checkpoints_of(
    rows: Iterable[StoredOffset], scope: Scope, report: Callable[[str], None]
) -> list[Checkpoint]:
    """The checkpoints that rows hold, in the partitions' order.

    A row that says that nothing was saved is none, and not worth a word.

    Args:
        rows: what was found.
        scope: whose checkpoints they are; no row says it.
        report: is given a sentence for each row that cannot be read.
    """
    found: dict[int, Checkpoint] = {}
    for place, partition, offset in rows:
        if PARTITION.fullmatch(partition) and offset in NOTHING_SAVED:
            continue
        if not PARTITION.fullmatch(partition) or not OFFSET.fullmatch(offset or ""):
            report(f"{place} was left out: it holds no offset of a partition")
            continue
        found[int(partition)] = Checkpoint(scope, partition, offset or "", None)
    return [found[number] for number in sorted(found)]
