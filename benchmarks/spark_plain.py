"""A plain loop over the client, with no store: it counts the events and looks at none of them."""

import argparse
import json
import os
import time
from typing import Any

from azure.eventhub import EventHubConsumerClient


def main() -> None:
    """Count so many events; print seconds on the clock and of the processor as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("connection_string")
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--ahead", type=int, help="prefetch and max_batch_size; else the client's")
    asked = parser.parse_args()
    client = EventHubConsumerClient.from_connection_string(asked.connection_string, "$Default")
    wall, cpu, counted = time.perf_counter(), time.process_time(), 0

    def count(_context: Any, events: list[Any]) -> None:
        nonlocal counted
        counted += len(events)
        if counted >= asked.events:
            seconds = time.perf_counter() - wall, time.process_time() - cpu
            print(json.dumps(seconds), flush=True)
            # To close takes the client up to a second for each partition, which is no receiving.
            os._exit(0)

    ahead = {"prefetch": asked.ahead, "max_batch_size": asked.ahead} if asked.ahead else {}
    client.receive_batch(count, starting_position="-1", **ahead)


if __name__ == "__main__":
    main()
