"""The same program as `program_sync.py`, for asyncio."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore


async def main(limit: int) -> None:
    store = BlobCheckpointStore.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"], os.environ["BLOB_CONTAINER"]
    )
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"],
        consumer_group="$Default",
        checkpoint_store=store,
        load_balancing_interval=0.4,
        partition_ownership_expiration_interval=float(os.environ["EXPIRY"]),
    )
    processed = 0
    one_at_a_time, enough = asyncio.Lock(), asyncio.Event()

    async def on_event_batch(context: Any, events: list[Any]) -> None:
        nonlocal processed
        async with one_at_a_time:
            for event in events:
                if processed == limit:
                    enough.set()
                    return
                await context.update_checkpoint(event)
                print(context.partition_id, event.sequence_number, flush=True)
                processed += 1

    async with store, client:
        receiving = asyncio.create_task(
            client.receive_batch(on_event_batch, starting_position="-1")
        )
        await enough.wait()
        await client.close()
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
