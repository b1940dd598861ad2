"""The stand-in as a process of its own, with a hub of each kind of producer, near and far away."""

import argparse
import json
import signal
from contextlib import ExitStack

from benchmarks.receive_producers import PRODUCERS, messages
from benchmarks.relays import FarAway
from eventhub_checkpoints.localhub import LocalHub

NONE, THREE, MIXED, UNLIKE = KINDS = (*PRODUCERS,)
NEAR, FAR = "near", "far"
ROUND_TRIP = 0.020
"""Seconds to the hub and back, where it is far away."""


def main() -> None:
    """Serve until a signal ends it; print the connection strings by kind and distance as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, required=True, help="in each hub")
    asked = parser.parse_args()
    with ExitStack() as running:
        hub = running.enter_context(LocalHub(dict.fromkeys(KINDS, 1)))
        for kind in KINDS:
            hub.publish_messages(kind, "0", messages(kind, asked.events))
        far = running.enter_context(FarAway(hub.connection_string(NONE), ROUND_TRIP))
        near = {f"{kind}-{NEAR}": hub.connection_string(kind) for kind in KINDS}
        away = {f"{kind}-{FAR}": far.address_of(hub.connection_string(kind)) for kind in KINDS}
        print(json.dumps(near | away), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
