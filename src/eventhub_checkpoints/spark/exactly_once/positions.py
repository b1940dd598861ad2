"""What of a batch is new, compared with the positions that are stored: pure, numbers and text.

Rule 1: a row is new when its sequence number is above its partition's stored one.
Rule 2: a batch whose rows carry no position is taken whole or not at all: it must begin right
after what is stored. One that ends at or before it was stored already.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventhub_checkpoints.errors import ConfigurationError, StaleCheckpointError
from eventhub_checkpoints.receive.position import is_partition_id
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.records import Checkpoint, Scope

Stored = Mapping[str, int]
"""The stored sequence number by partition id; a partition without a checkpoint is absent."""

NOTHING = -1
"""Below every sequence number."""
NO_POSITION = "a row has no partition or sequence number; was it made by an outer join?"
OTHER_TOPIC = "a row is not of topic {}, whose positions are stored; filter the others out"
RESTART = (
    "end this query and start a new one, with a new checkpointLocation, from the positions that "
    "ExactlyOnce.starting_positions gives"
)


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Which columns of a batch hold the position of each row.

    Attributes:
        partition: the partition id, text or a number.
        sequence_number: counts the events of the partition.
        offset: the service's text; None where the source gives none.
        topic: of Kafka's source; None where there is no such column.
    """

    partition: str
    sequence_number: str
    offset: str | None
    topic: str | None = None

    @classmethod
    def of(cls, types: Mapping[str, str]) -> "PositionColumns":
        """Those of the nine columns, or those of Spark's Kafka source.

        Args:
            types: the type of each column, as `dict(batch.dtypes)` gives it.

        Raises:
            ConfigurationError: the batch has neither.
        """
        if {"partition", "sequenceNumber"} <= types.keys():
            text = "offset" if types.get("offset") == "string" else None
            return cls("partition", "sequenceNumber", text)
        if "partition" in types and types.get("offset") == "bigint":
            return cls("partition", "offset", None, "topic" if "topic" in types else None)
        raise ConfigurationError(
            f"the batch has the columns {', '.join(types)}; ExactlyOnce needs partition, "
            "sequenceNumber and offset of the source in it (of Kafka's: partition and offset). "
            "Keep them in every select, aggregate in transform=, or, where rows have no position "
            "of their own, give ranges="
        )

    def newer_than(self, stored: Stored, hub: str) -> str:
        """The SQL condition of rule 1; it fails on a row without a position, or of another hub."""
        cases = "".join(
            f" WHEN '{partition}' THEN {number}L"
            for partition, number in stored.items()
            if is_partition_id(partition)
        )
        floor = f"CASE CAST({self.partition} AS STRING){cases} ELSE {NOTHING}L END"
        other = f"lower({self.topic}) <> '{sql_text(hub.lower())}'" if self.topic else "false"
        return (
            f"CASE WHEN {self.partition} IS NULL OR {self.sequence_number} IS NULL "
            f"THEN raise_error('{NO_POSITION}') "
            f"WHEN {other} THEN raise_error('{sql_text(OTHER_TOPIC.format(hub))}') "
            f"ELSE {self.sequence_number} > {floor if cases else NOTHING} END"
        )

    def last(self) -> tuple[str, str]:
        """Two SQL expressions: the partition id, and what the greatest of is the last position."""
        offset = self.offset or "''"
        return (
            f"CAST({self.partition} AS STRING) AS partition",
            f"struct({self.sequence_number} AS number, {offset} AS text) AS last",
        )

    def ends(self, names: Sequence[str], rows: Iterable[Any], scope: Scope) -> list[Checkpoint]:
        """The last position of each partition among rows with columns of these names."""
        where = names.index(self.partition), names.index(self.sequence_number)
        text = names.index(self.offset) if self.offset else None
        last: dict[str, tuple[int, str]] = {}
        for row in rows:
            partition, number = str(row[where[0]]), row[where[1]]
            if partition not in last or number > last[partition][0]:
                last[partition] = number, row[text] if text is not None else ""
        return checkpoints(scope, ((one, *position) for one, position in last.items()))


def sql_text(text: str) -> str:
    """What stands between two quotes in Spark's SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def checkpoints(scope: Scope, ends: Iterable[tuple[str, int, str | None]]) -> list[Checkpoint]:
    """Checkpoints from ids, sequence numbers and offsets, in the order that every writer keeps."""
    found = [
        Checkpoint(scope, partition, text or "", int(number)) for partition, number, text in ends
    ]
    return sorted(found, key=lambda one: one.partition_id)


def is_stored(ranges: Sequence[OffsetRange], stored: Stored) -> bool:
    """Whether rule 2 finds the batch stored; False: it may be written now.

    Raises:
        StaleCheckpointError: some of it is stored and some is not, or events between are missing.
    """
    if all(
        stored.get(one.partition_id, NOTHING) >= one.until_sequence_number - 1 for one in ranges
    ):
        return True
    for one in ranges:
        newest = stored.get(one.partition_id)
        if newest is not None and newest != one.from_sequence_number - 1:
            last = one.until_sequence_number - 1
            raise StaleCheckpointError(one.partition_id, last, newest, trouble(one, newest))
    return False


def trouble(one: OffsetRange, newest: int) -> str:
    """What does not fit, and what to do."""
    last = one.until_sequence_number - 1
    held = f"this batch holds {one.from_sequence_number} to {last}"
    if newest < one.from_sequence_number:
        return (
            f"{held}, so {newest + 1} to {one.from_sequence_number - 1} would be skipped; {RESTART}"
        )
    return f"{held}, and its results cannot be taken in part; {RESTART}"
