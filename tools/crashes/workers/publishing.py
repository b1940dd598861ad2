"""Publisher of events, steadily or in bursts, while workers come and go."""

import random
import threading
from collections.abc import Mapping
from typing import Self

from crashes.workers.diary import PARTITIONS
from eventhub_checkpoints.localhub import LocalHub


class Publishing(threading.Thread):
    """Publishes to a hub until it is stopped."""

    def __init__(self, hub: LocalHub, name: str, chance: random.Random) -> None:
        super().__init__(name="publishing", daemon=True)
        self._hub, self._hub_name, self._chance = hub, name, chance
        self._is_over = threading.Event()

    def run(self) -> None:
        """Publish, a few events at a time or many with pauses."""
        chance = self._chance
        has_bursts, rate = chance.random() < 0.4, chance.uniform(20, 250)
        while not self._is_over.wait(pause := 1.0 if has_bursts else 0.05):
            partition = chance.choice(PARTITIONS)
            self.publish(partition, max(int(rate * pause * chance.uniform(0.2, 2)), 1))

    def publish(self, partition: str, events: int) -> None:
        """Publish this many events."""
        self._hub.publish(self._hub_name, partition, [b"event"] * events)

    def last(self) -> Mapping[str, int]:
        """Return the last event of each partition."""
        held = [self._hub.partition_properties(self._hub_name, one) for one in PARTITIONS]
        return {one.partition_id: one.last_sequence_number for one in held}

    def stop(self) -> None:
        """Stop publishing."""
        self._is_over.set()
        if self.is_alive():
            self.join()

    def __enter__(self) -> Self:
        for partition in PARTITIONS:
            self.publish(partition, self._chance.randint(1, 100))
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
