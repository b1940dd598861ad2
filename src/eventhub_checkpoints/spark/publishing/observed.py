"""Observation of the offsets that a query's rows carry, in the same pass.

Spark reports an observation with the progress of the batch. An observation cannot be grouped, so
it has one aggregate per bucket, and the number of a partition determines its bucket.
"""

from collections.abc import Mapping
from typing import Any

COLUMNS = ("partition", "sequenceNumber", "offset")
"""Observed columns, with the connector's names."""

NEWEST = "newest"

PLACE = """max(
    CASE WHEN pmod(try_cast(partition AS INT), {places}) = {place}
    THEN struct(sequenceNumber, offset, partition) END
)"""


def newest_events(places: int) -> str:
    """Return the SQL aggregate: the last event of each of `places` buckets.

    The last event has the highest sequence number. If several partitions share a bucket, only one
    of them is observed.
    """
    each = ", ".join(PLACE.format(places=places, place=place) for place in range(places))
    return f"array_compact(array({each}))"


def observed_offsets(observed: Any) -> dict[tuple[str, int], str]:
    """Return the offsets by partition id and sequence number, from a query's progress.

    Spark returns a row of rows, Spark Connect a row of dicts, Spark 3 a dict; and a null, or
    nothing at all, if no action has read the rows.
    """
    row = observed.asDict(recursive=True) if hasattr(observed, "asDict") else observed
    events = row.get(NEWEST) if isinstance(row, Mapping) else None
    return {
        (event["partition"], event["sequenceNumber"]): event["offset"]
        for event in events or ()
        if event["offset"]
    }
