"""The comparisons, a round at a time: each side reads the same events, one after another."""

import os
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.measuring import turned
from benchmarks.spark_cores import answer_of, move, used
from benchmarks.spark_hub import hub_name
from benchmarks.spark_prebuilt import prebuilt
from benchmarks.spark_reads import Reads, Source, hub, hub_of_kafka, topic
from benchmarks.spark_results import Figures
from benchmarks.spark_servers import Cores, Kind, Server
from eventhub_checkpoints.receive.ranges import PREFETCH

OURS, PUBLIC, OVER_KAFKA = "ours", "ours, public", "ours, kafka"
PLAIN, AHEAD, KAFKA = "plain", f"plain {PREFETCH}", "kafka"
PREBUILT = "prebuilt"
TWO, ONE, ONE_OF_BOTH = "two tasks", "one task", "one, both cores"
AUTO, EACH = "auto", "one task each"
FORMS = {
    f"{mode}-{sink}": (mode, sink) for mode in ("batch", "stream") for sink in ("noop", "parquet")
}
IDLE_EVENTS = 10
"""Of each partition, in a trigger."""

Forms = Mapping[str, tuple[str, str]]
"""Ways to read a hub, by name: as a batch or a stream, and into what."""
Measured = dict[str, Figures]
"""By side."""


@dataclass(frozen=True)
class Bench:
    """Everything that runs.

    Attributes:
        hubs: the stand-in.
        topics: the broker; None where there is none.
        reads: Spark.
        spark: the process of its JVM, which has started all the others.
        cores: who runs where.
        events: in each hub and topic.
    """

    hubs: Server
    topics: Server | None
    reads: Reads
    spark: int
    cores: Cores
    events: int

    def one_kind(self, kind: Kind, forms: Forms, number: int) -> dict[str, Measured]:
        """A round of all reads of one kind of hub, by form; a plain loop serves all forms."""
        name = hub_name(*kind)
        works: dict[tuple[str, str], Callable[[], Figures]] = {
            ("", PLAIN): partial(self.plain, name),
            ("", AHEAD): partial(self.plain, name, PREFETCH),
        }
        for form, how in forms.items():
            address = self.hubs.addresses[name]
            for side, source in {
                OURS: hub(address, receivePath="fast"),
                PUBLIC: hub(address, receivePath="public"),
            }.items():
                works[form, side] = partial(
                    self.by_spark, self.hubs, source, *how, self.cores.client
                )
            sources = {PREBUILT: prebuilt(kind[0], self.events, kind[1])}
            sources |= self.of_kafka(name, with_headers=bool(kind[1]))
            for side, source in sources.items():
                works[form, side] = partial(
                    self.by_spark, self.topics or self.hubs, source, *how, self.cores.client
                )
        found = {key: works[key]() for key in turned([*works], number)}
        return {
            form: {side: each for (of, side), each in found.items() if of in ("", form)}
            for form in forms
        }

    def of_kafka(self, name: str, with_headers: bool) -> dict[str, Source]:
        """Who reads a topic; nobody where there is no broker."""
        if self.topics is None:
            return {}
        address = self.topics.addresses[name]
        return {
            OVER_KAFKA: hub_of_kafka(address, name),
            KAFKA: topic(address, name, with_headers),
        }

    def two_tasks(self, number: int) -> Measured:
        """A round of two tasks on two cores, and of one that reads as many events."""
        works = {
            TWO: partial(self.noop, 2, self.cores.both),
            ONE: partial(self.noop, 1, self.cores.client),
            ONE_OF_BOTH: partial(self.noop, 1, self.cores.both),
        }
        return {side: works[side]() for side in turned([*works], number)}

    def noop(self, partitions: int, cores: Set[int]) -> Figures:
        """Read a hub without properties as a batch into nothing, one task a partition.

        By the public path: on the fast one most of so short a read is what every batch costs.
        """
        source = hub(self.hubs.addresses[hub_name(partitions, 0)], receivePath="public")
        return self.by_spark(self.hubs, source, "batch", "noop", cores)

    def idle(self, partitions: int, triggers: int, number: int) -> Measured:
        """A round of triggers that find a few events in each of many partitions."""
        address = self.hubs.addresses[hub_name(partitions, 0)]
        per_task = {AUTO: "auto", EACH: "1"}
        move(self.spark, self.cores.both)
        limit = partitions * IDLE_EVENTS
        found = {
            side: self.reads.triggers(
                hub(address, partitionsPerTask=per_task[side]), limit, triggers
            )
            for side in turned([*per_task], number)
        }
        return {
            side: {name: median(each) for name, each in times.items()}
            for side, times in found.items()
        }

    def plain(self, name: str, ahead: int | None = None) -> Figures:
        """A loop over the client in a process of its own."""
        words = [self.hubs.addresses[name], "--events", str(self.events)]
        words += ["--ahead", str(ahead)] if ahead else []
        busy = used(self.hubs.process)
        wall, cpu = answer_of("benchmarks.spark_plain", words, self.cores.client)
        found = self.figures(wall, cpu, used(self.hubs.process) - busy)
        return {**found, "task": found["rate"]}

    def by_spark(
        self, server: Server, source: Source, mode: str, sink: str, cores: Set[int]
    ) -> Figures:
        """A read by Spark, all of it on these cores."""
        move(self.spark, cores)
        busy, cpu, wall = used(server.process), self.cpu(), time.perf_counter()
        took = self.reads(source, mode, sink, self.events)
        wall, cpu = time.perf_counter() - wall, self.cpu() - cpu
        share = (used(server.process) - busy) * took.seconds / wall
        return {**self.figures(took.seconds, cpu, share), "task": self.events / took.in_tasks}

    def cpu(self) -> float:
        """Seconds of processor time of the JVM, of its Python processes, and of this one."""
        own = os.times()
        return used(self.spark) + own.user + own.system

    def figures(self, wall: float, cpu: float, served: float) -> Figures:
        """What is said of a read.

        Args:
            wall: seconds on the clock.
            cpu: seconds of the client's processor time.
            served: seconds of the server's.
        """
        return {
            "rate": self.events / wall,
            "cpu": 1e6 * cpu / self.events,
            "server": served / wall,
        }
