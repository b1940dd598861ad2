"""Measure what one Spark task writes to a hub, beside a plain loop and Spark's Kafka sink.

Servers and client are on different cores. One hub stores events as the local hub does, the other
forgets them: where only the rate differs, the hub is the limit. Linux only.
"""

import itertools
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from rich.console import Console

import spark_runs
from benchmarks.command import arguments
from benchmarks.measuring import turned
from benchmarks.report import wide_console, write_json
from benchmarks.send import CASES, SLOWER, THREE, WORDS
from benchmarks.send_hub import SWALLOWED
from benchmarks.send_once import BODY, OFFICIAL, PROPERTIES
from benchmarks.spark import QUIET
from benchmarks.spark_cores import answer_of, move, on_cores, used
from benchmarks.spark_hub import hub_name
from benchmarks.spark_reads import seconds_in_tasks
from benchmarks.spark_results import Figures, Reach, Row, show
from benchmarks.spark_servers import Cores, Kind, Server, broker, serving, why_no_kafka
from spark_jars import KAFKA_SOURCE

OURS, PLAIN, KAFKA, OVER_KAFKA = SIDES = ("ours", "plain", "kafka", "ours, kafka")
EVENTS, QUICK_EVENTS = 500_000, 5_000
TOPIC: Kind = (4, 0)
"""Four partitions, as the hubs have."""
MEASURES = ("rate", "task", "cpu", "server")
REACH = (Reach("task", PLAIN, least=5),)
PACKAGES = ("eventhub-checkpoints", "azure-eventhub", "pyspark", "pyarrow")

_groups = itertools.count()


@dataclass(frozen=True)
class Bench:
    """Everything that runs.

    Attributes:
        spark: the session.
        java: the process of its JVM, which has started its Python processes.
        hubs: the stand-in.
        topics: the broker; None where there is none.
        cores: who runs where.
        events: that Spark writes; the plain loop sends a tenth.
    """

    spark: SparkSession
    java: int
    hubs: Server
    topics: Server | None
    cores: Cores
    events: int

    def one_round(self, case: str, number: int) -> dict[str, Figures]:
        """All sides, one after another."""
        kind, hub = CASES[case]
        address, has_properties = self.hubs.addresses[hub], kind == THREE
        works = {
            OURS: partial(
                self.by_spark, self.hubs, "eventhubs", has_properties, connectionString=address
            ),
            PLAIN: partial(self.by_client, address, has_properties),
        }
        if self.topics is not None:
            name = hub_name(*TOPIC)
            server = {"kafka.bootstrap.servers": self.topics.addresses[name]}
            works[KAFKA] = partial(
                self.by_spark, self.topics, "kafka", has_properties, **server, topic=name
            )
            more = {"transport": "kafka", "eventHubName": name}
            works[OVER_KAFKA] = partial(
                self.by_spark, self.topics, "eventhubs", has_properties, **server, **more
            )
        return {side: works[side]() for side in turned([*works], number)}

    def by_spark(self, server: Server, sink: str, has_properties: bool, **options: str) -> Figures:
        """Write by Spark, in one task."""
        context, group = self.spark.sparkContext, f"write-{next(_groups)}"
        context.setJobGroup(group, "a write that is measured")
        frame = rows_for(self.spark, sink, self.events, has_properties)
        busy, cpu, wall = used(server.process), self._cpu(), time.perf_counter()
        frame.write.format(sink).options(**options).mode("append").save()
        wall, cpu = time.perf_counter() - wall, self._cpu() - cpu
        busy = used(server.process) - busy
        return {
            "rate": self.events / wall,
            "task": self.events / seconds_in_tasks(self.spark, group),
            "cpu": 1e6 * cpu / self.events,
            "server": busy / wall,
        }

    def by_client(self, address: str, has_properties: bool) -> Figures:
        """Send by the plain loop, in a process of its own."""
        words = [address, "--way", OFFICIAL, "--events", str(self.events // SLOWER)]
        words += ["--properties"] if has_properties else []
        busy = used(self.hubs.process)
        rows, wall, cpu = answer_of("benchmarks.send_once", words, self.cores.client)
        busy = used(self.hubs.process) - busy
        rate = rows / wall
        return {"rate": rate, "task": rate, "cpu": 1e6 * cpu / rows, "server": busy / wall}

    def _cpu(self) -> float:
        """Return seconds of processor time of the JVM, its Python processes, and this one."""
        own = os.times()
        return used(self.java) + own.user + own.system


def rows_for(spark: SparkSession, sink: str, events: int, has_properties: bool) -> DataFrame:
    """Return a frame of one partition with the columns of a sink, which costs next to nothing."""
    rows, body = spark.range(0, events, 1, 1), F.lit(bytearray(BODY))
    texts: Mapping[str, str] = PROPERTIES if has_properties else {}
    if sink == "kafka":
        headers = [
            F.struct(F.lit(key).alias("key"), F.lit(bytearray(value.encode())).alias("value"))
            for key, value in texts.items()
        ]
        columns = [body.alias("value"), *([F.array(*headers).alias("headers")] if texts else [])]
        return rows.select(*columns)
    pairs = [F.lit(text) for pair in texts.items() for text in pair]
    maps = [F.create_map(*pairs).alias("properties")] if texts else []
    return rows.select(body.alias("body"), *maps)


@contextmanager
def opened(asked: Namespace, console: Console) -> Iterator[Bench]:
    """Start everything."""
    cores = Cores.of_this_machine()
    with ExitStack() as running:
        hubs = running.enter_context(serving("benchmarks.send_hub", [], cores))
        topics, jars = None, ()
        if missing := why_no_kafka():
            console.print(f"without Spark's Kafka sink: {missing}")
        else:
            topics = running.enter_context(broker([TOPIC], 0, cores))
            jars = KAFKA_SOURCE.jars()
        with on_cores(cores.both):  # Java looks once how many there are
            spark = running.enter_context(spark_runs.session(jars, QUIET))
        running.enter_context(on_cores(cores.client))
        java = spark.sparkContext._gateway.proc.pid
        move(java, cores.client)
        yield Bench(spark, java, hubs, topics, cores, asked.events)


def rows_of(bench: Bench, asked: Namespace, console: Console) -> Iterator[Row]:
    """Yield a row for each case that was asked for; a first round only warms Java up."""
    for case in asked.only or CASES:
        kind, hub = CASES[case]
        words = f"{WORDS[kind]}, {hub}"
        console.print(f"measuring {words}, {asked.rounds} rounds")
        if not asked.quick:
            bench.one_round(case, 0)
        rounds = [bench.one_round(case, number) for number in range(asked.rounds)]
        sides = [side for side in SIDES if side in rounds[0]]
        yield Row(case, words, sides, MEASURES, rounds, REACH if hub == SWALLOWED else ())


def add_own(parser: ArgumentParser) -> None:
    """The argument that the other commands do not have."""
    parser.add_argument("--events", type=int, help=f"that Spark writes (default {EVENTS:,})")


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks.spark_writes", __doc__, [*CASES], add_own)
    asked.events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    console = wide_console()
    with opened(asked, console) as bench:
        rows = [*rows_of(bench, asked, console)]
    show("written by one task, by side", rows, console, "events")
    write_json([row.as_dict() for row in rows], asked.quick, asked.json, PACKAGES, {})
    console.print(f"{asked.events:,} events by Spark; written to {asked.json}")


if __name__ == "__main__":
    main()
