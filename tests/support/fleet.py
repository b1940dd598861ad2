"""Groups of any size whose members work, as pictures and large pages need them."""

import json
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sql import SqlCheckpointStore

RETAINED = 40
"""Events of each partition at the beginning."""
STUCK, LOST, SLOW = 7, 1, 4
"""Partitions that nobody owns, that have lost events, and that are processed slowly."""


class Fleet:
    """A hub, a store, and the group `$Default` of which every step processes some events.

    Partition 1 has lost events, partition 4 falls behind, and partition 7 has no owner.
    """

    def __init__(self, hub: LocalHub, store: Any, partitions: int, members: int) -> None:
        self.hub, self.store, self.partitions = hub, store, partitions
        self.connection_string = hub.connection_string("orders")
        self.scope = HubAddress.from_connection_string(self.connection_string).scope()
        self._random = random.Random(3)
        self.members = [str(UUID(int=self._random.getrandbits(128))) for _ in range(members)]
        self._at = [RETAINED - 8 - number % 5 for number in range(partitions)]
        self._at[LOST] = 4
        self._last = [RETAINED - 1] * partitions
        for number in range(partitions):
            hub.publish("orders", str(number), [b"event"] * RETAINED)
        last = hub.partition_properties("orders", "0").last_offset
        self._size = int(last) // (RETAINED - 1)  # all events are equally long
        for number in range(partitions):
            self._save(number)
        hub.trim("orders", str(LOST), 10)
        for number, owner in enumerate(self.members):
            own = [each for each in range(number, partitions, members) if each != STUCK]
            self._claim(self.scope, own, owner)

    @classmethod
    @contextmanager
    def opened(
        cls, folder: Path, environment: pytest.MonkeyPatch, partitions: int, members: int
    ) -> Iterator[Self]:
        """Start the hub and open the store, and name them and the folder of records."""
        url = f"sqlite:///{folder}/checkpoints.db"
        with (
            LocalHub({"orders": partitions}) as hub,
            SqlCheckpointStore(url, create_tables=True) as store,
        ):
            environment.setenv("EHCP_STORE", url)
            environment.setenv("EHCP_HUB", hub.connection_string("orders"))
            environment.setenv("EHCP_STATE_DIR", str(folder / "state"))
            yield cls(hub, store, partitions, members)

    def _row(self, scope: Scope, number: int) -> dict[str, Any]:
        return {**scope.as_dict(), "partition_id": str(number)}

    def _save(self, number: int, scope: Scope | None = None) -> None:
        at = self._at[number]
        row = {**self._row(scope or self.scope, number), "sequence_number": at}
        self.store.update_checkpoint({**row, "offset": str(self._size * at)})

    def _claim(self, scope: Scope, numbers: Iterable[int], owner: str) -> None:
        rows = [{**self._row(scope, each), "owner_id": owner} for each in numbers]
        assert len(self.store.claim_ownership(rows)) == len(rows)

    def add_groups(self) -> None:
        """Add a group that has caught up, and one without members."""
        billing = self.scope._replace(consumer_group="billing")
        for number in range(2):
            self._claim(billing, range(number, self.partitions, 2), f"billing-{number}")
        audit = self.scope._replace(consumer_group="audit")
        for number in range(self.partitions):
            self._save(number, audit)

    def add_orders(self, number: int, count: int) -> None:
        """Publish events with JSON and properties to a partition."""
        with EventHubProducerClient.from_connection_string(self.connection_string) as producer:
            batch = producer.create_batch(partition_id=str(number))
            for order in range(1042, 1042 + count):
                event = EventData(json.dumps(order_of(order)))
                event.properties = {"kind": "order", "trace": f"{order:016x}"}
                batch.add(event)
            producer.send_batch(batch)
        self._last[number] += count

    def work(self) -> None:
        """Publish some events to each partition, and process some."""
        for number in range(self.partitions):
            arrived = self._random.randint(1, 9 if number % 3 == 0 else 6)
            self.hub.publish("orders", str(number), [b"event"] * arrived)
            self._last[number] += arrived
            processed = self._random.randint(1, 2 if number == SLOW else 8)
            if number not in (LOST, STUCK):
                self._at[number] = min(self._last[number], self._at[number] + processed)
                self._save(number)
            billing = self.scope._replace(consumer_group="billing")
            last = self._last[number]
            row = {**self._row(billing, number), "sequence_number": last}
            self.store.update_checkpoint({**row, "offset": str(self._size * last)})


def order_of(number: int) -> dict[str, Any]:
    """Return the body of an event."""
    return {
        "order": number,
        "customer": {"name": "ACME", "vip": number % 2 == 0, "tags": ["eu", "b2b"]},
        "lines": [{"sku": f"A-{number % 7}", "count": number % 3 + 1, "price": 12.5}],
        "note": None,
    }
