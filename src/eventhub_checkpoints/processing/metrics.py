"""The figures of `stats()` for OpenTelemetry, where its API is installed.

Nothing is counted for it: when its reader asks, it is told what the program would be told.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from eventhub_checkpoints.processing.statistics import PartitionStats

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
