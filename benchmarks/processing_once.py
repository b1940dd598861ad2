"""Consume a hub's events once, with checkpoints of one kind or none, and print what that cost."""

import argparse
import asyncio

from benchmarks import processing_tasks, processing_threads
from benchmarks.processing_meter import Meter
from benchmarks.processing_ways import WAYS, WITHOUT


def main() -> None:
    """Consume; print events, seconds on the clock and of the processor, and writes, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hub", help="its connection string")
    parser.add_argument("container", help="its URL")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--aio", action="store_true", help="by the client of event loops")
    parser.add_argument("--events", type=int, required=True)
    asked = parser.parse_args()
    wanted = asked.hub, asked.container, asked.way, Meter(asked.events, asked.way not in WITHOUT)
    if asked.aio:
        asyncio.run(processing_tasks.Consumer(*wanted).consume())
    else:
        processing_threads.Consumer(*wanted).consume()


if __name__ == "__main__":
    main()
