"""The official client, spared a question that it need not ask."""

from typing import Any

from azure.eventhub import EventHubConsumerClient


class OnePartitionClient(EventHubConsumerClient):
    """A client that receives from one partition, which is known to exist.

    Before it attaches a receiver, the client lists the hub's partitions, over a connection that
    is made and closed for that, while its receiving thread spins. Told the answer, it opens a
    receiver in 20 ms instead of 480 ms and makes one connection instead of two (local hub).

    Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`, `claim_ownership`.
    """

    def __init__(self, *args: Any, partition_id: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._only = partition_id

    def get_partition_ids(self) -> list[str]:
        """The one partition."""
        return [self._only]
