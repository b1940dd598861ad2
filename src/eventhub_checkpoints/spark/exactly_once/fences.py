"""Selection of the new rows of a batch, and the stored positions it depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from eventhub_checkpoints.errors import ConfigurationError, StaleCheckpointError
from eventhub_checkpoints.receive.position import is_partition_id
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.spark.exactly_once.staging import Collected, Results
from eventhub_checkpoints.spark.progress.query_checkpoint import read_spark_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Stored = Mapping[str, int]
"""The stored sequence number by partition id; a partition without a checkpoint is absent."""

NOTHING = -1
"""Lower than every sequence number; stands for a partition without a checkpoint."""
NO_POSITION = "a row has no partition or sequence number; was it made by an outer join?"
OTHER_TOPIC = "a row is not of topic {}, whose positions are stored; filter the others out"
RESTART = (
    "end this query and start a new one, with a new checkpointLocation, from the positions that "
    "ExactlyOnce.starting_positions gives"
)


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Columns of a batch that hold the position of each row.

    Attributes:
        partition: the partition id, a string or a number.
        sequence_number: the sequence number of the event in its partition.
        offset: the service's offset, a string; None if the source has none.
        topic: the topic of Kafka's source; None if there is no such column.
    """

    partition: str
    sequence_number: str
    offset: str | None
    topic: str | None = None

    @classmethod
    def of(cls, types: Mapping[str, str]) -> "PositionColumns":
        """Return the columns of an Event Hubs source, or those of Spark's Kafka source.

        Args:
            types: the type of each column, as `dict(batch.dtypes)` returns it.

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
        """Return the SQL condition that selects the rows above the stored positions.

        The condition fails on a row without a position, or of another hub.
        """
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
        """Return two SQL expressions: the partition id, and a struct to aggregate with `max`."""
        offset = self.offset or "''"
        return (
            f"CAST({self.partition} AS STRING) AS partition",
            f"struct({self.sequence_number} AS number, {offset} AS text) AS last",
        )

    def ends(self, names: Sequence[str], rows: Iterable[Any], scope: Scope) -> list[Checkpoint]:
        """Return the last position of each partition among rows with these column names."""
        where = names.index(self.partition), names.index(self.sequence_number)
        text = names.index(self.offset) if self.offset else None
        last: dict[str, tuple[int, str]] = {}
        for row in rows:
            partition, number = str(row[where[0]]), row[where[1]]
            if partition not in last or number > last[partition][0]:
                last[partition] = number, row[text] if text is not None else ""
        return checkpoints(scope, ((one, *position) for one, position in last.items()))


def sql_text(text: str) -> str:
    """Escape a string for a quoted literal in Spark SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def checkpoints(scope: Scope, ends: Iterable[tuple[str, int, str | None]]) -> list[Checkpoint]:
    """Return checkpoints in the order of partition ids, in which every writer locks them."""
    found = [
        Checkpoint(scope, partition, text or "", int(number)) for partition, number, text in ends
    ]
    return sorted(found, key=lambda one: one.partition_id)


def is_stored(ranges: Sequence[OffsetRange], stored: Stored) -> bool:
    """Return whether a batch of these ranges is stored already; if not, it may be written now.

    Raises:
        StaleCheckpointError: some of it is stored and some is not, or events between the stored
            position and the batch are missing.
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
    """Return the description of the mismatch, and the remedy."""
    last = one.until_sequence_number - 1
    held = f"this batch holds {one.from_sequence_number} to {last}"
    if newest < one.from_sequence_number:
        return (
            f"{held}, so {newest + 1} to {one.from_sequence_number - 1} would be skipped; {RESTART}"
        )
    return f"{held}, and its results cannot be taken in part; {RESTART}"


Ranges = str | Path | Callable[["DataFrame", int], Iterable[OffsetRange]]
"""Source of the ranges of a batch; see `ExactlyOnce`."""
ResultsOf = Callable[["DataFrame", int], Results]
"""Compute the results from a DataFrame and the batch id."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows and checkpoints that one transaction writes.

    Attributes:
        results: the rows.
        ends: the checkpoints, in the order of their partition ids.
        stored: the stored positions from which the rows were selected; they must be unchanged at
            commit.
    """

    results: Results
    ends: Sequence[Checkpoint]
    stored: Stored


class Fence(Protocol):
    """Strategy that selects what is new in a batch.

    Attributes:
        reads_once: whether it runs a single Spark job over the batch.
    """

    reads_once: ClassVar[bool]

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """Return what to write; None if nothing is new."""


@dataclass(frozen=True, slots=True)
class RowsAsTheyAre:
    """Selection of each row by its own position; the rows are the results, and are read once."""

    reads_once: ClassVar[bool] = True
    scope: Scope
    max_rows: int

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """Return what to write; None if nothing is new."""
        columns = PositionColumns.of(dict(batch.dtypes))
        found = Collected.of(
            batch.where(columns.newer_than(stored, self.scope.eventhub_name)), self.max_rows
        )
        ends = columns.ends(batch.columns, found.rows, self.scope)
        return Plan(found, ends, stored) if ends else None


@dataclass(frozen=True, slots=True)
class ByRow:
    """Selection of each row by its own position; the results are computed from the new rows."""

    reads_once: ClassVar[bool] = False
    scope: Scope
    results: ResultsOf

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """Return what to write; None if nothing is new."""
        columns = PositionColumns.of(dict(batch.dtypes))
        fresh = batch.where(columns.newer_than(stored, self.scope.eventhub_name))
        last = fresh.selectExpr(*columns.last()).groupBy("partition").agg({"last": "max"}).collect()
        ends = checkpoints(self.scope, ((one, *position) for one, position in last))
        return Plan(self.results(fresh, batch_id), ends, stored) if ends else None


@dataclass(frozen=True, slots=True)
class ByRange:
    """Acceptance or rejection of the batch as a whole; its rows have no positions."""

    reads_once: ClassVar[bool] = False
    scope: Scope
    results: ResultsOf
    ranges: Ranges

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """Return what to write; None if the batch is stored."""
        ranges = [one for one in self._ranges_of(batch, batch_id) if not one.is_empty]
        if ranges and is_stored(ranges, stored):
            # Spark updates the state of a query only if the batch is computed completely.
            batch.write.format("noop").mode("overwrite").save()
            return None
        results = self.results(batch, batch_id)
        if not ranges and len(results):
            raise ConfigurationError(
                f"batch {batch_id} has results and no input, so nothing tells whether they were "
                "stored before; set spark.sql.streaming.noDataMicroBatches.enabled to false"
            )
        ends = ((one.partition_id, one.until_sequence_number - 1, "") for one in ranges)
        return Plan(results, checkpoints(self.scope, ends), stored) if ranges else None

    def _ranges_of(self, batch: "DataFrame", batch_id: int) -> Iterable[OffsetRange]:
        if not isinstance(self.ranges, str | Path):
            return self.ranges(batch, batch_id)
        found = read_spark_checkpoint(self.ranges, self.scope.eventhub_name, batch.sparkSession)
        done = -1 if found.batch_id is None else found.batch_id
        if done != batch_id - 1:
            raise ConfigurationError(
                f"{self.ranges} ends with batch {done}, and this is batch {batch_id}; is it the "
                "checkpointLocation of this query?"
            )
        if not found.pending:
            raise ConfigurationError(
                f"{self.ranges} does not tell where batch {batch_id} began; give ranges= a callable"
            )
        return found.pending
