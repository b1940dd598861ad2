"""How long a partition that is handed over pauses, on the simulated clock, and why."""

import asyncio
import random
import time
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from eventhub_checkpoints import aio
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from joining import LONGEST_ROUND, Group, Move, Setting
from simulated_hub import HUB, NAMESPACE, SimulatedHub
from simulated_time import DIGITS, now, quiet, simulate

SCOPE = Scope(NAMESPACE, HUB, "$Default")
REQUESTS = {"consumer_group": SCOPE.handover_requests.consumer_group}
INTERVAL, EXPIRY = 1.0, 12.0
DRAIN = 8.0
QUICK = Setting(partitions=2, interval=INTERVAL, drain=0.3, opening=0.2, keep_alive=0.0)


async def handed_over(setting: Setting, joins_at: float) -> list[Move]:
    """The hand-overs to a consumer that joins so long after the first.

    Every round takes as long as the client may extend it.
    """
    with patch.object(random, "random", lambda: 1.0):
        group = Group(setting)
        await group.join()
        await asyncio.sleep(joins_at)
        await group.join()
        await asyncio.sleep(6 * LONGEST_ROUND * setting.interval)
        await group.stop()
    return group.moves()


@pytest.mark.parametrize("phase", [0.01, 0.29, 0.31, 0.6, 0.9, 1.19])
def test_a_partition_pauses_for_the_drain_and_a_round_of_who_asked_and_the_opening(
    phase: float,
) -> None:
    rounds = round(LONGEST_ROUND * INTERVAL, DIGITS)
    with quiet():
        (move,) = simulate(partial(handed_over, QUICK, 2 * rounds + phase))
    # The owner goes on until its next round, which is the fourth.
    assert move.asked == round(2 * rounds + phase, DIGITS)
    assert move.stopped == round(3 * rounds, DIGITS)
    assert round(move.released - move.stopped, DIGITS) == QUICK.drain
    # The round of the consumer that asked is `phase` after each one of the owner.
    waited = round(move.claimed - move.released, DIGITS)
    assert waited == round((phase - QUICK.drain) % rounds, DIGITS)
    assert round(move.opened - move.claimed, DIGITS) == QUICK.opening


@pytest.mark.parametrize(("partitions", "rounds"), [(4, [0, 0]), (8, [0, 0, 1, 1])])
def test_two_partitions_are_asked_for_in_a_round_and_claimed_together(
    partitions: int, rounds: list[int]
) -> None:
    setting = replace(QUICK, partitions=partitions)
    longest = LONGEST_ROUND * INTERVAL
    with quiet():
        moves = simulate(partial(handed_over, setting, 2.5 * longest))
    began = 2.5 * longest
    assert [round((move.asked - began) / longest, DIGITS) for move in moves] == rounds
    assert [round((move.claimed - move.asked) / longest, DIGITS) for move in moves] == [
        1.0 for _ in rounds
    ]


class Processor(aio.PartitionProcessor):
    """Takes its time to close."""

    opened: dict[str, float]

    async def initialize(self) -> None:
        self.opened[self.context.partition_id] = now()

    async def process_events(self, events: Any) -> None:
        """Process nothing."""

    async def close(self, reason: object) -> None:
        await asyncio.sleep(DRAIN)


def row(partition_id: str, owner_id: str, **rest: Any) -> dict[str, Any]:
    return {**SCOPE.as_dict(), "partition_id": partition_id, "owner_id": owner_id, **rest}


def test_a_consumer_that_drains_opens_others_and_renews_meanwhile() -> None:
    async def gained() -> tuple[float, set[float]]:
        hub, rows, opened = SimulatedHub(3), MemoryRows(), dict[str, float]()
        other = aio.MemoryCheckpointStore(rows)

        async def stored() -> dict[str, Any]:
            return {each["partition_id"]: each for each in await other.list_ownership(*SCOPE)}

        kind: Any = type("Recorded", (Processor,), {"opened": opened})
        client = partial(
            hub.client.from_connection_string,
            hub.connection_string(HUB),
            SCOPE.consumer_group,
            load_balancing_interval=INTERVAL,
            partition_ownership_expiration_interval=EXPIRY,
        )
        await other.claim_ownership([row(key, "other") for key in "12"])
        store = aio.MemoryCheckpointStore(rows)
        with patch.object(random, "random", lambda: 0.0):
            async with aio.EventProcessor(client, kind, store=store):
                await asyncio.sleep(0.5 * INTERVAL)
                owner = (await stored())["0"]["owner_id"]
                await other.claim_ownership([row("0", f"other>{owner}") | REQUESTS])
                await asyncio.sleep(INTERVAL)  # it drains from now on
                await other.claim_ownership([{**(await stored())["1"], "owner_id": ""}])
                released, ages = now(), set()
                for _ in range(4):
                    await asyncio.sleep(INTERVAL)
                    ages.add(time.time() - (await stored())["0"]["last_modified_time"])
                return opened["1"] - released, ages

    with quiet():
        assert simulate(gained) == (0.5 * INTERVAL, {0.5 * INTERVAL})
