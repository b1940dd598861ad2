"""What azure-eventhub keeps of every event that it receives, measured without this package.

    python -m soak.official

Each client reads one partition of the local hub, which is in another process, over one link, and
saves no checkpoint: once as it is, and once with `forget_delivery_tags`.
"""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from azure.eventhub import EventHubConsumerClient
from azure.eventhub._pyamqp.aio._receiver_async import ReceiverLink as AioReceiverLink
from azure.eventhub._pyamqp.receiver import ReceiverLink
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints.localhub import LocalHub
from soak.delivery_tags import forget_delivery_tags

HUB = "official"
TAGS = "_received_delivery_tags"
WARM_UP, MEASURED = 20_000, 200_000
"""Events before the first measurement, and between the two."""


class Meter:
    """Counts events, prints what they have cost, and then ends the process."""

    def __init__(self) -> None:
        self._events = 0
        self._first: tuple[int, int] | None = None

    def count(self, events: Sequence[object]) -> None:
        """Count the events of one batch."""
        self._events += len(events)
        if self._first is None and self._events >= WARM_UP:
            self._first = self._events, resident()
        if self._first is not None and self._events >= self._first[0] + MEASURED:
            events_before, memory_before = self._first
            grown = (resident() - memory_before) / (self._events - events_before)
            print(f"{self._events:,} events: {tags_kept():,} tags kept, {grown:.1f} bytes an event")
            sys.stdout.flush()
            os._exit(0)


def resident() -> int:
    """Return the bytes of this process in memory, without what is garbage; Linux only."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tags_kept() -> int:
    """Return the number of delivery tags that the client's links have."""
    # Not isinstance: it fails on a weak proxy whose object no longer exists.
    links = [each for each in gc.get_objects() if type(each) in (ReceiverLink, AioReceiverLink)]
    return sum(len(getattr(link, TAGS)) for link in links)


def consume(connection: str, variant: str) -> None:
    """Receive in this process until the meter ends it."""
    meter, start = Meter(), "-1"
    if variant == "aio":

        async def on_aio_batch(_: object, events: Sequence[object]) -> None:
            meter.count(events)

        aio_client = AioEventHubConsumerClient.from_connection_string(connection, "$Default")
        asyncio.run(
            aio_client.receive_batch(on_aio_batch, partition_id="0", starting_position=start)
        )
    client = EventHubConsumerClient.from_connection_string(connection, "$Default")
    client.receive_batch(
        lambda _, events: meter.count(events), partition_id="0", starting_position=start
    )


def main() -> None:
    """Measure both clients, each in a process of its own."""
    with LocalHub({HUB: 1}) as hub:
        for _ in range(0, WARM_UP + MEASURED + 10_000, 10_000):
            hub.publish(HUB, "0", [b"event"] * 10_000)
        for variant in ("sync", "aio"):
            for how in ("as it is", "forgetting"):
                print(f"{variant}, {how}: ", end="", flush=True)
                words = [hub.connection_string(HUB), variant, how]
                subprocess.run([sys.executable, "-m", "soak.official", *words], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        if sys.argv[3] == "forgetting":
            forget_delivery_tags()
        consume(*sys.argv[1:3])
