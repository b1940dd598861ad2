"""Statistics of saving, as `stats()` returns them and as OpenTelemetry metrics."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from eventhub_checkpoints.processing.watermark import Position


@dataclass(slots=True)
class Tally:
    """How often what happened to the writes of one partition, over all of its claims.

    Attributes:
        saved: writes that were confirmed.
        refused: writes that a checkpoint of another writer forbade; they are not tried again.
        failed: writes that failed; each is tried again.
    """

    saved: int = 0
    refused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """How the saving of one partition is doing.

    Attributes:
        saved: writes that were confirmed, since the program began.
        refused: writes that a checkpoint of another writer forbade.
        failed: writes that failed and were or will be tried again.
        pending: events that were begun and that the position has not passed.
        lag_events: events that were begun and are not saved: read again after a crash.
        lag_seconds: for how long something has been unsaved: seconds since the last save, or, where
            that had left nothing, since the next event was begun; 0 where nothing is unsaved.
        position: of the last event before which all is finished; None while there is none.
        saved_position: the last that was saved in this claim; None while there is none.
    """

    saved: int
    refused: int
    failed: int
    pending: int
    lag_events: int
    lag_seconds: float
    position: Position | None
    saved_position: Position | None


def by_partition(
    found: Iterable[tuple[Mapping[str, str], PartitionStats]],
) -> dict[str, PartitionStats]:
    """Return statistics by partition id; by all names where they are of several consumer groups.

    Args:
        found: statistics after the names of their partition.
    """
    rows = [(tuple(names.values()), stats) for names, stats in found]
    if len({names[:-1] for names, _ in rows}) > 1:
        return {"/".join(names): stats for names, stats in rows}
    return {names[-1]: stats for names, stats in rows}


if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

METER = "eventhub_checkpoints"
NAMES = ("partition_id", "eventhub_name", "consumer_group")
"""Of a partition, that its figures are told apart by."""
COUNTERS = {
    "saved": ("{write}", "Checkpoints that were stored."),
    "refused": ("{write}", "Checkpoints that another writer's forbade."),
    "failed": ("{write}", "Writes of a checkpoint that failed."),
}
GAUGES = {
    "pending": ("{event}", "Events that are being processed, or wait for one that is."),
    "lag_events": ("{event}", "Events that would be read again after a crash."),
    "lag_seconds": ("s", "For how long events have been unsaved."),
}
"""Fields of `PartitionStats`, each with its unit."""


class Source(Protocol):
    """Who has figures."""

    def stats(self) -> list[tuple[Mapping[str, str], PartitionStats]]: ...


_sources: WeakSet[Any] = WeakSet()
_guard = threading.Lock()


def watch(source: Source) -> None:
    """Report the figures of a source for as long as the program keeps it."""
    if offer():
        with _guard:
            _sources.add(source)


@cache
def offer() -> bool:
    """Make the instruments, once in a process; whether there is somebody to make them."""
    try:
        from opentelemetry import metrics
    except ImportError:
        return False
    meter = metrics.get_meter(METER)
    kinds: tuple[tuple[Callable[..., object], Mapping[str, tuple[str, str]]], ...] = (
        (meter.create_observable_counter, COUNTERS),
        (meter.create_observable_gauge, GAUGES),
    )
    for create, fields in kinds:
        for field, (unit, description) in fields.items():
            create(f"{METER}.{field}", [partial(observe, field)], unit, description)
    return True


def observe(field: str, options: "CallbackOptions") -> "Iterable[Observation]":
    """One figure of each partition."""
    from opentelemetry.metrics import Observation

    for names, stats in figures():
        yield Observation(getattr(stats, field), {name: names[name] for name in NAMES})


def figures() -> Iterator[tuple[Mapping[str, str], PartitionStats]]:
    """Those of every source that is still there."""
    with _guard:
        sources = list(_sources)
    for source in sources:
        yield from source.stats()
