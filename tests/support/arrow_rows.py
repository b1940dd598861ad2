"""Rows of Arrow batches as plain Python values."""

from collections.abc import Iterable, Iterator
from typing import Any


def numbers(batches: Iterable[Any]) -> dict[str, list[int]]:
    """Return the sequence numbers by partition, in the order of arrival."""
    found: dict[str, list[int]] = {}
    for batch in batches:
        (partition,) = set(batch.column("partition").to_pylist())
        found.setdefault(partition, []).extend(batch.column("sequenceNumber").to_pylist())
    return dict(sorted(found.items()))


def take(batches: Iterator[Any], count: int) -> list[Any]:
    """Return batches until they have so many rows."""
    found: list[Any] = []
    while sum(batch.num_rows for batch in found) < count:
        found.append(next(batches))
    return found


def last_of(batch: Any) -> dict[str, Any]:
    """Return the last row of a batch, by column."""
    return {name: batch.column(name)[-1].as_py() for name in batch.schema.names}
