"""Selection of the new rows of a batch, and the stored positions it depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints._shared.callables import is_coroutine_function
from eventhub_checkpoints._shared.settings import require, require_type
from eventhub_checkpoints.errors import ConfigurationError, StaleCheckpointError
from eventhub_checkpoints.receive.position import is_partition_id
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.spark.query_checkpoint import read_spark_checkpoint
from eventhub_checkpoints.spark.staging import Collected, Results

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
            offset = "offset" if types.get("offset") == "string" else None
            return cls("partition", "sequenceNumber", offset)
        if "partition" in types and types.get("offset") == "bigint":
            return cls("partition", "offset", None, "topic" if "topic" in types else None)
        raise ConfigurationError(
            f"the batch has the columns {', '.join(types)}; ExactlyOnce needs the columns "
            "partition, sequenceNumber and offset of the source (Kafka's: partition and offset). "
            "Keep them in every select, aggregate in transform=, or, if rows have no position "
            "of their own, pass ranges="
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
        partition_at = names.index(self.partition)
        number_at = names.index(self.sequence_number)
        offset_at = names.index(self.offset) if self.offset else None
        last: dict[str, tuple[int, str]] = {}
        for row in rows:
            partition, number = str(row[partition_at]), row[number_at]
            if partition not in last or number > last[partition][0]:
                last[partition] = number, "" if offset_at is None else row[offset_at]
        return checkpoints(scope, ((key, *position) for key, position in last.items()))


def sql_text(text: str) -> str:
    """Escape a string for a quoted literal in Spark SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def checkpoints(scope: Scope, ends: Iterable[tuple[str, int, str | None]]) -> list[Checkpoint]:
    """Return checkpoints in the order of partition ids, in which every writer locks them."""
    return [
        Checkpoint(scope, partition, offset or "", int(number))
        for partition, number, offset in sorted(ends)
    ]


def is_stored(ranges: Sequence[OffsetRange], stored: Stored) -> bool:
    """Return whether a batch of these ranges is stored already; if not, it is next in order.

    Raises:
        StaleCheckpointError: some of it is stored and some is not, or events between the stored
            position and the batch are missing.
    """
    if all(
        stored.get(each.partition_id, NOTHING) >= each.until_sequence_number - 1 for each in ranges
    ):
        return True
    for each in ranges:
        first, last = each.from_sequence_number, each.until_sequence_number - 1
        newest = stored.get(each.partition_id, first - 1)
        if newest != first - 1:
            reason = (
                f"so {newest + 1} to {first - 1} would be skipped"
                if newest < first
                else "and its results cannot be stored in part"
            )
            message = f"this batch holds {first} to {last}, {reason}; {RESTART}"
            raise StaleCheckpointError(each.partition_id, last, newest, message)
    return False


Ranges = str | Path | Callable[["DataFrame", int], Iterable[OffsetRange]]
"""Source of the ranges of a batch; see `ExactlyOnce`."""
ResultsOf = Callable[["DataFrame", int], Results]
"""Compute the results from a DataFrame and the batch id."""


@dataclass(frozen=True, slots=True)
class PlannedWrite:
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


def rows_as_results(
    scope: Scope, stored: Stored, batch: "DataFrame", max_rows: int
) -> PlannedWrite | None:
    """Select each row by its own position; the rows are the results, and are read once."""
    columns = PositionColumns.of(dict(batch.dtypes))
    results = Collected.of(batch.where(columns.newer_than(stored, scope.eventhub_name)), max_rows)
    ends = columns.ends(batch.columns, results.rows, scope)
    return PlannedWrite(results, ends, stored) if ends else None


def results_by_row(
    scope: Scope, stored: Stored, batch: "DataFrame", batch_id: int, results_of: ResultsOf
) -> PlannedWrite | None:
    """Select each row by its own position; the results are computed from the new rows."""
    columns = PositionColumns.of(dict(batch.dtypes))
    fresh = batch.where(columns.newer_than(stored, scope.eventhub_name))
    last = fresh.selectExpr(*columns.last()).groupBy("partition").agg({"last": "max"}).collect()
    ends = checkpoints(scope, ((partition, *end) for partition, end in last))
    return PlannedWrite(results_of(fresh, batch_id), ends, stored) if ends else None


def results_by_range(
    scope: Scope,
    stored: Stored,
    batch: "DataFrame",
    batch_id: int,
    ranges: Iterable[OffsetRange],
    results_of: ResultsOf,
) -> PlannedWrite | None:
    """Accept or skip the batch as a whole; its rows have no positions.

    Raises:
        StaleCheckpointError: the batch overlaps the stored positions, or leaves a gap.
        ConfigurationError: the batch has results, but no range.
    """
    ranges = [each for each in ranges if not each.is_empty]
    if ranges and is_stored(ranges, stored):
        # Spark updates the state of a query only if the batch is computed completely.
        batch.write.format("noop").mode("overwrite").save()
        return None
    results = results_of(batch, batch_id)
    if not ranges and len(results):
        raise ConfigurationError(
            f"batch {batch_id} has results and no input, so it is unknown whether they were stored "
            "before; set spark.sql.streaming.noDataMicroBatches.enabled to false"
        )
    ends = ((each.partition_id, each.until_sequence_number - 1, "") for each in ranges)
    return PlannedWrite(results, checkpoints(scope, ends), stored) if ranges else None


def check_ranges(ranges: object) -> None:
    """Refuse what cannot be asked for the ranges of a batch; a generator function can.

    Raises:
        ConfigurationError: it is neither a path nor a function, or it is a coroutine function.
    """
    expected = "a checkpointLocation, or a function of a DataFrame and a batch id"
    is_path = isinstance(ranges, str | Path)
    require_type("ranges", ranges, is_path or callable(ranges), expected)
    require("ranges", ranges, not is_coroutine_function(ranges), f"{expected}, without async")


def ranges_of_batch(
    ranges: Ranges, scope: Scope, batch: "DataFrame", batch_id: int
) -> Iterable[OffsetRange]:
    """Return the ranges of a batch, which may be empty.

    Raises:
        ConfigurationError: the query's checkpoint does not have them.
    """
    if not isinstance(ranges, str | Path):
        return ranges(batch, batch_id)
    progress = read_spark_checkpoint(ranges, scope.eventhub_name, batch.sparkSession)
    done = -1 if progress.batch_id is None else progress.batch_id
    if done != batch_id - 1:
        raise ConfigurationError(
            f"{ranges} ends with batch {done}, but this is batch {batch_id}; pass the "
            "checkpointLocation of this query as ranges="
        )
    if not progress.pending:
        raise ConfigurationError(
            f"{ranges} does not have the start of batch {batch_id}; pass a callable as ranges="
        )
    return progress.pending
