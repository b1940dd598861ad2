"""Publisher of the demo's events, with the official producer.

`python -m eventhub_checkpoints.cli.demo.publisher [COUNT]` sends more events to the hub that
EVENTHUB_CONNECTION_STRING names.
"""

import argparse
from typing import Self

from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints.cli.demo.programs import HUB_VARIABLE, from_environment


class Publisher:
    """Publisher of numbered events, to the partitions in turn.

    Attributes:
        total: events sent.
        sent: events sent, by partition.
    """

    def __init__(self, connection_string: str, partitions: int) -> None:
        self._client = EventHubProducerClient.from_connection_string(connection_string)
        self.total = 0
        self.sent = {str(number): 0 for number in range(partitions)}

    def publish(self, count: int) -> None:
        """Send that many more events.

        Raises:
            EventHubError: the hub did not accept them.
        """
        numbers = range(self.total, self.total + count)
        for partition in self.sent:
            mine = [number for number in numbers if number % len(self.sent) == int(partition)]
            if mine:
                self._send(partition, mine)
        self.total += count

    def _send(self, partition: str, numbers: list[int]) -> None:
        batch = self._client.create_batch(partition_id=partition)
        for number in numbers:
            event = EventData(f"order {number}")
            try:
                batch.add(event)
            except ValueError:  # the batch is full
                self._client.send_batch(batch)
                batch = self._client.create_batch(partition_id=partition)
                batch.add(event)
        self._client.send_batch(batch)
        self.sent[partition] += len(numbers)

    def published(self, partition: str) -> range:
        """Return the sequence numbers that the hub reports."""
        known = self._client.get_partition_properties(partition)
        first, last = known["beginning_sequence_number"], known["last_enqueued_sequence_number"]
        # An empty partition reports -1 as its last event, and the next event as its first.
        return range(max(first, 0), last + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


def main(arguments: list[str] | None = None) -> None:
    """Send more events, evenly to all partitions."""
    parser = argparse.ArgumentParser(description="Send more events to the demo's hub.")
    parser.add_argument("count", type=int, nargs="?", default=100, help="default: 100")
    count = parser.parse_args(arguments).count
    hub = from_environment(HUB_VARIABLE)
    with EventHubProducerClient.from_connection_string(hub) as client:
        partitions = len(client.get_partition_ids())
    with Publisher(hub, partitions) as publisher:
        publisher.publish(count)
    print(f"{count} events sent to {partitions} partitions")


if __name__ == "__main__":
    main()
