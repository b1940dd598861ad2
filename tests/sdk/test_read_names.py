"""The names that processing reads are there, on the sync and on the aio client."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from client_threads import wait_for_clients
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.aio import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.sdk.consumer import client_of
from eventhub_checkpoints.sdk.private_names import (
    CLIENT,
    CONSUMER,
    CONTEXT,
    LOOP,
    PROCESSING,
    names_of,
)
from eventhub_checkpoints.sdk.stack import calling_loop, running_handler
from waiting import LIMIT

SYNC_ONLY = {"handler_ready"}
"""A sync client opens a link in steps, and the name tells whether it is ready."""
OF_A_FRAME = {"partition_context"}
"""A variable of a function: `running_handler` finds it."""


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 1}) as running:
        running.publish("orders", "0", ["event"])
        yield running
        wait_for_clients()


def missing(context: Any, *, is_aio: bool) -> list[str]:
    """What is looked for in vain; called by a handler."""
    loop = calling_loop()
    parts = {
        LOOP: loop,
        CLIENT: client_of(loop),
        CONTEXT: context,
        CONSUMER: next(iter(loop._consumers.values())),
    }
    absent = (SYNC_ONLY if is_aio else set()) | OF_A_FRAME
    return [
        f"{owner}.{name}"
        for owner, part in parts.items()
        for name in names_of(PROCESSING, owner)
        if name not in absent and not hasattr(part, name)
    ]


def test_a_sync_client_has_them(hub: LocalHub) -> None:
    found: list[list[str]] = []
    places: list[str | None] = []

    def on_event(context: Any, event: object) -> None:
        found.append(missing(context, is_aio=False))
        places.append(running_handler(context, in_threads=True))
        client.close()

    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"),
        "$Default",
        checkpoint_store=MemoryCheckpointStore(),
        load_balancing_interval=0.4,
    )
    client.receive(on_event, starting_position="-1")
    assert found == [[]]
    assert places[0] is not None


def test_an_aio_client_has_them(hub: LocalHub) -> None:
    found: list[list[str]] = []

    async def run() -> str | None:
        contexts: asyncio.Queue[object] = asyncio.Queue()

        async def on_event(context: Any, event: object) -> None:
            found.append(missing(context, is_aio=True))
            await contexts.put(context)
            await asyncio.Event().wait()

        client = AioEventHubConsumerClient.from_connection_string(
            hub.connection_string("orders"),
            "$Default",
            checkpoint_store=AioMemoryCheckpointStore(),
            load_balancing_interval=0.4,
        )
        receiving = asyncio.create_task(client.receive(on_event, starting_position="-1"))
        async with asyncio.timeout(LIMIT):
            context = await contexts.get()
        await asyncio.sleep(0)  # the handler waits, from now on
        place = running_handler(context, in_threads=False)
        await client.close()
        receiving.cancel()  # or it would go on until its load balancing has slept
        await asyncio.wait([receiving])
        return place

    assert asyncio.run(run()) is not None
    assert found == [[]]
