"""One real consumer process: it starts at the first line, and reports its requests at others."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from azure.eventhub import LoadBalancingStrategy
from azure.eventhub.aio import EventHubConsumerClient

from eventhub_checkpoints.aio import open_store
from simulated_time import quiet

HOOKS = {
    "read_ownerships": "list",
    "try_claim": "claim",
    "try_claims": "claim",
    "read_checkpoints": "checkpoints",
}
"""Kind of request of each hook; those of Redis and SQLite send one request each."""


def counted(hook: Callable[..., Awaitable[Any]], counts: Counter[str], kind: str) -> Any:
    """Return a hook that counts its calls."""

    async def call(*args: Any) -> Any:
        counts[kind] += 1
        return await hook(*args)

    return call


async def ignore(_context: object, _event: object) -> None:
    """Handle an event: there is none."""


async def consume(asked: dict[str, Any]) -> None:
    """Print `ready`, receive from the first line on, and print the counts at every other."""
    counts: Counter[str] = Counter()
    async with open_store(asked["store"]) as store:
        await store.verify()
        for hook, kind in HOOKS.items():
            setattr(store, hook, counted(getattr(store, hook), counts, kind))
        client = EventHubConsumerClient.from_connection_string(
            asked["connection_string"],
            "$Default",
            checkpoint_store=store,
            load_balancing_interval=asked["interval"],
            partition_ownership_expiration_interval=asked["expiration"],
            load_balancing_strategy=LoadBalancingStrategy(asked["strategy"]),
        )
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async with client:
            receiving = asyncio.create_task(client.receive(ignore))
            while await asyncio.to_thread(sys.stdin.readline):
                print(json.dumps(counts), flush=True)
        await receiving


if __name__ == "__main__":
    with quiet():
        asyncio.run(consume(json.loads(sys.argv[1])))
