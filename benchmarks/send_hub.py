"""The stand-in as a process of its own, for senders: one hub stores events, one only counts."""

import argparse
import json
import signal
from typing import Any

from eventhub_checkpoints.localhub import LocalHub, links

STORED, SWALLOWED = HUBS = ("stored", "swallowed")


def take(self: Any, payload: bytes, message_format: int) -> None:
    """Accept a delivery: of the one hub it is stored, of the other it is forgotten."""
    if self._hub.name == STORED:
        STORE(self, payload, message_format)


STORE = links.PublishLink.take


def main() -> None:
    """Serve until a signal ends it; print the connection strings by hub as JSON."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    links.PublishLink.take = take  # type: ignore[method-assign]
    with LocalHub(dict.fromkeys(HUBS, 4)) as hub:
        print(json.dumps({name: hub.connection_string(name) for name in HUBS}), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
