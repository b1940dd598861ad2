"""What of a batch is to be written, and what must still be stored when it is committed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.spark.exactly_once.positions import (
    PositionColumns,
    Stored,
    checkpoints,
    is_stored,
)
from eventhub_checkpoints.spark.exactly_once.results import Collected, Results
from eventhub_checkpoints.spark.progress.query_checkpoint import read_spark_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ranges = str | Path | Callable[["DataFrame", int], Iterable[OffsetRange]]
"""Where the range of a batch is known from; see `ExactlyOnce`."""
ResultsOf = Callable[["DataFrame", int], Results]
"""Makes the results of a frame; the number is the batch's id."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a transaction will write.

    Attributes:
        results: the rows.
        ends: the checkpoints, in the order of their partition ids.
        stored: what the rows were chosen by; at commit the database must still hold it.
    """

    results: Results
    ends: Sequence[Checkpoint]
    stored: Stored


class Fence(Protocol):
    """Tells what of a batch is new.

    Attributes:
        reads_once: whether it runs one job over the batch and no second one.
    """

    reads_once: ClassVar[bool]

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """What to write; None if nothing is new."""


@dataclass(frozen=True, slots=True)
class RowsAsTheyAre:
    """Each row by its own position; the rows are the results, and are read once."""

    reads_once: ClassVar[bool] = True
    scope: Scope
    max_rows: int

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """What to write; None if nothing is new."""
        columns = PositionColumns.of(dict(batch.dtypes))
        found = Collected.of(
            batch.where(columns.newer_than(stored, self.scope.eventhub_name)), self.max_rows
        )
        ends = columns.ends(batch.columns, found.rows, self.scope)
        return Plan(found, ends, stored) if ends else None


@dataclass(frozen=True, slots=True)
class ByRow:
    """Each row by its own position; the results are made of the new rows."""

    reads_once: ClassVar[bool] = False
    scope: Scope
    results: ResultsOf

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """What to write; None if nothing is new."""
        columns = PositionColumns.of(dict(batch.dtypes))
        fresh = batch.where(columns.newer_than(stored, self.scope.eventhub_name))
        last = fresh.selectExpr(*columns.last()).groupBy("partition").agg({"last": "max"}).collect()
        ends = checkpoints(self.scope, ((one, *position) for one, position in last))
        return Plan(self.results(fresh, batch_id), ends, stored) if ends else None


@dataclass(frozen=True, slots=True)
class ByRange:
    """The batch as a whole; its rows have no positions."""

    reads_once: ClassVar[bool] = False
    scope: Scope
    results: ResultsOf
    ranges: Ranges

    def plan(self, batch: "DataFrame", batch_id: int, stored: Stored) -> Plan | None:
        """What to write; None if the batch is stored."""
        ranges = [one for one in self._ranges_of(batch, batch_id) if not one.is_empty]
        if ranges and is_stored(ranges, stored):
            # The state of a query moves on only where a batch is computed to its end.
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
