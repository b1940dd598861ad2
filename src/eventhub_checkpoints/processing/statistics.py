"""Statistics of checkpoint writes, returned by `stats()` and exported as OpenTelemetry metrics."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from eventhub_checkpoints.processing.stall import Where
from eventhub_checkpoints.processing.watermark import Position


class Tally:
    """Counts of write results of one partition, over all of its sessions.

    Attributes:
        saved: writes that were confirmed.
        refused: writes refused because of another writer's checkpoint; they are not retried.
        failed: writes that failed; each is retried.
        stalls: stalls that the watchdog has found.
    """

    __slots__ = ("failed", "refused", "saved", "stalls")

    def __init__(self) -> None:
        self.saved = self.refused = self.failed = self.stalls = 0


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """Statistics of the checkpoints of one partition.

    Attributes:
        saved: writes that were confirmed since the program started.
        refused: writes refused because of another writer's checkpoint.
        failed: writes that failed, and were or will be retried.
        pending: events that were started and that the position has not passed.
        lag_events: events that were started and are not saved: they are read again after a crash.
        lag_seconds: seconds for which something has been unsaved: since the last save or, if that
            left nothing unsaved, since the next event was started; 0 if nothing is unsaved.
        position: of the last event up to which all are finished; None if there is none yet.
        saved_position: the last position saved in this session; None if there is none yet.
        stalls: times that the partition has stalled since the program started.
        stalled: where it hangs, if it has stalled now: `"hub"`, `"link"`, `"handler"` or `"store"`.
        stalled_seconds: for how long; 0 if it has not stalled.
    """

    saved: int
    refused: int
    failed: int
    pending: int
    lag_events: int
    lag_seconds: float
    position: Position | None
    saved_position: Position | None
    stalls: int = 0
    stalled: Where | None = None
    stalled_seconds: float = 0.0


def by_partition(
    named: Iterable[tuple[Mapping[str, str], PartitionStats]],
) -> dict[str, PartitionStats]:
    """Return statistics by partition id, or by all names if there are several consumer groups.

    Args:
        named: pairs of a partition's names and its statistics.
    """
    rows = [(tuple(names.values()), stats) for names, stats in named]
    if len({names[:-1] for names, _ in rows}) > 1:
        return {"/".join(names): stats for names, stats in rows}
    return {names[-1]: stats for names, stats in rows}


if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

METER = "eventhub_checkpoints"
NAMES = ("partition_id", "eventhub_name", "consumer_group")
"""Names of a partition that are attributes of its metrics."""
COUNTERS = {
    "saved": ("{write}", "Checkpoints that were stored."),
    "refused": ("{write}", "Checkpoints refused because another writer stored a newer one."),
    "failed": ("{write}", "Checkpoint writes that failed."),
    "stalls": ("{stall}", "Times that the partition has stalled."),
}
GAUGES = {
    "pending": ("{event}", "Events that were started and that the position has not passed."),
    "lag_events": ("{event}", "Events that would be read again after a crash."),
    "lag_seconds": ("s", "Seconds for which events have been unsaved."),
    "stalled_seconds": ("s", "Seconds for which the partition has stalled; 0 if it has not."),
}
"""Fields of `PartitionStats` that are exported, each with its unit."""


class Source(Protocol):
    """Object that has statistics to export."""

    def stats(self) -> list[tuple[Mapping[str, str], PartitionStats]]: ...


_sources: WeakSet[Any] = WeakSet()
_guard = threading.Lock()


def watch(source: Source) -> None:
    """Export the statistics of a source for as long as the program keeps a reference to it."""
    if create_instruments():
        with _guard:
            _sources.add(source)


@cache
def create_instruments(provider: "MeterProvider | None" = None) -> bool:
    """Create the instruments, once per process; return whether OpenTelemetry is available.

    Args:
        provider: where metrics go; None: to what the program has configured, now or later.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        return False
    meter = metrics.get_meter(METER, meter_provider=provider)
    kinds: tuple[tuple[Callable[..., object], Mapping[str, tuple[str, str]]], ...] = (
        (meter.create_observable_counter, COUNTERS),
        (meter.create_observable_gauge, GAUGES),
    )
    for create, fields in kinds:
        for field, (unit, description) in fields.items():
            create(f"{METER}.{field}", [partial(observe, field)], unit, description)
    return True


def observe(field: str, options: "CallbackOptions") -> "Iterable[Observation]":
    """Yield one observation of a field for each partition."""
    from opentelemetry.metrics import Observation

    for names, stats in all_stats():
        yield Observation(getattr(stats, field), {name: names[name] for name in NAMES})


def all_stats() -> Iterator[tuple[Mapping[str, str], PartitionStats]]:
    """Yield the statistics of every source that is still alive."""
    with _guard:
        sources = list(_sources)
    for source in sources:
        yield from source.stats()
