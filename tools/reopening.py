"""Measures how long a partition is away whose link is opened again, beside others.

    PYTHONPATH=src:tools python -m reopening
    PYTHONPATH=src:tools python -m reopening --variants sync --partitions 4 --socket-timeout 0.02

A consumer with an `EventProcessor` has all partitions of a local hub. It closes one, as after a
stall, and opens it again in its next round of load balancing. Beside it, the others are idle, or
busy: a handler takes a while for a batch, and the next batch is there when it returns. Printed are
the seconds from the close of the partition until an event of it is processed, of each round. With a
synchronous client they depend on `socket_timeout` and on what the handlers of the others take: it
advances an opening link one step each time it has looked at all others.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import EventProcessor, MemoryCheckpointStore, PartitionProcessor, aio
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from waiting import eventually

HUB, GROUP = "orders", "$Default"
VARIANTS = ("sync", "aio")
PARTITIONS = (4, 8, 24)
CLOSED = "0"
"""Partition that is closed."""
BACKLOG = 2000
"""Events of each busy partition that wait."""
PATIENCE = 300.0
"""Seconds after which a partition counts as lost."""


class Log:
    """What happened to the partition that is closed.

    Attributes:
        closed_at: when it was last closed.
        received: sequence numbers of its events, and when they were processed.
        busy: partitions that have processed an event.
        handler_seconds: what the handler of another partition takes.
    """

    def __init__(self, handler_seconds: float) -> None:
        self.handler_seconds = handler_seconds
        self.closed_at = 0.0
        self.received: dict[int | None, float] = {}
        self.busy: set[str] = set()
        self.opened: set[str] = set()

    def processed(self, partition_id: str, numbers: Sequence[int | None]) -> float:
        """Record a batch; return how long its handler is to take."""
        if partition_id != CLOSED:
            self.busy.add(partition_id)
            return self.handler_seconds
        self.received |= dict.fromkeys(numbers, time.monotonic())
        return 0.0

    def closed(self, partition_id: str) -> None:
        """Record that a partition is closed."""
        if partition_id == CLOSED:
            self.closed_at = time.monotonic()


def sync_kind(log: Log) -> Any:
    """Return a class of processors that record what they do."""

    class Recorded(PartitionProcessor):
        def initialize(self) -> None:
            log.opened.add(self.context.partition_id)

        def process_events(self, events: Any) -> None:
            numbers = [event.sequence_number for event in events]
            time.sleep(log.processed(self.context.partition_id, numbers))

        def close(self, reason: object) -> None:
            log.closed(self.context.partition_id)

    return Recorded


def aio_kind(log: Log) -> Any:
    """Return its asynchronous twin."""

    class Recorded(aio.PartitionProcessor):
        async def initialize(self) -> None:
            log.opened.add(self.context.partition_id)

        async def process_events(self, events: Any) -> None:
            numbers = [event.sequence_number for event in events]
            await asyncio.sleep(log.processed(self.context.partition_id, numbers))

        async def close(self, reason: object) -> None:
            log.closed(self.context.partition_id)

    return Recorded


def reopened(
    variant: str, partitions: int, handler_seconds: float, rounds: int, socket_timeout: float
) -> list[float]:
    """Return the seconds for which the partition was away, in each round.

    Args:
        variant: `"sync"` or `"aio"`.
        partitions: of the hub.
        handler_seconds: what a busy handler takes; 0: the other partitions are idle.
        rounds: how often the partition is closed.
        socket_timeout: of the client, in seconds.
    """
    log = Log(handler_seconds)
    is_aio = variant == "aio"
    client: Any = AioEventHubConsumerClient if is_aio else EventHubConsumerClient
    processor_of: Any = aio.EventProcessor if is_aio else EventProcessor
    store: Any = (aio.MemoryCheckpointStore if is_aio else MemoryCheckpointStore)()
    with LocalHub({HUB: partitions}) as hub, Loop() as loop:
        make = partial(
            client.from_connection_string,
            hub.connection_string(HUB),
            GROUP,
            load_balancing_interval=1.0,
            socket_timeout=socket_timeout,
        )
        kind = aio_kind(log) if is_aio else sync_kind(log)
        processor = processor_of(make, kind, store=store, max_batch_size=10)
        hub.publish(HUB, CLOSED, ["event"])
        others = [key for key in hub.partition_ids(HUB) if key != CLOSED]
        if handler_seconds:
            for key in others:
                hub.publish(HUB, key, ["event"] * BACKLOG)
        loop.finished(processor.start())
        try:
            eventually(lambda: log.received and len(log.opened) == partitions, seconds=PATIENCE)
            if handler_seconds:
                eventually(lambda: len(log.busy) == len(others), seconds=PATIENCE)
            return [again(hub, processor, log) for _ in range(rounds)]
        finally:
            loop.finished(processor.stop())


def again(hub: LocalHub, processor: Any, log: Log) -> float:
    """Close the partition, and return the seconds until an event of it is processed."""
    before, closed_at = len(log.received), log.closed_at
    processor._callbacks.store.reopen(CLOSED)
    eventually(lambda: log.closed_at != closed_at, seconds=PATIENCE)
    hub.publish(HUB, CLOSED, ["event"])
    eventually(lambda: len(log.received) > before, seconds=PATIENCE)
    return log.received[before] - log.closed_at


def main() -> None:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", nargs="*", default=[*VARIANTS], choices=VARIANTS)
    parser.add_argument("--partitions", nargs="*", type=int, default=[*PARTITIONS])
    parser.add_argument("--handler", type=float, default=0.2, help="seconds of a busy handler")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--socket-timeout", type=float, default=0.2, help="of the client: 0.2")
    asked = parser.parse_args()
    for variant in asked.variants:
        for partitions in asked.partitions:
            for name, seconds in (("idle", 0.0), ("busy", asked.handler)):
                times = reopened(variant, partitions, seconds, asked.rounds, asked.socket_timeout)
                shown = ", ".join(f"{each:.1f}" for each in times)
                print(f"{variant:<5} {partitions:>3} partitions, {name}: {shown} s", flush=True)


if __name__ == "__main__":
    main()
