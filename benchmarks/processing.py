"""Measure what it costs to save how far events were processed: trackers, and whole consumers.

Servers and consumer are on different cores. Consumers need Linux.
"""

import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from dataclasses import dataclass

from rich.console import Console

from backends import BACKENDS, Backend, ServerMissingError
from benchmarks import processing_trackers as trackers
from benchmarks.command import arguments
from benchmarks.measuring import OFFICIAL, OURS, turned
from benchmarks.processing_meter import (
    COALESCING,
    NONE,
    NONE_BATCHES,
    OFF,
    OFFICIAL_BATCHES,
    PROCESSOR,
    TELEMETRY,
    TRACKED,
)
from benchmarks.report import wide_console, write_json
from benchmarks.spark_cores import answer_of, on_cores
from benchmarks.spark_hub import TRACED, hub_name
from benchmarks.spark_results import Figures, Reach, Row, show
from benchmarks.spark_servers import Cores, Kind, Server, stand_in

MODULE = "benchmarks.processing_once"
EVENTS, QUICK_EVENTS = 100_000, 5_000
SLOWER = 50
"""Who writes for each event consumes so much less."""

WINDOWS = (1, 10, 100, 1000, 10_000)
TRACKERS = {f"tracker-{window}": window for window in WINDOWS}
ONE, FOUR, WITH_CONTEXT = (1, 0), (4, 0), (1, TRACED)
"""The hubs: one partition, or four partitions in the same consumer; events of traced producers."""
VARIANTS = {"": "", "-aio": ", aio"}
WAYS = {
    COALESCING: "CoalescingCheckpointStore",
    TRACKED: "Checkpointer",
    PROCESSOR: "EventProcessor, batches",
}
BESIDE = {way: {OURS: way, OFFICIAL: OFFICIAL, NONE: NONE} for way in (COALESCING, TRACKED)} | {
    PROCESSOR: {OURS: PROCESSOR, OFFICIAL: OFFICIAL_BATCHES, NONE: NONE_BATCHES}
}
"""By way of ours: which way is in which column."""
CONSUMERS: dict[str, tuple[str, Kind, str]] = {
    f"{way}{suffix}{variant}": (way, kind, variant)
    for variant in VARIANTS
    for kind, suffix, ways in ((ONE, "", WAYS), (FOUR, "-4", (COALESCING, TRACKED)))
    for way in ways
}
TRACING = {
    f"tracing-{way}{variant}": (way, variant)
    for variant in VARIANTS
    for way in (TRACKED, PROCESSOR)
}
CONSUMED = (OURS, OFFICIAL, NONE)
MEASURES = ("rate", "cpu", "layer", "writes")
PACKAGES = (
    "eventhub-checkpoints",
    "azure-eventhub",
    "azure-storage-blob",
    "azure-eventhub-checkpointstoreblob",
    "azure-eventhub-checkpointstoreblob-aio",
)
NEAR_NONE = Reach("rate", NONE, least=0.9)
REACH = {COALESCING: (NEAR_NONE,)}


@dataclass(frozen=True)
class Bench:
    """The servers, and who runs where."""

    hubs: Server
    blobs: Backend
    cores: Cores
    events: int

    def one_round(
        self, ways: list[str], kind: Kind, variant: str, number: int
    ) -> dict[str, Figures]:
        """All ways, one after another, and what each of ours adds to the processor time of none."""
        found = {way: self.once(way, kind, variant) for way in turned(ways, number)}
        for way in {*ways} & {*WAYS}:
            bare = found[BESIDE[way][NONE]]["cpu"]
            found[way] = {**found[way], "layer": found[way]["cpu"] / bare - 1}
        return found

    def once(self, way: str, kind: Kind, variant: str, telemetry: str = OFF) -> Figures:
        """One of them in a process of its own, on a container of its own."""
        events = self.events // SLOWER if way == OFFICIAL else self.events
        words = ["--way", way, "--events", str(events), *(["--aio"] if variant else [])]
        words += ["--telemetry", telemetry]
        with self.blobs.place() as place:
            words += [self.hubs.addresses[hub_name(*kind)], place.url]
            counted, wall, cpu, writes = answer_of(MODULE, words, self.cores.client)
        return {
            "rate": counted / wall,
            "cpu": 1e6 * cpu / counted,
            "writes": 1000 * writes / counted,
        }


def tracker_rows(names: list[str], events: int, rounds: int, console: Console) -> list[Row]:
    """A row for each window."""
    found = []
    for name in names:
        window = TRACKERS[name]
        title = "in order" if window == 1 else f"any order in {window:,}"
        console.print(f"measuring trackers, {title}, {rounds} rounds")
        orders = trackers.shuffled(events, window)
        trackers.check(orders)
        figures = [trackers.one_round(orders, number) for number in range(rounds)]
        found.append(Row(name, title, trackers.SIDES, ("event",), figures))
    return found


def consumer_rows(bench: Bench, names: list[str], rounds: int, console: Console) -> list[Row]:
    """A row for each of our ways, beside the official one and none that ran in the same rounds."""
    found = []
    for kind, variant in dict.fromkeys(CONSUMERS[name][1:] for name in names):
        ours = {
            name: CONSUMERS[name][0] for name in names if CONSUMERS[name][1:] == (kind, variant)
        }
        console.print(f"measuring consumers of {kind[0]}{VARIANTS[variant]}, {rounds} rounds")
        beside = {way: sides_of(way, kind) for way in ours.values()}
        ways = [*dict.fromkeys(side for sides in beside.values() for side in sides.values())]
        figures = [bench.one_round(ways, kind, variant, number) for number in range(rounds)]
        for name, way in ours.items():
            rows = [{side: each[of] for side, of in beside[way].items()} for each in figures]
            several = "" if kind == ONE else f", {kind[0]} partitions"
            title = f"{WAYS[way]}{several}{VARIANTS[variant]}"
            found.append(Row(name, title, CONSUMED, MEASURES, rows, REACH.get(way, ())))
    return found


def tracing_rows(bench: Bench, names: list[str], rounds: int, console: Console) -> list[Row]:
    """A row for each way, without spans, with the API alone and with the SDK."""
    found = []
    for name in names:
        way, variant = TRACING[name]
        title = f"{WAYS[way]}{VARIANTS[variant]}"
        console.print(f"measuring tracing, {title}, {rounds} rounds")
        figures = [
            {
                side: bench.once(way, WITH_CONTEXT, variant, side)
                for side in turned([*TELEMETRY], number)
            }
            for number in range(rounds)
        ]
        found.append(Row(name, title, TELEMETRY, ("rate", "cpu"), figures))
    return found


def sides_of(way: str, kind: Kind) -> dict[str, str]:
    """Which way is in which column; official writes as often, however many partitions there are."""
    return {side: of for side, of in BESIDE[way].items() if kind == ONE or side != OFFICIAL}


def consumed(names: list[str], events: int, rounds: int, console: Console) -> dict[str, list[Row]]:
    """The tables of consumers by their titles, with servers that are started for them."""
    cores = Cores.of_this_machine()
    saving = [name for name in names if name in CONSUMERS]
    tracing = [name for name in names if name in TRACING]
    kinds = {CONSUMERS[name][1] for name in saving} | ({WITH_CONTEXT} if tracing else set())
    with ExitStack() as running:
        try:
            with on_cores(cores.server):
                blobs = running.enter_context(BACKENDS["blob"]())
        except ServerMissingError as missing:
            sys.exit(str(missing))
        hubs = running.enter_context(stand_in(kinds, events, cores))
        bench = Bench(hubs, blobs, cores, events)
        tables = {
            "consumed with a checkpoint for each event": consumer_rows(
                bench, saving, rounds, console
            ),
            "consumed without and with spans and metrics": tracing_rows(
                bench, tracing, rounds, console
            ),
        }
    return {title: rows for title, rows in tables.items() if rows}


def add_own(parser: ArgumentParser) -> None:
    """The argument that the other commands do not have."""
    parser.add_argument("--events", type=int, help=f"in each run (default {EVENTS:,})")


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks.processing", __doc__, [*TRACKERS, *CONSUMERS, *TRACING], add_own)
    events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    console = wide_console()
    rows: list[Row] = []
    if names := [name for name in TRACKERS if name in (asked.only or TRACKERS)]:
        rows += (found := tracker_rows(names, events, asked.rounds, console))
        show("processor time of one event, begun and finished", found, console, "finished")
    if names := [name for name in (*CONSUMERS, *TRACING) if not asked.only or name in asked.only]:
        for title, found in consumed(names, events, asked.rounds, console).items():
            rows += found
            show(title, found, console, "by")
    write_json([row.as_dict() for row in rows], asked.quick, asked.json, PACKAGES, {})
    console.print(f"{events:,} events in each run; written to {asked.json}")


if __name__ == "__main__":
    main()
