"""Keys of events: a task or batch that Spark repeats gives its events the same keys again."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.send.events import (
    EventRows,
    PropertyMaps,
    PropertyValue,
    Text,
    encode_rows,
)

EVENT_KEY = "event-key"
"""Application property with the key of an event."""


class ContentKeys:
    """Keys from the content of rows: a hash, and how often the content occurred before.

    Equal rows of one task get different keys, and the same ones when the task is repeated with the
    same rows in another order.

    Args:
        scope: what the rows belong to: query, batch and partition of Spark. Equal rows of
            different scopes get different keys, so no event is taken for a copy of another.
    """

    def __init__(self, scope: str) -> None:
        self._start = blake2b(scope.encode(), digest_size=16)
        self._seen: Counter[bytes] = Counter()

    def of(self, rows: EventRows) -> list[str]:
        """Return the keys of the next rows of the task."""
        keys, seen = [], self._seen
        for encoded in encode_rows(rows):
            content = self._start.copy()
            content.update(encoded)
            digest = content.digest()
            keys.append(f"{digest.hex()}-{seen[digest]}")
            seen[digest] += 1
        return keys


def with_keys(rows: EventRows, keys: Sequence[str | None]) -> EventRows:
    """Return rows with the keys as a property.

    Raises:
        ConfigurationError: a row has no key, or its properties have one already.
    """
    if None in keys:
        raise ConfigurationError(
            f"row {keys.index(None)} of a batch has no value in the key column; expected a "
            "string that no other event has"
        )
    maps = rows.properties
    if maps is None:
        rows.properties = PropertyMaps(
            ends=range(len(keys) + 1), keys=[EVENT_KEY] * len(keys), values=keys
        )
        return rows
    if EVENT_KEY in maps.keys or EVENT_KEY.encode() in maps.keys:
        raise ConfigurationError(
            f"the properties of a row have a value {EVENT_KEY} already, which is the name of the "
            "event's key; remove it, for example with map_filter"
        )
    names: list[Text] = []
    values: list[PropertyValue | None] = []
    for (begin, end), key in zip(pairwise(maps.ends), keys, strict=True):
        names += [EVENT_KEY, *maps.keys[begin:end]]
        values += [key, *maps.values[begin:end]]
    ends = [end + row for row, end in enumerate(maps.ends)]
    rows.properties = PropertyMaps(ends=ends, keys=names, values=values)
    return rows


def deduplicate(events: DataFrame, within: str = "1 hour") -> DataFrame:
    """Drop copies of events that a sink with keys has sent more than once.

    A copy is dropped if it is read within a time of its original: the stream remembers each key
    for that long. The time is that of the reader's micro-batches, not of the events: an event of a
    partition that lags behind the others is never dropped as late. A stream that pauses remembers
    what it read before the pause. Events without a key are kept. Of a batch, all copies are
    dropped.

    Args:
        events: as read by `format("eventhubs")`, with the columns `properties`, `partition` and
            `sequenceNumber`.
        within: as in `withWatermark`, longer than the time in which a crashed writer is restarted
            and its events are read.

    Raises:
        ConfigurationError: a column is missing.
    """
    needed = ("properties", "partition", "sequenceNumber")
    if missing := [name for name in needed if name not in events.columns]:
        raise ConfigurationError(
            f"deduplicate needs the column {missing[0]}; call it before other columns are selected"
        )
    position = F.concat_ws("/", F.lit(""), "partition", "sequenceNumber")
    key, read = "__event_key", "__read_time"
    keyed = events.withColumn(key, F.coalesce(F.col("properties")[EVENT_KEY], position))
    if not events.isStreaming:
        return keyed.dropDuplicates([key]).drop(key)
    timed = keyed.withColumn(read, F.current_timestamp()).withWatermark(read, within)
    return timed.dropDuplicatesWithinWatermark([key]).drop(key, read)
