"""A day of consumers that hand partitions over to each other, on a simulated clock.

The stores, the policies, hand-overs, the watchdog and what is known of each partition take time
from the event loop and from `time`, both of which the simulation replaces: a day takes minutes. Two
groups of two consumers read the same events, one with a `Checkpointer`, the other with a
`CoalescingCheckpointStore`, each behind a `HandoverStore`.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azure.eventhub import CloseReason
from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import (
    Checkpointer,
    CoalescingCheckpointStore,
    HandoverStore,
    MemoryCheckpointStore,
)
from simulated_time import quiet, simulate
from soak.trend import TOLERATED, Trend, trend

PLACE = {"fully_qualified_namespace": "simulated.servicebus.windows.net", "eventhub_name": "hub"}
PARTITIONS = tuple(map(str, range(4)))
POLICY = every(events=25, seconds=30)
ROUND_SECONDS = 10
HELD_ROUNDS = 60
"""Rounds after which the other consumer of a group asks for the partitions."""
EXPIRY = 60.0
STALLED_AFTER = 120.0
HUNG_ROUNDS = 20
"""Rounds for which the first event of partition 0 after a hand-over is unfinished: a stall."""


@dataclass(frozen=True, slots=True)
class Day:
    """Result of a simulation.

    Attributes:
        events, claims: number of events and of rounds of claims.
        handovers: partitions that were handed over.
        stalls: that the watchdogs have found.
        memory: KiB that Python has allocated, by seconds.
    """

    events: int
    claims: int
    handovers: int
    stalls: int
    memory: Sequence[tuple[float, float]]

    @property
    def trend(self) -> Trend:
        """Return whether memory grows."""
        return trend(self.memory, TOLERATED["memory"])


@dataclass(frozen=True, slots=True)
class Event:
    """What a `Checkpointer` and a context read of an event."""

    sequence_number: int

    @property
    def offset(self) -> str:
        """Return the number as text."""
        return str(self.sequence_number)


class Consumer:
    """Consumer of a group: what a client and a handler do, without a hub.

    Attributes:
        contexts: of the partitions that it has open.
        claims: rounds of claims.
        opened: partitions that it has opened.
        stalls: that its watchdog has found.
    """

    def __init__(self, name: str, group: str, rows: MemoryCheckpointStore) -> None:
        self._names = {**PLACE, "consumer_group": group}
        self._name = name
        self.contexts: dict[str, PartitionContext] = {}
        self.claims = self.opened = self.stalls = 0
        self._hung: Any = None
        self._coalescing = CoalescingCheckpointStore(rows, POLICY)
        self._saves_each = group == "coalescing"
        below = self._coalescing if self._saves_each else rows
        self._store = HandoverStore(below, expires_after=EXPIRY)
        self._checkpointer = Checkpointer(
            self._store, POLICY, stalled_after=STALLED_AFTER, on_stall=self._stalled
        )

    def _stalled(self, _: object) -> None:
        self.stalls += 1

    async def balance(self, wanted: Sequence[str], number: int) -> None:
        """Claim, as a round of a client's load balancing; close what was lost, open what was won.

        Raises:
            AssertionError: a partition is opened whose events are not all saved.
        """
        scope = tuple(self._names.values())
        listed = await self._store.list_ownership(*scope)
        etags = {row["partition_id"]: row["etag"] for row in listed}
        proposed = [
            {**self._names, "partition_id": key, "owner_id": self._name, "etag": etags.get(key)}
            for key in wanted
        ]
        won = await self._store.claim_ownership(proposed)
        self.claims += 1
        kept = {row["partition_id"] for row in won}
        for key in self.contexts.keys() - kept:
            await self._close(key)
        # The second iteration has those, too, that are handed over.
        released = [row | {"owner_id": ""} for row in won if row["partition_id"] not in kept]
        if released:
            await self._store.claim_ownership(released)
        if fresh := kept - self.contexts.keys():
            saved = {
                row["partition_id"]: row["sequence_number"]
                for row in await self._store.list_checkpoints(*scope)
            }
            for key in fresh:
                assert saved.get(key, -1) == number - 1, "a hand-over has not saved everything"
                await self._open(key)

    async def _open(self, key: str) -> None:
        namespace, hub, group = self._names.values()
        self.contexts[key] = PartitionContext(
            namespace, hub, group, key, checkpoint_store=self._store
        )
        self.opened += 1
        if not self._saves_each:
            await self._checkpointer.on_initialize(self.contexts[key])

    async def _close(self, key: str) -> None:
        context = self.contexts.pop(key)
        if not self._saves_each:
            await self._checkpointer.on_close(context, CloseReason.OWNERSHIP_LOST)

    async def process(self, number: int, *, hangs: bool) -> None:
        """Process an event of each open partition; where it hangs, partition 0 goes on later."""
        event: Any = Event(number)
        if self._hung is not None and not hangs:
            self._hung.done()
            self._hung = None
        for key, context in self.contexts.items():
            if self._saves_each:
                await context.update_checkpoint(event)
                continue
            if key == "0" and self._hung is not None:
                continue
            tracked = await self._checkpointer.track(context, event)
            if hangs and key == "0":
                self._hung = tracked
            else:
                tracked.done()

    async def close(self) -> None:
        """Stop: close the partitions, and the store."""
        for key in list(self.contexts):
            await self._close(key)
        await self._checkpointer.close()
        await self._coalescing.close()


def run_day(hours: float, seed: int) -> Day:
    """Simulate consumers for this many hours, and measure 48 times."""
    tracemalloc.start()
    try:
        with quiet():
            return simulate(lambda: consume(int(hours * 3600 / ROUND_SECONDS)), seed)
    finally:
        tracemalloc.stop()


async def consume(rounds: int) -> Day:
    """Claim every round, process an event of each partition each second, and hand over."""
    rows = MemoryCheckpointStore()
    groups = [
        [Consumer(f"{group}-{number}", group, rows) for number in range(2)]
        for group in ("checkpointer", "coalescing")
    ]
    loop, memory, number = asyncio.get_running_loop(), [], 0
    for turn in range(rounds):
        at, heir = turn % HELD_ROUNDS, turn // HELD_ROUNDS % 2
        for consumers in groups:
            # The one that asks comes first; the owner answers, and it claims in the next round.
            for consumer in (consumers[heir], consumers[1 - heir]):
                is_heir = consumer is consumers[heir]
                wanted = PARTITIONS if is_heir else tuple(consumer.contexts)
                await consumer.balance(wanted, number)
        for _ in range(ROUND_SECONDS):
            await asyncio.sleep(1)
            holders = [one for consumers in groups for one in consumers if one.contexts]
            for consumer in holders:
                await consumer.process(number, hangs=0 < at < HUNG_ROUNDS)
            number += bool(holders)
        if turn % max(rounds // 48, 1) == 0:
            gc.collect()
            memory.append((loop.time(), tracemalloc.get_traced_memory()[0] / 1024))
    everyone = [one for consumers in groups for one in consumers]
    for consumer in everyone:
        await consumer.close()
    await rows.close()
    opened = sum(consumer.opened for consumer in everyone)
    return Day(
        number * len(PARTITIONS) * len(groups),
        sum(consumer.claims for consumer in everyone),
        opened - len(PARTITIONS) * len(groups),
        sum(consumer.stalls for consumer in everyone),
        memory,
    )
