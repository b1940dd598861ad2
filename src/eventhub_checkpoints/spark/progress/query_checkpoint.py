"""What a streaming query has read and committed, from its checkpoint folder.

Spark writes `offsets/N`, the end of batch N, before the batch runs, and `commits/N` after its sink
returned. A batch begins where the one before has ended. The JVM connector and Kafka's source keep
where the first one began in `sources/I/0`; ours notes it in the offset itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.spark.progress.checkpoint_files import CheckpointFiles, checkpoint_files
from eventhub_checkpoints.spark.progress.offsets import of_hub
from eventhub_checkpoints.spark.progress.parsing import index_of, last_of
from eventhub_checkpoints.spark.progress.query_log import (
    begin_of_new,
    noted_begins,
    read_initial,
    read_offsets,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkCheckpoint:
    """How far a query has come with one hub.

    Attributes:
        batch_id: of the last committed batch; None where there is none.
        positions: the sequence number of the last committed event by partition id, as
            `parse_progress` gives it.
        ranges: what that batch read, of every partition, also where that is nothing. Empty where
            Spark no longer keeps where the batch began.
        pending: the same of a batch that was logged and not committed; Spark runs it again.
    """

    batch_id: int | None
    positions: Mapping[str, int]
    ranges: list[OffsetRange]
    pending: list[OffsetRange]


def read_spark_checkpoint(
    location: str | Path,
    hub: str | None = None,
    spark: "SparkSession | None" = None,
    *,
    source: int | None = None,
) -> SparkCheckpoint:
    """Read how far a streaming query has come, whether or not it runs at this moment.

    Args:
        location: its `checkpointLocation`: a local path, or any URL with `spark` given.
        hub: the name of the hub or topic; None takes the only one that the query reads.
        spark: a classic session, to read what Spark's Hadoop client can read.
        source: which of the query's sources, where several read this hub.

    Raises:
        ConfigurationError: this is no checkpoint of a query, or none that reads this hub.
    """
    return _Reading(checkpoint_files(location, spark), str(location), hub, source).result()


class _Reading:
    """One look into the folder."""

    def __init__(
        self, files: CheckpointFiles, location: str, hub: str | None, source: int | None
    ) -> None:
        self._files, self._location, self._hub, self._source = files, location, hub, source
        # A batch is asked for its begin and for its end, and its file may lie far away.
        self._offset = cache(self._read_offset)

    def result(self) -> SparkCheckpoint:
        # Commits first: a batch that commits in between is told as pending, and nothing is lost.
        committed = max(self._batches("commits") or [], default=None)
        logged = self._batches("offsets")
        if logged is None:
            raise ConfigurationError(
                f"{self._location} is no checkpoint of a streaming query: it has no folder offsets"
            )
        newest = max(logged, default=committed)
        pending = self._ranges(committed, newest) if newest not in (None, committed) else []
        if committed is None:
            return SparkCheckpoint(None, {}, [], pending)
        before = max((batch for batch in logged if batch < committed), default=None)
        positions = last_of(self._end(committed))
        return SparkCheckpoint(committed, positions, self._ranges(before, committed), pending)

    def _batches(self, folder: str) -> list[int] | None:
        names = self._files.names(folder)
        # Beside the batches lie checksums (.5.crc) and files that are being written.
        return None if names is None else [int(name) for name in names if name.isdecimal()]

    def _ranges(self, before: int | None, batch: int) -> list[OffsetRange]:
        begin = self._begin(before, batch)
        if begin is None:
            return []
        offset = self._offset(batch)[1]
        # An end before the begin is a source that was moved back: the hub was created again.
        return [
            OffsetRange(one, min(begin.get(one, begin_of_new(offset, until)), until), until)
            for one, until in of_hub(offset, self._hub).items()
        ]

    def _begin(self, before: int | None, batch: int) -> dict[str, int] | None:
        name, offset = self._offset(batch)
        noted = noted_begins(offset)
        if before is not None:
            return self._end(before) | noted
        text = self._files.text(f"sources/{name}/0") if batch == 0 else None
        return noted or None if text is None else of_hub(read_initial(text), self._hub)

    def _end(self, batch: int) -> dict[str, int]:
        return of_hub(self._offset(batch)[1], self._hub)

    def _read_offset(self, batch: int) -> tuple[str, object]:
        text = self._files.text(f"offsets/{batch}")
        if text is None:
            raise ConfigurationError(f"{self._location} has no offsets of batch {batch}")
        offsets = read_offsets(text, f"offsets/{batch} in {self._location}")
        index = index_of([offset for _, offset in offsets], self._hub, self._source)
        return ("", None) if index is None else offsets[index]
