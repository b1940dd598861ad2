"""The stand-in as a process of its own: a hub that is full, and one that gets events one by one."""

import argparse
import json
import signal
import threading
import time
from collections.abc import Iterator
from itertools import count, cycle, islice
from random import Random

from eventhub_checkpoints.amqp.messages import Message
from eventhub_checkpoints.localhub import LocalHub

FULL, TICKING = "full", "ticking"
DISTINCT = 1000
"""So many events differ; then they come again, with other sequence numbers."""


def messages(properties: int, body: int, seed: int = 7) -> list[bytes]:
    """Encoded events with so many properties, each with a value of its own, and bytes of body."""
    chance = Random(seed)
    return [
        Message(
            application_properties={
                f"property-{which}": f"{number * which} of {which}" for which in range(properties)
            }
            or None,
            data=[chance.randbytes(body)],
        ).encode()
        for number in range(DISTINCT if body < 2**20 else 1)
    ]


def times() -> Iterator[bytes]:
    """Yield events that say when they were published."""
    for _ in count():
        yield Message(data=[str(time.time_ns()).encode()]).encode()


def publish_each(hub: LocalHub, seconds: float) -> None:
    """Publish an event, again and again after so many seconds."""
    due = time.monotonic()
    for event in times():
        hub.publish_messages(TICKING, "0", [event])
        due += seconds
        time.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    """Serve until a signal ends it; print the connection strings by hub as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--properties", type=int, default=0)
    parser.add_argument("--body", type=int, default=200, help="bytes")
    parser.add_argument("--events", type=int, default=0, help="in each partition")
    parser.add_argument("--rate", type=float, help="events a second in the other hub")
    asked = parser.parse_args()
    with LocalHub({FULL: asked.partitions, TICKING: 1}) as hub:
        stored = messages(asked.properties, asked.body)
        for partition_id in hub.partition_ids(FULL):
            hub.publish_messages(FULL, partition_id, islice(cycle(stored), asked.events))
        if asked.rate:
            threading.Thread(target=publish_each, args=(hub, 1 / asked.rate), daemon=True).start()
        addresses = {name: hub.connection_string(name) for name in (FULL, TICKING)}
        print(json.dumps(addresses), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
