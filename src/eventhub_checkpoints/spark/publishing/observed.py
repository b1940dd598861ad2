"""The offsets that a query's rows carry, noted in the same pass: what to observe, what was seen.

An observation is told with the progress of the batch. It cannot be grouped, so it has one
aggregate per place, and a partition belongs to the place that its number gives.
"""

from collections.abc import Mapping
from typing import Any

COLUMNS = ("partition", "sequenceNumber", "offset")
"""What is observed, as the connector names it."""

NEWEST = "newest"

PLACE = """max(
    CASE WHEN pmod(try_cast(partition AS INT), {places}) = {place}
    THEN struct(sequenceNumber, offset, partition) END
)"""


def newest_events(places: int) -> str:
    """The aggregate, as SQL: the event with the highest sequence number of each place.

    Where several partitions share a place, only one of them is seen.
    """
    each = ", ".join(PLACE.format(places=places, place=place) for place in range(places))
    return f"array_compact(array({each}))"


def observed_offsets(observed: Any) -> dict[tuple[str, int], str]:
    """The offsets by partition id and sequence number, as a query's progress tells them.

    Spark gives a row of rows, Spark Connect a row of dicts, Spark 3 a dict; and a null, or
    nothing at all, where no action has read the rows.
    """
    row = observed.asDict(recursive=True) if hasattr(observed, "asDict") else observed
    events = row.get(NEWEST) if isinstance(row, Mapping) else None
    return {
        (event["partition"], event["sequenceNumber"]): event["offset"]
        for event in events or ()
        if event["offset"]
    }
