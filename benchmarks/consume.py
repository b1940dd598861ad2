"""Measure what it costs to consume a group: in Arrow batches, and event by event.

The hub, the store's server and the consumer are processes of their own; hub and consumer are on
different cores. Linux only.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.console import Console

from backends import BACKENDS, Backend, ServerMissingError
from benchmarks.command import arguments
from benchmarks.consume_hub import FULL, TICKING
from benchmarks.consume_meter import CONSUME, IN_ARROW, OFFICIAL, PROCESS_BATCH, READ, WAYS
from benchmarks.consume_once import LATENCY, MEMORY
from benchmarks.measuring import turned
from benchmarks.report import wide_console, write_json
from benchmarks.spark_cores import answer_of, on_cores
from benchmarks.spark_results import Figures, Reach, Row, show
from benchmarks.spark_servers import Cores, Server, serving

MODULE = "benchmarks.consume_once"
NONE, SQLITE, BLOB = STORES = ("none", "sqlite", "blob")
"""No checkpoint, with the ownerships on SQLite; a checkpoint for each batch."""
PARTITIONS, PROPERTIES, BODIES = (1, 8, 32), (0, 5), (200, 2048)
ROWS, MOST, BUFFER = 10_000, 16 * 2**20, 64 * 2**20
"""`max_rows`, `max_bytes` and `buffer_bytes`, as they are by default."""
QUICK_ROWS = 500
EVENTS, BATCHES = 300_000, 8
"""Least number of events of a hub, and of batches in each partition."""
COUNTED, CONSUMED = 0.6, 0.9
"""Shares of them that are measured, and consumed at most: every partition still has some."""
SLOW_EVENTS, QUICK_SLOW_EVENTS = 20_000, 2_000
"""As many does a side measure that gets events one by one."""

MEASURES = ("rate", "core", "cpu", "server")
PACKAGES = ("eventhub-checkpoints", "azure-eventhub", "pyarrow")
TWO, SLEEPING, DELAY = OTHERS = ("two-processes", "memory", "latency")


@dataclass(frozen=True, order=True)
class Kind:
    """A hub.

    Attributes:
        body: bytes of each event.
        properties: of each event, each with a value of its own.
        partitions: number of them.
    """

    body: int
    properties: int
    partitions: int

    def __str__(self) -> str:
        size = f"{self.body} B" if self.body < 1024 else f"{self.body // 1024} KiB"
        several = f"{self.partitions} partition{'s' * (self.partitions > 1)}"
        return f"{size}, {self.properties or 'no'} properties, {several}"

    def rows(self, quick: bool) -> int:
        """Rows of a batch."""
        share = min(MOST, BUFFER // self.partitions)
        return min(QUICK_ROWS if quick else ROWS, share // self.body)

    def events(self, quick: bool) -> int:
        """Events in each partition."""
        least = 0 if quick else EVENTS // self.partitions
        return max(BATCHES * self.rows(quick), least)


KINDS = [Kind(*each) for each in product(BODIES, PROPERTIES, PARTITIONS)]
CASES = {
    f"{kind.body}-{kind.properties}-{kind.partitions}-{store}": (kind, store)
    for kind, store in product(KINDS, STORES)
}
SEVERAL = Kind(200, 0, 8)
"""The hub that two processes share."""
LARGE, LARGE_PARTITIONS, LARGE_EVENTS = 1_000_000, 32, 10
BUFFERS = (64, 16)
"""MiB of `buffer_bytes`."""
COPIES, OF_A_THREAD = 2, 5
"""Of what is buffered: as it is received, and in Arrow. MiB that pyarrow keeps for each thread."""
NAP, QUICK_NAP = 20.0, 3.0
RATE, TIMED, QUICK_TIMED = 100.0, 2_000, 100
WAITS = {f"max_wait={seconds:g}": seconds for seconds in (0.0, 0.1, 1.0)}
BESIDE = ("official", "official, aio")


@dataclass(frozen=True)
class Bench:
    """Who runs where, and how much is measured."""

    stores: Mapping[str, Backend]
    cores: Cores
    quick: bool
    is_aio: bool

    @contextmanager
    def hub(self, kind: Kind, events: int, rate: float | None = None) -> Iterator[Server]:
        """A hub with so many events in each partition, and one that gets so many in a second."""
        words = [f"--{name}={value}" for name, value in vars(kind).items()]
        words += [f"--events={events}", *([f"--rate={rate}"] if rate else [])]
        with serving("benchmarks.consume_hub", words, self.cores) as found:
            yield found

    def once(self, address: str, way: str, store: str, *words: str, cores: Any = None) -> Any:
        """What a consumer prints, in a process of its own and on a place of its own."""
        aio = ["--aio"] * (self.is_aio and "--aio" not in words)
        with self.stores[SQLITE if store == NONE else store].place() as place:
            arguments = [address, place.url, "--way", way, *aio, *words]
            return answer_of(MODULE, arguments, cores or self.cores.client)

    def rate(self, hub: Server, kind: Kind, store: str, way: str) -> Figures:
        """What one side has consumed in a second, and what that has cost."""
        words = self._counts(hub, kind, way) + (["--commits"] if store != NONE else [])
        return figures_of([self.once(hub.addresses[FULL], way, store, *words)])

    def together(self, hub: Server, members: int) -> Figures:
        """The same of several members of a group; they and the hub share two cores."""
        words = self._counts(hub, SEVERAL, CONSUME, members)
        with self.stores[SQLITE].place() as place, ThreadPoolExecutor(members) as pool:
            aio = ["--aio"] * self.is_aio
            words = [hub.addresses[FULL], place.url, "--way", CONSUME, "--commits", *aio, *words]
            # The affinity is that of the thread which starts a process.
            running = [
                pool.submit(answer_of, MODULE, words, self.cores.both) for _ in range(members)
            ]
            return figures_of([each.result() for each in running])

    def _counts(self, hub: Server, kind: Kind, way: str, members: int = 1) -> list[str]:
        stored = kind.events(self.quick) * kind.partitions / members
        events = int(COUNTED * stored)
        if way not in IN_ARROW:
            events = min(events, QUICK_SLOW_EVENTS if self.quick else SLOW_EVENTS)
        rows = QUICK_ROWS if self.quick else ROWS
        return [
            f"--events={events}",
            f"--total={int(CONSUMED * stored)}",
            f"--partitions={kind.partitions // members}",
            f"--members={members}",
            f"--max-rows={rows}",
            f"--server={hub.process}",
        ]


def figures_of(answers: Sequence[Any]) -> Figures:
    """The figures of consumers that have run at the same time: sums, and means by event."""
    events = sum(each[0] for each in answers)
    cpu = sum(each[2] for each in answers)
    return {
        "rate": sum(counted / wall for counted, wall, *_ in answers),
        "core": events / cpu,
        "cpu": 1e6 * cpu / events,
        "server": max(each[3] / each[1] for each in answers),
    }


def reach_of(kind: Kind) -> tuple[Reach, ...]:
    """What a way of ours that shares a group has to reach."""
    return (
        Reach("core", OFFICIAL, least=6 if kind.properties else 10),
        Reach("core", READ, least=0.9),
    )


def rate_rows(bench: Bench, names: Sequence[str], rounds: int, console: Console) -> list[Row]:
    """Two rows for each case: `consume_batches`, and `process_batch`, beside the other sides."""
    found = []
    for kind in sorted({CASES[name][0] for name in names}):
        with bench.hub(kind, kind.events(bench.quick)) as hub:
            for name in (name for name in names if CASES[name][0] == kind):
                store = CASES[name][1]
                title = f"{kind}, " + ("no commit" if store == NONE else f"commits on {store}")
                console.print(f"measuring {title}, {rounds} rounds")
                figures = [
                    {way: bench.rate(hub, kind, store, way) for way in turned(WAYS, number)}
                    for number in range(rounds)
                ]
                for first, others in (
                    (CONSUME, [way for way in WAYS if way != CONSUME]),
                    (PROCESS_BATCH, [READ, OFFICIAL]),
                ):
                    sides = [first, *others]
                    found.append(
                        Row(f"{name}-{first}", title, sides, MEASURES, figures, reach_of(kind))
                    )
    return found


def of_two_processes(bench: Bench, rounds: int) -> Row:
    """Two members of a group beside one."""
    sides = {"two processes": 2, "one process": 1}
    with bench.hub(SEVERAL, 2 * SEVERAL.events(bench.quick)) as hub:
        figures = [
            {side: bench.together(hub, sides[side]) for side in turned([*sides], number)}
            for number in range(rounds)
        ]
    reach = (Reach("cpu", "one process", most=1.1),)
    return Row(TWO, f"{SEVERAL}, commits on sqlite", [*sides], MEASURES, figures, reach)


def of_memory(bench: Bench, rounds: int) -> list[Row]:
    """By how much a member grows whose consumer sleeps, beside the bound that is documented."""
    rows = []
    kind = Kind(LARGE, 0, LARGE_PARTITIONS)
    with bench.hub(kind, LARGE_EVENTS) as hub:
        for buffer in BUFFERS:
            # A share is exceeded by an event at most.
            bodies = buffer + LARGE_PARTITIONS * LARGE / 2**20
            bound = COPIES * bodies + OF_A_THREAD * LARGE_PARTITIONS
            seconds = QUICK_NAP if bench.quick else NAP
            words = [f"--measure={MEMORY}", f"--seconds={seconds}"]
            words.append(f"--buffer-bytes={buffer * 2**20}")
            figures = [
                {
                    "growth": {"memory": bench.once(hub.addresses[FULL], CONSUME, NONE, *words)[0]},
                    "bound": {"memory": bound},
                }
                for _ in range(rounds)
            ]
            title = f"{LARGE_PARTITIONS} partitions, 1 MB events, buffer_bytes {buffer} MiB"
            reach = (Reach("memory", "bound", most=1.0),)
            sides = ["growth", "bound"]
            rows.append(Row(f"{SLEEPING}-{buffer}", title, sides, ["memory"], figures, reach))
    return rows


def of_latency(bench: Bench, rounds: int) -> Row:
    """How long an event takes from when it is published until a consumer has it."""
    timed = QUICK_TIMED if bench.quick else TIMED
    words = {side: [CONSUME, f"--max-wait={seconds}"] for side, seconds in WAITS.items()}
    words |= {BESIDE[0]: [OFFICIAL], BESIDE[1]: [OFFICIAL, "--aio"]}
    with bench.hub(Kind(200, 0, 1), 0, RATE) as hub:

        def one(side: str) -> Figures:
            way, *others = words[side]
            asked = [f"--measure={LATENCY}", f"--events={timed}", *others]
            middle, late = bench.once(hub.addresses[TICKING], way, NONE, *asked)
            return {"median": middle, "p99": late}

        figures = [
            {side: one(side) for side in turned([*words], number)} for number in range(rounds)
        ]
    title = f"from publish to batch, {RATE:g} events a second"
    return Row(DELAY, title, [*words], ["median", "p99"], figures)


def chosen(asked: Namespace) -> tuple[list[str], list[str]]:
    """The cases of rates that were asked for, and the others."""
    wanted = {
        "partitions": asked.partitions,
        "properties": asked.properties,
        "body": asked.body,
    }
    is_narrowed = any(wanted.values()) or bool(asked.store)
    names = [
        name
        for name, (kind, store) in CASES.items()
        if all(not some or getattr(kind, key) in some for key, some in wanted.items())
        and (not asked.store or store in asked.store)
        and (not asked.only or name in asked.only)
    ]
    others = [name for name in OTHERS if name in asked.only or not (asked.only or is_narrowed)]
    return names, others


def add_own(parser: ArgumentParser) -> None:
    """The arguments that the other commands do not have."""
    for name, values in (
        ("partitions", PARTITIONS), ("properties", PROPERTIES), ("body", BODIES),
    ):  # fmt: skip
        parser.add_argument(
            f"--{name}", type=int, action="append", choices=values, help="may be repeated"
        )
    parser.add_argument("--store", action="append", choices=STORES, help="may be repeated")
    parser.add_argument("--aio", action="store_true", help="clients of event loops")


def measured(asked: Namespace, bench: Bench, console: Console) -> dict[str, list[Row]]:
    """The tables by their titles."""
    names, others = chosen(asked)
    tables: dict[str, list[Row]] = {}
    found = rate_rows(bench, names, asked.rounds, console)
    for way in (CONSUME, PROCESS_BATCH):
        rows = [row for row in found if row.sides[0] == way]
        tables[f"consumed by {way}"] = rows
    makers: dict[str, Callable[[], list[Row]]] = {
        TWO: lambda: [of_two_processes(bench, asked.rounds)],
        SLEEPING: lambda: of_memory(bench, asked.rounds),
        DELAY: lambda: [of_latency(bench, asked.rounds)],
    }
    for name in others:
        console.print(f"measuring {name}, {asked.rounds} rounds")
        tables[name] = makers[name]()
    return {title: rows for title, rows in tables.items() if rows}


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks.consume", __doc__, [*CASES, *OTHERS], add_own)
    console, cores = wide_console(), Cores.of_this_machine()
    used = {CASES[name][1] for name in chosen(asked)[0]} - {NONE} | {SQLITE}
    with ExitStack() as running:
        try:
            with on_cores(cores.server):
                stores = {name: running.enter_context(BACKENDS[name]()) for name in sorted(used)}
        except ServerMissingError as missing:
            sys.exit(str(missing))
        bench = Bench(stores, cores, asked.quick, asked.aio)
        tables = measured(asked, bench, console)
    for title, rows in tables.items():
        show(title, rows, console, "consumed")
    cases = [row.as_dict() for rows in tables.values() for row in rows]
    write_json(cases, asked.quick, asked.json, PACKAGES, {})
    console.print(f"written to {asked.json}")


if __name__ == "__main__":
    main()
