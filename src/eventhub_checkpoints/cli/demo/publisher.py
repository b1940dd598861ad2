"""Sends events with the official producer, and asks the hub what it has."""

from typing import Self

from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints.cli.demo.place import Place


class Publisher:
    """Numbered events, to the partitions in turn.

    Attributes:
        total: events sent.
        sent: events sent, by partition.
    """

    def __init__(self, place: Place, partitions: int) -> None:
        self._client = EventHubProducerClient.from_connection_string(place.connection_string)
        self.total = 0
        self.sent = {str(number): 0 for number in range(partitions)}

    def publish(self, count: int) -> None:
        """Send that many more.

        Raises:
            EventHubError: the hub did not take them.
        """
        numbers = range(self.total, self.total + count)
        for partition in self.sent:
            mine = [one for one in numbers if one % len(self.sent) == int(partition)]
            if mine:
                self._send(partition, mine)
        self.total += count

    def _send(self, partition: str, numbers: list[int]) -> None:
        batch = self._client.create_batch(partition_id=partition)
        for number in numbers:
            event = EventData(f"order {number}")
            try:
                batch.add(event)
            except ValueError:  # full, as the client says it
                self._client.send_batch(batch)
                batch = self._client.create_batch(partition_id=partition)
                batch.add(event)
        self._client.send_batch(batch)
        self.sent[partition] += len(numbers)

    def published(self, partition: str) -> range:
        """The sequence numbers that the hub has, by its own account."""
        found = self._client.get_partition_properties(partition)
        first, last = found["beginning_sequence_number"], found["last_enqueued_sequence_number"]
        # An empty partition says -1 for its last event, and its first is the one to come.
        return range(max(first, 0), last + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
