"""Consume a hub's events once, in one of several ways, and print what that cost."""

import argparse
import asyncio
import logging
import os
import signal
import sys

from benchmarks._async import group_consumer as aio_consumer
from benchmarks._sync import group_consumer as sync_consumer
from benchmarks.consume_meter import READ, WAYS, Latency, Memory, Meter, Rate

RATE, MEMORY, LATENCY = MEASURED = ("rate", "memory", "latency")
LIMIT = 600
"""Seconds after which a consumer that does not end is ended."""


def meter_of(asked: argparse.Namespace) -> Meter:
    """What measures."""
    if asked.measure == MEMORY:
        return Memory(asked.seconds)
    if asked.measure == LATENCY:
        return Latency(asked.events)
    # What `read_batches` reads at once is not all.
    return Rate(
        1 if asked.way == READ else asked.partitions, asked.events, asked.total, asked.server
    )


def main() -> None:
    """Consume; print as JSON: events, seconds on the clock and of the processor; or what grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hub", help="its connection string")
    parser.add_argument("store", help="its URL")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--aio", action="store_true", help="by the client of event loops")
    parser.add_argument("--measure", choices=MEASURED, default=RATE)
    parser.add_argument("--commits", action="store_true", help="save the position of each batch")
    parser.add_argument("--events", type=int, default=0, help="that are measured")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--total", type=int, default=sys.maxsize, help="that are consumed")
    parser.add_argument("--members", type=int, default=1, help="that share the partitions")
    parser.add_argument("--server", type=int, default=os.getpid(), help="process of the hub")
    parser.add_argument("--seconds", type=float, default=0.0, help="to sleep")
    parser.add_argument("--max-rows", type=int, default=10_000)
    parser.add_argument("--max-wait", type=float, default=1.0)
    parser.add_argument("--buffer-bytes", type=int, default=64 * 2**20)
    asked = parser.parse_args()
    signal.alarm(LIMIT)
    # Members that find their shares warn of what is read again; the figures are not of that time.
    logging.disable(logging.WARNING)
    settings = {name: getattr(asked, name) for name in ("max_rows", "max_wait", "buffer_bytes")}
    start = "latest" if asked.measure == LATENCY else "earliest"
    arguments = (
        asked.hub,
        asked.store,
        asked.commits,
        meter_of(asked),
        start,
        asked.members,
        settings,
    )
    if asked.aio:
        asyncio.run(aio_consumer.GroupConsumer(*arguments).consume(asked.way))
    else:
        sync_consumer.GroupConsumer(*arguments).consume(asked.way)


if __name__ == "__main__":
    main()
