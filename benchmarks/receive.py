"""Measure what is received into Arrow: the fast path beside the public one and the official client.

The stand-in and the client are on different cores. Linux only.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

from rich.console import Console

from benchmarks.command import arguments
from benchmarks.measuring import turned
from benchmarks.receive_hub import FAR, KINDS, MIXED, NEAR, NONE, ROUND_TRIP, THREE, UNLIKE
from benchmarks.receive_once import FAST, OFFICIAL, PUBLIC
from benchmarks.report import wide_console, write_json
from benchmarks.spark_cores import answer_of, used
from benchmarks.spark_results import Figures, Reach, Row, show
from benchmarks.spark_servers import Cores, Server, serving

MODULE = "benchmarks.receive_once"
EVENTS, QUICK_EVENTS = 200_000, 20_000
AHEAD = 3000
OFFICIAL_AHEAD = f"official {AHEAD}"
SLOWER = 4
"""The slow sides read so much less: none of them gets faster with the time."""

SIDES = {
    FAST: (FAST, None, 1),
    PUBLIC: (PUBLIC, None, SLOWER),
    OFFICIAL: (OFFICIAL, None, SLOWER),
    OFFICIAL_AHEAD: (OFFICIAL, AHEAD, SLOWER),
}
"""By side: the way, how far ahead the official client reads, and which part is read."""

MEASURES = ("rate", "cpu", "memory", "server")
WORDS = {
    NONE: "no properties",
    THREE: "3 properties",
    MIXED: "mixed producers",
    UNLIKE: "unlike events",
}
PACKAGES = ("eventhub-checkpoints", "azure-eventhub", "pyarrow")
CASES = {f"{kind}-{distance}": (kind, distance) for kind in KINDS for distance in (NEAR, FAR)}


@dataclass(frozen=True)
class Bench:
    """The stand-in, and who runs where."""

    hubs: Server
    cores: Cores
    events: int

    def one_round(self, case: str, number: int) -> dict[str, Figures]:
        """All sides, one after another."""
        return {side: self.once(case, side) for side in turned([*SIDES], number)}

    def once(self, case: str, side: str) -> Figures:
        """One side in a process of its own."""
        way, ahead, part = SIDES[side]
        events = self.events // part
        words = [self.hubs.addresses[case], "--way", way, "--events", str(events)]
        words += ["--ahead", str(ahead)] if ahead else []
        busy = used(self.hubs.process)
        rows, wall, cpu, memory = answer_of(MODULE, words, self.cores.client)
        return {
            "rate": rows / wall,
            "cpu": 1e6 * cpu / rows,
            "memory": memory,
            # The hub is busy while events are received, and else it is not.
            "server": min(1.0, (used(self.hubs.process) - busy) / wall),
        }


def reach_of(kind: str, distance: str) -> tuple[Reach, ...]:
    """What the fast path has to reach in a case."""
    if kind == UNLIKE:
        return ()
    least = 8 if kind == MIXED and distance == NEAR else 10
    return (Reach("rate", OFFICIAL, least=least),)


def rows_of(bench: Bench, asked: Namespace, console: Console) -> list[Row]:
    """A row for each case that was asked for."""
    found = []
    for case, (kind, distance) in CASES.items():
        if case not in (asked.only or CASES):
            continue
        away = f", {1000 * ROUND_TRIP:g} ms away" if distance == FAR else ""
        console.print(f"measuring {WORDS[kind]}{away}, {asked.rounds} rounds")
        rounds = [bench.one_round(case, number) for number in range(asked.rounds)]
        reach = reach_of(kind, distance)
        found.append(Row(case, WORDS[kind] + away, (*SIDES,), MEASURES, rounds, reach))
    return found


def add_own(parser: ArgumentParser) -> None:
    """The argument that the other commands do not have."""
    parser.add_argument("--events", type=int, help=f"in each hub (default {EVENTS:,})")


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks.receive", __doc__, [*CASES], add_own)
    events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    console, cores = wide_console(), Cores.of_this_machine()
    console.print("filling the hubs")
    with serving("benchmarks.receive_hub", ["--events", str(events)], cores) as hubs:
        rows = rows_of(Bench(hubs, cores, events), asked, console)
    show("received into Arrow, by side", rows, console)
    write_json([row.as_dict() for row in rows], asked.quick, asked.json, PACKAGES, {})
    console.print(f"{events:,} events in each hub; written to {asked.json}")


if __name__ == "__main__":
    main()
