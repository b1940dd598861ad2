"""A day of two consumers that take partitions from each other, on a simulated clock.

The stores, the policies and what is known of each partition take time from the event loop and from
`time`, both of which the clock of `benchmarks.scale` replaces: a day takes seconds.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.scale.clock import simulate
from eventhub_checkpoints import Scope, every
from eventhub_checkpoints.aio import CoalescingCheckpointStore, MemoryCheckpointStore
from soak.trend import TOLERATED, Trend, trend

SCOPE = Scope("simulated.servicebus.windows.net", "hub", "$default")
PARTITIONS = tuple(map(str, range(8)))
ROUND_SECONDS = 10
HELD_ROUNDS = 60
"""Rounds after which the partitions go to the other consumer."""


@dataclass(frozen=True, slots=True)
class Day:
    """Result of a simulation.

    Attributes:
        events, claims: number of checkpoints and of rounds of claims that the stores were passed.
        memory: KiB that Python has allocated, by seconds.
    """

    events: int
    claims: int
    memory: Sequence[tuple[float, float]]

    @property
    def trend(self) -> Trend:
        """Return whether memory grows."""
        return trend(self.memory, TOLERATED["memory"])


def run_day(hours: float, seed: int) -> Day:
    """Simulate consumers for this many hours, and measure 48 times."""
    tracemalloc.start()
    try:
        return simulate(lambda: consume(int(hours * 3600 / ROUND_SECONDS)), seed)
    finally:
        tracemalloc.stop()


async def consume(rounds: int) -> Day:
    """Claim every round, save a checkpoint of each partition each second, and change owners."""
    rows = MemoryCheckpointStore()
    stores = [CoalescingCheckpointStore(rows, every(events=25, seconds=30)) for _ in range(2)]
    loop, memory, number, claims = asyncio.get_running_loop(), [], 0, 0
    names = {"fully_qualified_namespace": SCOPE.fully_qualified_namespace}
    names |= {"eventhub_name": SCOPE.eventhub_name, "consumer_group": SCOPE.consumer_group}
    etags: dict[str, Any] = {}
    for turn in range(rounds):
        owner = turn // HELD_ROUNDS % 2
        store = stores[owner]
        listed = {row["partition_id"]: row for row in await store.list_ownership(*SCOPE)}
        etags = {key: row["etag"] for key, row in listed.items()}
        proposed = [
            {**names, "partition_id": key, "owner_id": f"owner-{owner}", "etag": etags.get(key)}
            for key in PARTITIONS
        ]
        won = list(await store.claim_ownership(proposed))
        assert len(won) == len(PARTITIONS)
        claims += 1
        if turn % HELD_ROUNDS == 0:
            await store.list_checkpoints(*SCOPE)
        for _ in range(ROUND_SECONDS):
            await asyncio.sleep(1)
            for key in PARTITIONS:
                saved = {"partition_id": key, "offset": str(number), "sequence_number": number}
                await store.update_checkpoint({**names, **saved})
            number += 1
        if turn % HELD_ROUNDS == HELD_ROUNDS - 1:
            await store.claim_ownership([{**row, "owner_id": ""} for row in won])
        if turn % max(rounds // 48, 1) == 0:
            gc.collect()
            memory.append((loop.time(), tracemalloc.get_traced_memory()[0] / 1024))
    for store in stores:
        await store.close()
    await rows.close()
    return Day(number * len(PARTITIONS), claims, memory)
