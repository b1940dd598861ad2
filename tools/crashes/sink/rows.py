"""Events of the source, and the rows that a query must make of them: these and no others."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

KEYS = 150
PARTITIONS = 2

Way = Literal["aggregated", "stream"]
WAYS: tuple[Way, ...] = get_args(Way)
"""With running totals, which Spark allows a Python sink only in `foreachBatch`; or directly."""

Ends = Mapping[str, int]
"""Sequence number behind the last event of a micro-batch, by partition."""


def name_of(number: int) -> str:
    """Return the body of an event of the source: its key and its number."""
    return f"train {number % KEYS}/{number}"


def numbers_of(partition: int, numbers: Iterable[int]) -> list[int]:
    """Return the numbers of a partition's events. All events of a key are in one partition."""
    return [number for number in numbers if number % KEYS % PARTITIONS == partition]


def rows_of(way: Way, events: int, batches: Iterable[Ends]) -> set[str]:
    """Return the bodies that the target must have.

    The totals of a key are its number of events and the sum of their numbers. A micro-batch sends
    those that it has changed. The events of a key are in order, so an event that was lost or
    counted twice makes another sum of every later row of its key.

    Args:
        way: how the pipeline writes.
        events: how many are in the source.
        batches: what each micro-batch has read, in order.
    """
    if way == "stream":
        return {name_of(number) for number in range(events)}
    held = {str(own): numbers_of(own, range(events)) for own in range(PARTITIONS)}
    counts: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    done: Ends = {}
    rows: set[str] = set()
    # The last one also shows whether the query has read everything.
    for ends in [*batches, {partition: len(own) for partition, own in held.items()}]:
        changed = set()
        for partition, own in held.items():
            for number in own[done.get(partition, 0) : ends[partition]]:
                key = name_of(number).partition("/")[0]
                counts[key] += 1
                sums[key] += number
                changed.add(key)
        rows |= {f"{key}:{counts[key]}:{sums[key]}" for key in changed}
        done = ends
    return rows


def read_batches(checkpoint: Path) -> list[Ends]:
    """Return what each micro-batch of a query has read, as Spark has recorded it."""
    files = [path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()]
    found: list[Ends] = []
    for path in sorted(files, key=lambda each: int(each.name)):
        offset = json.loads(path.read_text().splitlines()[2])
        found.append({name: end for name, end in offset.items() if name.isdigit()})
    return found
