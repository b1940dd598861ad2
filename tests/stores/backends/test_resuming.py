"""The real clients over every backend: one saves, closes, and the next goes on where it stopped."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from backends import Place, Variant
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from prompt_client import prompt_client
from stores_in_turn import in_turn
from waiting import LIMIT, eventually

__all__ = ["prompt_client"]

SETTINGS: dict[str, Any] = {
    "consumer_group": "$Default",
    # Its first round takes the partition; one that is under way at the close would claim it again.
    "load_balancing_interval": 30.0,
    "partition_ownership_expiration_interval": 60.0,
}


def consumed(hub: LocalHub, store: Any, last: int) -> list[int]:
    """Sequence numbers that a sync client receives and saves until the last one has come."""
    numbers: list[int] = []

    def on_event(context: Any, event: Any) -> None:
        context.update_checkpoint(event)
        numbers.append(event.sequence_number)

    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"), checkpoint_store=store, **SETTINGS
    )
    receiving = threading.Thread(
        target=client.receive, args=(on_event,), kwargs={"starting_position": "-1"}
    )
    receiving.start()
    try:
        eventually(lambda: last in numbers)
    finally:
        client.close()
        receiving.join(LIMIT)
        store.close()
    return numbers


async def consumed_aio(hub: LocalHub, store: Any, last: int) -> list[int]:
    """The same, by a client of asyncio."""
    numbers: list[int] = []

    async def on_event(context: Any, event: Any) -> None:
        await context.update_checkpoint(event)
        numbers.append(event.sequence_number)

    client = AioEventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"), checkpoint_store=store, **SETTINGS
    )
    receiving = asyncio.create_task(client.receive(on_event, starting_position="-1"))
    try:
        await asyncio.to_thread(eventually, lambda: last in numbers)
    finally:
        await client.close()
        receiving.cancel()  # or it would go on until its load balancing has slept
        with suppress(asyncio.CancelledError):
            await receiving
        await store.close()
    return numbers


# What the two clients do is the same on every backend.
@in_turn()
def test_the_next_client_goes_on_where_the_first_one_stopped(
    place: Place, variant: Variant, loop: Loop
) -> None:
    def consume(last: int) -> list[int]:
        run = consumed_aio if variant == "aio" else consumed
        numbers: list[int] = loop.finished(run(hub, place.open(variant), last))
        return numbers

    with LocalHub({"orders": 1}) as hub:
        hub.publish("orders", "0", ["event"] * 3)
        assert consume(2) == [0, 1, 2]
        assert not place.rows("ownership")["0"]["ownerid"], "it was not released"
        assert place.rows("checkpoint")["0"]["sequencenumber"] == "2"
        hub.publish("orders", "0", ["event"] * 2)
        assert consume(4) == [3, 4]
