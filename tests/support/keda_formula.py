"""KEDA's own formula for Event Hubs, written from its description, to compare with.

Source: KEDA 2.21, documentation of the trigger `azure-eventhub`, and the rules that are listed in
`pkg/scalers/azure_eventhub_scaler.go`: `calculateUnprocessedEvents`,
`GetUnprocessedEventCountWithoutCheckpoint` and `getTotalLagRelatedToPartitionAmount`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

LARGEST = 2**63 - 1
STALE = 10_000
THRESHOLD = 64


@dataclass(frozen=True)
class Partition:
    """Numbers that KEDA reads: first and last of the partition, and that of the checkpoint."""

    first: int
    last: int
    checkpoint: int | None


def unprocessed(partition: Partition) -> int:
    """Unprocessed events of one partition."""
    if partition.last == -1:
        return 0
    if partition.checkpoint is None:
        is_only_event_ever = partition.first == partition.last == 0
        if partition.first == partition.last and not is_only_event_ever:
            return 0
        return partition.last - partition.first + 1
    if partition.last >= partition.checkpoint:
        count = partition.last - partition.checkpoint
    else:
        count = LARGEST - partition.checkpoint + partition.last
    return 0 if count > LARGEST - STALE else count


def metric(partitions: Sequence[Partition], threshold: int = THRESHOLD) -> int:
    """The metric that KEDA passes to the autoscaler."""
    total = sum(map(unprocessed, partitions))
    if total > LARGEST:  # it overflows, and is negative there
        total = LARGEST
    if total // threshold > len(partitions):
        return len(partitions) * threshold
    return total


def replicas(metric: int, threshold: int = THRESHOLD) -> int:
    """What the autoscaler makes of a metric with a target for the average."""
    return -(-metric // threshold)
