"""The stand-in as a process of its own, with events in its hubs before anybody reads."""

import argparse
import json
import signal
from collections.abc import Mapping
from typing import Any

from eventhub_checkpoints.localhub import LocalHub

BODY = bytes(range(200))
PROPERTIES: Mapping[str, Any] = {"device": "sensor-0017", "kind": "temperature", "priority": 3}
TRACED = len(PROPERTIES) + 1
"""One property more: the context of a producer, another one in each event."""
HUB = "hub-of-{partitions}-{properties}"


def hub_name(partitions: int, properties: int) -> str:
    """The hub, and the topic, with so many partitions and so many properties in each event."""
    return HUB.format(partitions=partitions, properties=properties)


def some(properties: int) -> dict[str, Any]:
    """So many of the properties."""
    return dict(list(PROPERTIES.items())[:properties])


def shares(events: int, partitions: int) -> list[int]:
    """How many of the events each partition holds."""
    return [(events + one) // partitions for one in range(partitions)]


def fill(hub: LocalHub, partitions: int, properties: int, events: int) -> str:
    """Publish the events; give the connection string."""
    name = hub_name(partitions, properties)
    for partition, count in enumerate(shares(events, partitions)):
        if properties < TRACED:
            hub.publish(name, str(partition), [BODY] * count, properties=some(properties))
            continue
        for number in range(count):
            traceparent = f"00-{number + 1:032x}-{number + 1:016x}-01"
            each = {**PROPERTIES, "traceparent": traceparent}
            hub.publish(name, str(partition), [BODY], properties=each)
    return hub.connection_string(name)


def kind_of(text: str) -> tuple[int, int]:
    """How many partitions, and how many properties in each event."""
    partitions, _, properties = text.partition(",")
    return int(partitions), int(properties)


def main() -> None:
    """Serve until a signal ends it; print the connection strings by hub as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, required=True, help="in each hub")
    parser.add_argument(
        "--kind", action="append", required=True, metavar="PARTITIONS,PROPERTIES", type=kind_of
    )
    asked = parser.parse_args()
    with LocalHub({hub_name(*kind): kind[0] for kind in asked.kind}) as hub:
        addresses = {hub_name(*kind): fill(hub, *kind, asked.events) for kind in asked.kind}
        print(json.dumps(addresses), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
