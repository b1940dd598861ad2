"""Metrics of consumer groups in the formats of Prometheus.

Labels have the names of the SDK. A value that is unknown has no sample, and `ehcp_up` of its group
is 0: nothing unknown is shown as 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from eventhub_checkpoints import __version__
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.operations.monitor import Monitor, Status
from eventhub_checkpoints.records import Scope

GROUP = Scope._fields
PARTITION = (*GROUP, "partition_id")


Lag = TypeVar("Lag", GroupLag, PartitionLag)


class Gauge(NamedTuple, Generic[Lag]):
    """Gauge with one value for each group or partition; None has no sample."""

    name: str
    help: str
    read: Callable[[Lag], float | None]


OF_GROUP = (
    Gauge[GroupLag](
        "ehcp_partitions",
        "Partitions of the hub.",
        lambda sample: len(sample.partitions),
    ),
    Gauge[GroupLag](
        "ehcp_members",
        "Live owners of partitions.",
        lambda sample: sample.members,
    ),
    Gauge[GroupLag](
        "ehcp_group_lag_events",
        "Retained events that are not processed.",
        lambda sample: sample.lag,
    ),
    Gauge[GroupLag](
        "ehcp_group_lag_seconds",
        "Age of the oldest event that is not processed; 0 if all are.",
        lambda sample: sample.lag_seconds,
    ),
    Gauge[GroupLag](
        "ehcp_group_lost_events",
        "Events that expired before they were processed.",
        lambda sample: sample.lost,
    ),
)
OF_PARTITION = (
    Gauge[PartitionLag](
        "ehcp_lag_events",
        "Retained events that are not processed.",
        lambda position: position.lag,
    ),
    Gauge[PartitionLag](
        "ehcp_lag_seconds",
        "Age of the first event that is not processed; 0 if all are.",
        lambda position: position.lag_seconds,
    ),
    Gauge[PartitionLag](
        "ehcp_lost_events",
        "Events that expired before they were processed.",
        lambda position: position.lost,
    ),
    Gauge[PartitionLag](
        "ehcp_checkpoint_sequence_number",
        "Sequence number of the last processed event.",
        lambda position: position.checkpoint,
    ),
    Gauge[PartitionLag](
        "ehcp_first_sequence_number",
        "Sequence number of the first retained event.",
        lambda position: position.begin,
    ),
    Gauge[PartitionLag](
        "ehcp_last_sequence_number",
        "Sequence number of the newest event; -1 if there never was one.",
        lambda position: position.last,
    ),
    Gauge[PartitionLag](
        "ehcp_checkpoint_age_seconds",
        "Time since the checkpoint was stored.",
        lambda position: position.checkpoint_age,
    ),
    Gauge[PartitionLag](
        "ehcp_ownership_age_seconds",
        "Time since the ownership was renewed or released.",
        lambda position: position.ownership_age,
    ),
)


class GroupCollector(Collector):
    """Collects the metrics of all groups of a monitor at each scrape.

    Args:
        monitor: has the groups.
        target: unprocessed events for each replica.
        has_partitions: whether each partition has metrics of its own.
    """

    def __init__(self, monitor: Monitor, target: int, *, has_partitions: bool = True) -> None:
        self._monitor = monitor
        self._target = target
        self._has_partitions = has_partitions

    def collect(self) -> Iterator[Metric]:
        """Return the metrics, of which only those of a known group have partitions."""
        statuses = self._monitor.statuses
        known = [status for status in statuses if not status.error]
        build = GaugeMetricFamily("ehcp_build_info", "Version.", labels=("version",))
        build.add_metric((__version__,), 1)
        yield build
        yield gauge(
            "ehcp_up",
            "Whether the group and its hub could be read.",
            ((status, not status.error) for status in statuses),
        )
        polls = CounterMetricFamily("ehcp_polls", "Polls that have ended.", labels=GROUP)
        failures = CounterMetricFamily("ehcp_poll_failures", "Polls that failed.", labels=GROUP)
        for status in statuses:
            polls.add_metric(status.scope, status.polls)
            failures.add_metric(status.scope, status.failures)
        yield polls
        yield failures
        yield gauge(
            "ehcp_poll_duration_seconds",
            "Duration of the last poll.",
            ((status, status.seconds) for status in statuses if status.polls),
        )
        yield from of_groups(known)
        yield from self._demand(known)
        if self._has_partitions:
            yield from of_partitions(known)

    def _demand(self, known: Iterable[Status]) -> Iterator[Metric]:
        demands = []
        for status in known:
            try:
                demands.append((status, status.demand(self._target)))
            except CheckpointStoreError:
                # The lag of a partition is unknown: the group has no demand to show.
                continue
        yield gauge(
            "ehcp_scale",
            "Unprocessed events for an autoscaler: of each partition at most the target.",
            ((status, demand.scale) for status, demand in demands),
        )
        yield gauge(
            "ehcp_wanted_replicas",
            "The same, divided by the target and rounded up.",
            ((status, demand.replicas) for status, demand in demands),
        )


def gauge(name: str, text: str, values: Iterable[tuple[Status, float | None]]) -> GaugeMetricFamily:
    """Return a gauge with one value for each group; None has no sample."""
    metric = GaugeMetricFamily(name, text, labels=GROUP)
    for status, value in values:
        if value is not None:
            metric.add_metric(status.scope, value)
    return metric


def of_groups(known: Sequence[Status]) -> Iterator[Metric]:
    """Return the metrics of all partitions of a group together."""
    for name, text, read in OF_GROUP:
        yield gauge(name, text, ((status, read(status.newest)) for status in known))
    counts = GaugeMetricFamily(
        "ehcp_group_partitions", "Partitions that have the state.", labels=(*GROUP, "state")
    )
    for status in known:
        for state, count in Counter(status.states.values()).items():
            counts.add_metric((*status.scope, state), count)
    yield counts


def of_partitions(known: Sequence[Status]) -> Iterator[Metric]:
    """Return the metrics that have one value for each partition."""
    for name, text, read in OF_PARTITION:
        metric = GaugeMetricFamily(name, text, labels=PARTITION)
        for status in known:
            for position in status.newest.partitions:
                if (value := read(position)) is not None:
                    metric.add_metric((*status.scope, position.partition_id), value)
        yield metric
    state_metric = GaugeMetricFamily(
        "ehcp_partition_state",
        "1 for the state that the partition has.",
        labels=(*PARTITION, "state"),
    )
    severity_metric = GaugeMetricFamily(
        "ehcp_partition_severity",
        "Severity of the state: 0 as expected, 1 warning, 2 error, 3 unknown.",
        labels=PARTITION,
    )
    for status in known:
        for partition_id, state in status.states.items():
            state_metric.add_metric((*status.scope, partition_id, state), 1)
            severity_metric.add_metric((*status.scope, partition_id), state.severity)
    yield state_metric
    yield severity_metric


def exposition(
    monitor: Monitor, target: int, *, has_partitions: bool = True
) -> Callable[[str], tuple[bytes, str]]:
    """Return a function from an `Accept` header to a body and its content type."""
    registry = CollectorRegistry()
    registry.register(GroupCollector(monitor, target, has_partitions=has_partitions))

    def encode(accept: str) -> tuple[bytes, str]:
        encoder, content_type = choose_encoder(accept)
        return encoder(registry), content_type

    return encode
