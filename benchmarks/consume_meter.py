"""Ways of consuming a group, and what is measured of a consumer: rate, memory, latency."""

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NoReturn

from benchmarks.spark_cores import used

OFFICIAL, PROCESSOR, CONSUME, PROCESS_BATCH, READ = WAYS = (
    "official",
    "processor",
    "consume_batches",
    "process_batch",
    "read_batches",
)
"""`receive_batch`; `EventProcessor` with `process_events`; `consume_batches`; `EventProcessor` with
`process_batch`; `read_batches`."""
IN_ARROW = (CONSUME, PROCESS_BATCH, READ)
STATUS = Path("/proc/self/status")


class Meter:
    """What is measured of a consumer; it ends the process."""

    def count(self, partition_id: str, batch: Any) -> None:
        """Some more events were consumed: a list of them, or an Arrow batch."""
        raise NotImplementedError


class Rate(Meter):
    """Counts from when each partition has delivered, until so many more events were consumed.

    It also ends when so many were consumed in all, of those that the hub has: one of the partitions
    may be late.

    To connect is no consuming. At the end, about as many events are received and not consumed as
    at the beginning.

    Args:
        partitions: number of those that this process consumes.
        events: how many are counted.
        total: with how many it ends at the latest.
        server: id of the hub's process, whose processor time is taken as well.
    """

    def __init__(self, partitions: int, events: int, total: int, server: int) -> None:
        self._partitions, self._expected, self._counted = partitions, events, 0
        self._total, self._consumed, self._server = total, 0, server
        self._seen: set[str] = set()
        self._began: tuple[float, float, float] | None = None
        self._lock = threading.Lock()

    def count(self, partition_id: str, batch: Any) -> None:
        with self._lock:
            self._consumed += len(batch)
            if self._began is None:
                self._seen.add(partition_id)
                if len(self._seen) == self._partitions:
                    self._began = self._now()
                return
            self._counted += len(batch)
            if self._counted >= self._expected or self._consumed >= self._total:
                spent = [end - begin for begin, end in zip(self._began, self._now(), strict=True)]
                answer([self._counted, *spent])

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), used(self._server)


class Memory(Meter):
    """Sleeps in the first batch, and tells by how much the process has grown."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before = peak()

    def count(self, partition_id: str, batch: Any) -> None:
        time.sleep(self._seconds)
        answer([peak() - self._before])


class Latency(Meter):
    """Takes the time from when an event was published, except for the first ones.

    Args:
        events: how many are counted, after half as many that are not.
    """

    def __init__(self, events: int) -> None:
        self._skipped, self._events = events // 2, events
        self._latencies: list[float] = []

    def count(self, partition_id: str, batch: Any) -> None:
        now = time.time_ns()
        is_list = isinstance(batch, list)
        bodies = [event.body_as_str() for event in batch] if is_list else batch["body"].to_pylist()
        self._latencies += [(now - int(body)) / 1e6 for body in bodies]
        counted = self._latencies[self._skipped :]
        if len(counted) >= self._events:
            answer([median(counted), quantiles(counted, n=100)[-1]])


def peak() -> float:
    """MiB that this process has had in RAM at the most; `ru_maxrss` would be its parent's."""
    [line] = (one for one in STATUS.read_text().splitlines() if one.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def answer(figures: list[float]) -> NoReturn:
    """Print figures, and end the process: to close takes a client up to a second."""
    print(json.dumps(figures), flush=True)
    os._exit(0)


def broken(_context: Any, error: BaseException) -> NoReturn:
    """End the process where a client would try again."""
    traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(1)
