"""The stand-in as a process of its own, with a hub of each kind of producer, near and far away."""

import argparse
import json
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.far_away import FarAway
from benchmarks.spark_hub import BODY, some
from eventhub_checkpoints._amqp.messages import Message, Properties
from eventhub_checkpoints._amqp.types import Symbol
from eventhub_checkpoints.localhub import LocalHub

NONE, THREE, MIXED = KINDS = ("none", "three", "mixed")
NEAR, FAR = "near", "far"
ROUND_TRIP = 0.020
"""Seconds to the hub and back, where it is far away."""

WORDS = ("temperature", "pressure", "größe", "温度", "status", "alarm")


def mixed(count: int, seed: int = 7) -> Iterator[bytes]:
    """Messages of producers that have little in common, encoded; the same for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        annotations = {"x-opt-partition-key": f"device-{chance.randrange(1000)}"}
        if chance.random() < 0.5:
            annotations["iothub-connection-device-id"] = f"sensor-{chance.randrange(100):04d}"
        content = chance.choice((None, "application/json", "text/plain"))
        yield Message(
            message_annotations=annotations,
            properties=Properties(content_type=Symbol(content)) if content else None,
            application_properties={
                chance.choice(WORDS): chance.choice((number, chance.choice(WORDS), 1.5, True))
                for _ in range(chance.randrange(4))
            },
            data=[chance.randbytes(chance.randint(100, 400))],
        ).encode()


def main() -> None:
    """Serve until a signal ends it; print the connection strings by kind and distance as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, required=True, help="in each hub")
    asked = parser.parse_args()
    with ExitStack() as running:
        hub = running.enter_context(LocalHub(dict.fromkeys(KINDS, 1)))
        hub.publish(NONE, "0", [BODY] * asked.events)
        hub.publish(THREE, "0", [BODY] * asked.events, properties=some(3))
        hub.publish_messages(MIXED, "0", mixed(asked.events))
        far = running.enter_context(FarAway(hub.connection_string(NONE), ROUND_TRIP))
        near = {f"{kind}-{NEAR}": hub.connection_string(kind) for kind in KINDS}
        away = {f"{kind}-{FAR}": far.address_of(hub.connection_string(kind)) for kind in KINDS}
        print(json.dumps(near | away), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
