"""Send events to a hub once, in one of several ways, and print what that cost."""

import argparse
import json
import os
import time
from collections.abc import Iterator

import pyarrow as pa
from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.amqp.sender import HubSender
from eventhub_checkpoints.send.arrow import send_all

FAST, PUBLIC, OFFICIAL = WAYS = ("fast", "public", "official")
ROWS = 10_000
BODY = b"x" * 200
PROPERTIES = {"line": "7", "train": "IC 1234", "kind": "delay"}


def batches(events: int, has_properties: bool) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches as Spark hands them over."""
    columns = {"body": pa.array([BODY] * ROWS)}
    if has_properties:
        kind = pa.map_(pa.string(), pa.string())
        columns["properties"] = pa.array([list(PROPERTIES.items())] * ROWS, kind)
    batch = pa.RecordBatch.from_pydict(columns)
    for begin in range(0, events, ROWS):
        yield batch.slice(0, min(ROWS, events - begin))


def by_sender(asked: argparse.Namespace) -> tuple[float, float]:
    """Ours; return seconds on the clock and of the processor, once connected."""
    address = HubAddress.from_connection_string(asked.connection_string)
    with HubSender(address, SendSettings(send_path=asked.way)) as sender:
        send_all(sender, batches(1, False))
        wall, cpu = time.perf_counter(), time.process_time()
        send_all(sender, batches(asked.events, asked.properties))
        return time.perf_counter() - wall, time.process_time() - cpu


def by_client(asked: argparse.Namespace) -> tuple[float, float]:
    """The official client's loop of `create_batch`, `add` and `send_batch`.

    Its bodies and properties are Python objects before the clock starts.
    """
    client = EventHubProducerClient.from_connection_string(asked.connection_string)
    client.send_event(EventData(BODY))
    rows = [
        (row["body"], dict(row.get("properties", ())))
        for each in batches(asked.events, asked.properties)
        for row in each.to_pylist()
    ]
    wall, cpu = time.perf_counter(), time.process_time()
    batch = client.create_batch()
    for body, properties in rows:
        event = EventData(body)
        if properties:
            event.properties = properties
        try:
            batch.add(event)
        except ValueError:
            client.send_batch(batch)
            batch = client.create_batch()
            batch.add(event)
    client.send_batch(batch)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Send; print rows, and seconds on the clock and of the processor, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("connection_string")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--properties", action="store_true")
    asked = parser.parse_args()
    wall, cpu = by_client(asked) if asked.way == OFFICIAL else by_sender(asked)
    print(json.dumps([asked.events, wall, cpu]), flush=True)
    # To close takes the client up to a second, which is no sending.
    os._exit(0)


if __name__ == "__main__":
    main()
