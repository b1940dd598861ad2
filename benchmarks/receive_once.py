"""Receive a hub's events into Arrow once, in one of several ways, and print what that cost."""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.batches import read_range, record_batch

STATUS = Path("/proc/self/status")
FAST, PUBLIC, OFFICIAL = WAYS = ("fast", "public", "official")


class Meter:
    """Counts rows from the end of the first batch on: to connect is no receiving."""

    def __init__(self, events: int) -> None:
        self._events = events
        self._memory = memory()
        self._rows = self._first = 0

    def count(self, rows: int) -> None:
        """Some more rows are there; the last of them end the process."""
        if not self._rows:
            self._first = rows
            self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._rows += rows
        if self._rows >= self._events:
            wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
            grown = memory() - self._memory
            print(json.dumps([self._rows - self._first, wall, cpu, grown]), flush=True)
            # To close takes the client up to a second, which is no receiving.
            os._exit(0)


def memory() -> float:
    """MiB that this process has had in RAM at the most; `ru_maxrss` would be its parent's."""
    [line] = (one for one in STATUS.read_text().splitlines() if one.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def by_range(path: Any, asked: argparse.Namespace, meter: Meter) -> None:
    """Ours: an exact range, by one of its paths."""
    address = HubAddress.from_connection_string(asked.connection_string)
    wanted = OffsetRange("0", 0, asked.events)
    for batch in read_range(address, wanted, ReadSettings(receive_path=path)):
        meter.count(batch.num_rows)


def by_client(asked: argparse.Namespace, meter: Meter) -> None:
    """The official client, and its events into the same columns."""
    client = EventHubConsumerClient.from_connection_string(asked.connection_string, "$Default")

    def convert(_context: Any, events: list[Any]) -> None:
        meter.count(record_batch("0", columns_of(events)).num_rows)

    ahead = {"prefetch": asked.ahead, "max_batch_size": asked.ahead} if asked.ahead else {}
    client.receive_batch(convert, partition_id="0", starting_position="-1", **ahead)


def main() -> None:
    """Receive; print rows, seconds on the clock and of the processor, and MiB, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("connection_string")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--ahead", type=int, help="the official client's prefetch and batch size")
    asked = parser.parse_args()
    meter = Meter(asked.events)
    if asked.way == OFFICIAL:
        by_client(asked, meter)
    else:
        by_range(asked.way, asked, meter)


if __name__ == "__main__":
    main()
