"""A local hub as a process of its own, near and far away, that knows when it was asked what."""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any
from unittest.mock import patch
from xmlrpc.server import SimpleXMLRPCServer

from benchmarks.relays import FarAway
from benchmarks.spark_hub import BODY
from eventhub_checkpoints.localhub import LocalHub, links
from eventhub_checkpoints.localhub.connection import Connection

NEAR, FAR = PLACES = "near", "far"
ROUND_TRIP = 0.02
"""Seconds to the hub that is far away, and back."""
COUNTS = "counts"
"""Name of the address at which the hub says what it was asked."""


def hub_key(place: str, partitions: int) -> str:
    """The name of a hub's address."""
    return f"{place}-{partitions}"


def noting(times: list[float], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which notes when it is called."""

    @wraps(function)
    def noted(*arguments: Any) -> Any:
        times.append(time.time())
        return function(*arguments)

    return noted


@contextmanager
def noted(connections: list[float], questions: list[float]) -> Iterator[None]:
    """Note when a client opens a connection, and when it asks `$management` something."""
    made = noting(connections, Connection.connection_made)
    asked = noting(questions, links.answer)
    with patch.object(Connection, "connection_made", made), patch.object(links, "answer", asked):
        yield


def counts(
    connections: list[float], questions: list[float], begin: float, end: float
) -> tuple[int, int]:
    """How many connections were opened and questions asked between two times."""
    opened, asked = (sum(begin <= at < end for at in times) for times in (connections, questions))
    return opened, asked


def main() -> None:
    """Serve until a signal ends it; print the addresses as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, required=True, help="in each partition that has any")
    parser.add_argument("--partitions", type=int, action="append", required=True, help="of a hub")
    parser.add_argument(
        "--sparse", type=int, required=True, help="of a hub with events in one of them"
    )
    asked = parser.parse_args()
    connections: list[float] = []
    questions: list[float] = []
    counting = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    counting.register_function(partial(counts, connections, questions), COUNTS)
    filled = {count: count for count in asked.partitions} | {asked.sparse: 1}
    hubs = {f"hub-of-{count}": count for count in filled}
    with (
        noted(connections, questions),
        LocalHub(hubs) as hub,
        counting,
        FarAway(hub.connection_string(next(iter(hubs))), ROUND_TRIP) as relay,
    ):
        addresses = {COUNTS: f"http://127.0.0.1:{counting.server_address[1]}"}
        for name, count in hubs.items():
            for partition in range(filled[count]):
                hub.publish(name, str(partition), [BODY] * asked.events)
            near = hub.connection_string(name)
            addresses[hub_key(NEAR, count)] = near
            addresses[hub_key(FAR, count)] = relay.address_of(near)
        print(json.dumps(addresses), flush=True)
        counting.serve_forever()


if __name__ == "__main__":
    main()
