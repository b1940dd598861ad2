"""Measure what Spark reads of a hub, beside a plain loop over the client and Spark's Kafka source.

Servers and client are on different cores. Linux only.
"""

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from rich.console import Console

import spark_runs
from benchmarks import spark_cases as cases
from benchmarks.command import arguments
from benchmarks.micro_batch_hub import FAR, NEAR, PLACES, ROUND_TRIP
from benchmarks.report import wide_console, write_json
from benchmarks.spark_cores import move, on_cores
from benchmarks.spark_micro_batches import (
    COSTS,
    DUMMY,
    GROUPED,
    OURS,
    MicroBatches,
    micro_batches,
)
from benchmarks.spark_prebuilt import Prebuilt
from benchmarks.spark_reads import TIMES, Reads
from benchmarks.spark_results import Reach, Row, show
from benchmarks.spark_servers import Cores, Kind, broker, stand_in, why_no_kafka
from spark_jars import KAFKA_SOURCE

EVENTS, QUICK_EVENTS = 100_000, 2_000
PARTITIONS = (1, 2, 4, 32)
PROPERTIES = (0, 3)
IDLE_PARTITIONS, QUICK_IDLE_PARTITIONS = 32, 4
TRIGGERS, QUICK_TRIGGERS = 8, 1
MICRO_PARTITIONS, QUICK_MICRO_PARTITIONS = (1, 8, 32), (2,)
SPARSE, QUICK_SPARSE = 256, 4
WATCHED, QUICK_WATCHED = 20.0, 2.0
MORE = TWO_TASKS, IDLE, MICRO_BATCH, AT_REST = "two-tasks", "idle", "micro-batch", "at-rest"
AWAY = {NEAR: "near", FAR: f"{1000 * ROUND_TRIP:g} ms away"}
PACKAGES = ("eventhub-checkpoints", "azure-eventhub", "pyspark", "pyarrow")

QUIET = {"spark.ui.showConsoleProgress": "false"}

ASKED = ("connections", "questions")
READ_MEASURES = ("rate", "task", "cpu", "server")
COMPARISONS = {
    "": (
        (cases.OURS, cases.PLAIN, cases.AHEAD, cases.KAFKA),
        (Reach("task", cases.PLAIN, least=6), Reach("task", cases.KAFKA, least=1)),
    ),
    "-public": (
        (cases.PUBLIC, cases.PLAIN, cases.AHEAD, cases.KAFKA),
        (Reach("task", cases.PLAIN, least=0.9),),
    ),
    "-beside-prebuilt": (
        (cases.OURS, cases.PREBUILT),
        (Reach("rate", cases.PREBUILT, least=0.33),),
    ),
    "-over-kafka": ((cases.OVER_KAFKA, cases.KAFKA), (Reach("task", cases.KAFKA, least=1.5),)),
}
"""By what the names of their rows have more: who is held against whom, and what one task has to
reach into `noop`; over the public path into Parquet, too."""
TWO_CORES = (Reach("rate", cases.ONE, least=1.6),)
GROUPED_TASKS = (Reach("trigger", cases.EACH, most=0.4),)
NEARLY_EMPTY = (Reach("micro-batch", DUMMY, most=1.3),)

T = TypeVar("T")


def add_own(parser: ArgumentParser) -> None:
    """The arguments that the other commands do not have."""
    parser.add_argument("--events", type=int, help=f"in each hub (default {EVENTS:,})")
    parser.add_argument(
        "--partitions",
        action="append",
        default=[],
        type=int,
        choices=PARTITIONS,
        help="of the hubs that are read whole; may be repeated (default: all)",
    )


def forms_of(asked: Namespace) -> dict[str, tuple[str, str]]:
    """The ways to read a whole hub that were asked for."""
    return {form: how for form, how in cases.FORMS.items() if form in (asked.only or [form])}


def kinds_of(asked: Namespace) -> list[Kind]:
    """The hubs that are read whole, one after another."""
    if not forms_of(asked):
        return []
    return [(one, other) for one in asked.partitions or PARTITIONS for other in PROPERTIES]


def more_kinds(asked: Namespace) -> list[Kind]:
    """The hubs of the other two cases."""
    needed = {TWO_TASKS: [(1, 0), (2, 0)], IDLE: [(asked.idle, 0)]}
    return [kind for case, own in needed.items() if case in (asked.only or needed) for kind in own]


@contextmanager
def opened(asked: Namespace, console: Console) -> Iterator[cases.Bench]:
    """Start everything."""
    cores, kinds = Cores.of_this_machine(), kinds_of(asked)
    with ExitStack() as running:
        console.print("filling the hubs and topics")
        hubs = running.enter_context(stand_in({*kinds, *more_kinds(asked)}, asked.events, cores))
        topics, jars = None, ()
        if kinds and (missing := why_no_kafka()):
            console.print(f"without Spark's Kafka source: {missing}")
        elif kinds:
            topics = running.enter_context(broker(kinds, asked.events, cores))
            jars = KAFKA_SOURCE.jars()
        with on_cores(cores.both):  # Java looks once how many there are
            spark = running.enter_context(spark_runs.session(jars, QUIET))
        spark.dataSource.register(Prebuilt)
        running.enter_context(on_cores(cores.client))
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        java = spark.sparkContext._gateway.proc.pid
        yield cases.Bench(hubs, topics, Reads(spark, folder), java, cores, asked.events)


def in_rounds(work: Callable[[int], T], asked: Namespace, is_first: bool = True) -> list[T]:
    """Do it so many times; where it is the first of its table, once more before.

    That warms Java up, and Python's processes.
    """
    if is_first and not asked.quick:
        work(0)
    return [work(number) for number in range(asked.rounds)]


def whole_reads(bench: cases.Bench, asked: Namespace, console: Console) -> list[Row]:
    """Rows of hubs that are read whole, first by the way in which they are read."""
    forms, found = forms_of(asked), {}
    for kind in kinds_of(asked):
        console.print(f"measuring {titled(kind)}, {asked.rounds} rounds")
        work = partial(bench.one_kind, kind, forms)
        found[kind] = in_rounds(work, asked, is_first=not found)
    return [
        Row(
            f"{form}{which}-{kind[0]}-{kind[1]}",
            f"{' into '.join(how)}, {titled(kind)}",
            sides,
            READ_MEASURES,
            [each[form] for each in rounds],
            reach if kind[0] == 1 and (how[1] == "noop" or which == "-public") else (),
        )
        for which, (sides, reach) in COMPARISONS.items()
        if bench.topics or which != "-over-kafka"
        for form, how in forms.items()
        for kind, rounds in found.items()
    ]


def titled(kind: Kind) -> str:
    """A kind of hub in words."""
    partitions, properties = kind
    many = "s" if partitions > 1 else ""
    return f"{partitions} partition{many}, {properties or 'no'} properties"


def two_tasks(bench: cases.Bench, asked: Namespace, console: Console) -> list[Row]:
    """The row of two tasks on two cores."""
    console.print(f"measuring two tasks, {asked.rounds} rounds")
    rounds = in_rounds(bench.two_tasks, asked)
    sides = (cases.TWO, cases.ONE, cases.ONE_OF_BOTH)
    return [Row(TWO_TASKS, "batch into noop", sides, READ_MEASURES, rounds, TWO_CORES)]


def idle(bench: cases.Bench, asked: Namespace, console: Console) -> list[Row]:
    """The row of many partitions that hold little."""
    console.print(f"measuring triggers that find little, {asked.rounds} rounds")
    triggers = QUICK_TRIGGERS if asked.quick else TRIGGERS
    rounds = in_rounds(partial(bench.idle, asked.idle, triggers), asked)
    title = f"{asked.idle} partitions, {cases.IDLE_EVENTS} events of each"
    return [Row(IDLE, title, (cases.AUTO, cases.EACH), (*TIMES,), rounds, GROUPED_TASKS)]


def micro_batch(bench: cases.Bench, asked: Namespace, console: Console) -> list[Row]:
    """Rows of micro-batches that find one event in each partition."""
    kinds = [(place, count) for place in asked.places for count in (*asked.micro, asked.sparse)]
    measures = (*COSTS, *ASKED)
    with counted(bench, asked) as streams:
        rows = []
        for place, count in kinds:
            title = f"{count} partitions, {AWAY[place]}"
            console.print(f"measuring micro-batches, {title}")
            work = partial(streams.cost, place, count)
            rounds = in_rounds(work, asked, is_first=not rows)
            sides, reach = (OURS, GROUPED, DUMMY), NEARLY_EMPTY
            rows.append(
                Row(f"{MICRO_BATCH}-{place}-{count}", title, sides, measures, rounds, reach)
            )
    return rows


def at_rest(bench: cases.Bench, asked: Namespace, console: Console) -> list[Row]:
    """Rows of a stream that finds nothing, with Spark's default trigger, per second."""
    with counted(bench, asked) as streams:
        rows = []
        for count in asked.micro:
            console.print(f"watching an idle stream of {count} partitions")
            rounds = in_rounds(partial(streams.idle, count, NEAR), asked, is_first=False)
            title = f"{count} partitions, each second"
            rows.append(Row(f"{AT_REST}-{count}", title, (OURS,), ASKED, rounds))
    return rows


def counted(bench: cases.Bench, asked: Namespace) -> AbstractContextManager[MicroBatches]:
    """The hub that counts; Spark may use both cores."""
    move(bench.spark, bench.cores.both)
    triggers, seconds = (QUICK_TRIGGERS, QUICK_WATCHED) if asked.quick else (TRIGGERS, WATCHED)
    return micro_batches(bench.reads, bench.cores, asked.micro, asked.sparse, triggers, seconds)


TABLES = {
    "hubs read whole, by side": (whole_reads, (*cases.FORMS,)),
    "two tasks on two cores": (two_tasks, (TWO_TASKS,)),
    "a trigger of a stream, by partitionsPerTask": (idle, (IDLE,)),
    "a micro-batch with hardly any events": (micro_batch, (MICRO_BATCH,)),
    "an idle stream": (at_rest, (AT_REST,)),
}
"""By title: what gives the rows, and the cases that want it."""


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks.spark", __doc__, [*cases.FORMS, *MORE], add_own)
    asked.events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    asked.micro = QUICK_MICRO_PARTITIONS if asked.quick else MICRO_PARTITIONS
    asked.places = (FAR,) if asked.quick else PLACES
    asked.sparse = QUICK_SPARSE if asked.quick else SPARSE
    asked.idle = QUICK_IDLE_PARTITIONS if asked.quick else IDLE_PARTITIONS
    console = wide_console()
    with opened(asked, console) as bench:
        tables = {
            title: measure(bench, asked, console)
            for title, (measure, wanted) in TABLES.items()
            if not asked.only or {*wanted} & {*asked.only}
        }
    for title, rows in tables.items():
        for _, alike in groupby(rows, key=lambda row: row.sides):
            show(title, [*alike], console)
    found = [row.as_dict() for rows in tables.values() for row in rows]
    write_json(found, asked.quick, asked.json, PACKAGES, {})
    console.print(f"{asked.events:,} events in each hub; written to {asked.json}")


if __name__ == "__main__":
    main()
