"""Demand for consumers: what an autoscaler may make of the lag of a group.

An autoscaler divides a metric by a target and rounds up: that many replicas it starts. A partition
has one consumer at a time, so however large its lag is, it needs one replica and no more: each
partition counts with at most the target. The number of replicas is then never higher than that of
the partitions with unprocessed events.

Demand rises at once and falls late. The lag of a group that saves a checkpoint every few seconds
goes up and down by itself, and each change of the number of consumers moves partitions.

Source: Kubernetes documentation, "Horizontal Pod Autoscaling": for an average value, replicas are
the metric divided by the target, rounded up. KEDA, "External Scalers" and "Metrics API": both pass
the metric on as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, StoreError
from eventhub_checkpoints.operations.lag import GroupLag
from eventhub_checkpoints.receive.position import is_digits
from eventhub_checkpoints.records import MOST_INT64

TARGET = 64
"""Unprocessed events for each replica.

Source: KEDA, `azure-eventhub` trigger, `unprocessedEventThreshold`.
"""

DEMAND_HOLD = 180.0
"""Seconds for which demand must have been lower before it falls.

Source: azure-sdk-for-net issue 42409: the SDK's maintainers advise not to scale in before the
number of replicas has been too high for at least 3 minutes.
"""


@dataclass(frozen=True, slots=True)
class Demand:
    """What an autoscaler may ask for.

    Attributes:
        scale: the metric: unprocessed events, of each partition at most the target.
        target: unprocessed events for each replica.
        is_active: whether at least one consumer should run.
    """

    scale: int
    target: int
    is_active: bool

    @property
    def replicas(self) -> int:
        """Return the number of replicas that an autoscaler makes of it."""
        return -(-self.scale // self.target)


def demand(
    window: Sequence[GroupLag],
    target: int = TARGET,
    activation: int = 0,
    hold: float = DEMAND_HOLD,
) -> Demand:
    """Return the highest demand of the samples within `hold` seconds before the newest one.

    Args:
        window: samples of a group, oldest first; at least one.
        target: unprocessed events for each replica.
        activation: a partition with more unprocessed events makes the group active.
        hold: seconds for which demand must have been lower before it falls; 0 for no delay.

    Raises:
        ConfigurationError: the target is below 1, or the activation below 0.
        StoreError: the lag of a partition is unknown. Unknown is not 0: an autoscaler has to keep
            what it has.
    """
    if target < 1 or activation < 0:
        raise ConfigurationError(
            f"the target is {target} and the activation {activation}; expected at least 1 and 0"
        )
    newest = window[-1]
    check_known(newest)
    recent = [
        sample for sample in window if sample.time >= newest.time - hold and sample.lag is not None
    ]
    return Demand(
        max(scale(sample, target) for sample in recent),
        target,
        any(
            position.lag is not None and position.lag > activation
            for sample in recent
            for position in sample.partitions
        ),
    )


def scale(sample: GroupLag, target: int = TARGET) -> int:
    """Return the unprocessed events of a sample, of each partition at most the target."""
    return sum(min(position.lag or 0, target) for position in sample.partitions)


def number_in(parameters: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    """Return a number that an autoscaler sends as text.

    Args:
        parameters: of its request.
        name: of the parameter.
        default: where it is missing.
        least: smallest number that is accepted.

    Raises:
        ConfigurationError: it is not a whole number, below the smallest one, or not an int64.
    """
    text = parameters.get(name, str(default))
    if not (is_digits(text) and least <= int(text) <= MOST_INT64):
        raise ConfigurationError(
            f"{name} is {quoted(text)}; expected a whole number, {least} or more"
        )
    return int(text)


def check_known(sample: GroupLag) -> None:
    """Raise if the lag of a partition is unknown.

    Raises:
        StoreError: names the partitions.
    """
    unknown = [position.partition_id for position in sample.partitions if position.lag is None]
    if unknown:
        raise StoreError(
            f"the lag of {sample.scope} is unknown: the checkpoints of partition "
            f"{', '.join(unknown)} hold an offset and no sequence number"
        )
