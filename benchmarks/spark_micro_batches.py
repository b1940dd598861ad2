"""What a micro-batch costs that finds hardly any events, and what a stream asks that finds none."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from statistics import median
from typing import Any
from xmlrpc.client import ServerProxy

from benchmarks.measuring import turned
from benchmarks.micro_batch_hub import COUNTS, hub_key
from benchmarks.spark_prebuilt import prebuilt
from benchmarks.spark_reads import Reads, Source, hub
from benchmarks.spark_results import Figures
from benchmarks.spark_servers import Cores, Server, serving

OURS, GROUPED, DUMMY = "ours", "ours, auto", "dummy"
UNMEASURED = 2
"""Micro-batches before those that are measured: the first of all starts Python's processes."""
SETTLED = 3.0
"""Seconds after the last events until a stream is taken to be idle."""
COSTS = {"latest": "latestOffset", "micro-batch": "triggerExecution"}
"""Our names for two of the times that a query tells of each batch."""


@dataclass(frozen=True)
class MicroBatches:
    """Streams over a hub that counts.

    Attributes:
        hubs: the hub.
        reads: Spark.
        sparse: partitions of the hub that has events in one of them only.
        count: micro-batches in a figure.
        seconds: for which an idle stream is watched.
    """

    hubs: Server
    reads: Reads
    sparse: int
    count: int
    seconds: float

    def cost(self, place: str, partitions: int, number: int) -> dict[str, Figures]:
        """A round of micro-batches that find one event in each partition that has any."""
        events = 1 if partitions == self.sparse else partitions
        limit = {"maxEventsPerTrigger": str(events)}
        address = self.hubs.addresses[hub_key(place, partitions)]
        works: dict[str, tuple[Source, Mapping[str, str]]] = {OURS: (hub(address), limit)}
        if events > 1:
            works[GROUPED] = (hub(address, partitionsPerTask="auto"), limit)
        if partitions != self.sparse:
            works[DUMMY] = (prebuilt(partitions, partitions), {})
        return {side: self._figures(*works[side]) for side in turned([*works], number)}

    def _figures(self, source: Source, options: Mapping[str, str]) -> Figures:
        with closing(self.reads.progress(source, "noop", options)) as batches:
            chosen = [one for _, one in islice(batches, UNMEASURED, UNMEASURED + self.count)]
        times = {
            name: median(one["durationMs"][key] for one in chosen) for name, key in COSTS.items()
        }
        last = chosen[-1]
        end = began(last) + last["durationMs"]["triggerExecution"] / 1000
        return {**times, **self._asked(began(chosen[0]), end, per=len(chosen))}

    def idle(self, partitions: int, place: str, _number: int) -> dict[str, Figures]:
        """What a stream asks of a hub each second that gets no more events."""
        source = hub(self.hubs.addresses[hub_key(place, partitions)])
        with closing(self.reads.progress(source, "noop", {})) as batches:
            next(batches)
            time.sleep(SETTLED)
            begin = time.time()
            time.sleep(self.seconds)
            return {OURS: self._asked(begin, time.time(), per=self.seconds)}

    def _asked(self, begin: float, end: float, per: float) -> Figures:
        with ServerProxy(self.hubs.addresses[COUNTS]) as counting:
            found: Any = counting.counts(begin, end)
        return {"connections": found[0] / per, "questions": found[1] / per}


def began(progress: Mapping[str, Any]) -> float:
    """When a trigger began, in seconds since the epoch."""
    return datetime.fromisoformat(progress["timestamp"]).timestamp()


@contextmanager
def micro_batches(
    reads: Reads, cores: Cores, partitions: Sequence[int], sparse: int, count: int, seconds: float
) -> Iterator[MicroBatches]:
    """Start a server with hubs of so many partitions, and the sparse one."""
    words = [f"--partitions={each}" for each in partitions]
    words += [f"--sparse={sparse}", f"--events={UNMEASURED + count + 2}"]
    with serving("benchmarks.micro_batch_hub", words, cores) as hubs:
        yield MicroBatches(hubs, reads, sparse, count, seconds)
