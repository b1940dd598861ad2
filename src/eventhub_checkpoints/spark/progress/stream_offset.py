"""The offset of a stream: what Spark writes into its checkpoint, and everybody can read.

```json
{"0": 124, "1": 7, "_from": {"1": 5}, "_hub": "orders", "_lost": {"1": 5}}
```

Rule 1: a key that is a partition id has the sequence number of the next event to read.
Rule 2: a key that begins with `_` is about the batch that ends here. `_from` says where a
partition begins that does *not* begin where the batch before has ended: all of them in the first
batch, then new partitions and those that have lost events. So a batch that is run again reads
the same events, wherever the store, `latest` or the retention have moved to since then.
Rule 3: Spark compares offsets as text, so equal ones have equal text: keys are sorted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

FROM = "_from"
HUB = "_hub"
INITIAL = "_initial"
LOST = "_lost"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Where a stream stands.

    Attributes:
        hub: the hub's name.
        next: sequence number of the next event to read, by partition id.
        begins: where partitions begin in the batch that ends here, see the module.
        lost: how many events were gone when a batch was planned, by partition id, since the query
            was new. What expires between that and the reading is only in the log.
        is_initial: no batch ends here: it is where the first one begins.
    """

    hub: str
    next: Mapping[str, int]
    begins: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    is_initial: bool = False

    @classmethod
    def from_json(cls, found: Mapping[str, Any], hub: str) -> Self:
        """Read what `to_json` has made.

        Raises:
            ConfigurationError: it belongs to another hub or another source.
        """
        told = str(found.get(HUB, hub))
        if told.lower() != hub.lower():
            raise ConfigurationError(
                f"the query's checkpoint belongs to hub {quoted(told)}, and the options name "
                f"{quoted(hub)}; give a query on another hub a checkpointLocation of its own"
            )
        numbers = {key: number for key, number in found.items() if not key.startswith("_")}
        if odd := [key for key, number in numbers.items() if type(number) is not int]:
            raise ConfigurationError(
                f"the query's checkpoint was written by another source (it has {quoted(odd[0])}); "
                "give the query a new checkpointLocation, and begin where the old one stopped by "
                "read_spark_checkpoint"
            )
        return cls(hub, numbers, found.get(FROM, {}), found.get(LOST, {}), bool(found.get(INITIAL)))

    def to_json(self) -> dict[str, Any]:
        """The dict that Spark is given."""
        ours: dict[str, Any] = {HUB: self.hub}
        if self.begins:
            ours[FROM] = by_partition(self.begins)
        if self.is_initial:
            ours[INITIAL] = True
        if self.lost:
            ours[LOST] = by_partition(self.lost)
        return by_partition(self.next) | dict(sorted(ours.items()))

    def begin(self, partition_id: str, previous: Self) -> int:
        """Where a partition begins in the batch that ends here, after the one that ended there.

        One that neither of them tells has nothing to read.
        """
        end = self.next[partition_id]
        return self.begins.get(partition_id, previous.next.get(partition_id, end))


def by_partition(numbers: Mapping[str, int]) -> dict[str, int]:
    """In the numeric order of partitions."""
    return {one: numbers[one] for one in sorted(numbers, key=int)}
