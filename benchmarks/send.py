"""Measure what is sent from Arrow batches: the fast path, the public one, and the official client.

The stand-in and the client are on different cores. One hub stores events as the local hub does, the
other forgets them: where only the rate differs, the hub is the limit. Linux only.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

from rich.console import Console

from benchmarks.command import arguments
from benchmarks.measuring import turned
from benchmarks.report import wide_console, write_json
from benchmarks.send_hub import HUBS, SWALLOWED
from benchmarks.send_once import FAST, OFFICIAL, WAYS
from benchmarks.spark_cores import answer_of, used
from benchmarks.spark_results import Figures, Reach, Row, show
from benchmarks.spark_servers import Cores, Server, serving

MODULE = "benchmarks.send_once"
EVENTS, QUICK_EVENTS = 500_000, 20_000
SLOWER = 10
"""The slow sides send so much less: none of them gets faster with the time."""

NONE, THREE = "none", "three"
WORDS = {NONE: "no properties", THREE: "3 properties"}
CASES = {f"{kind}-{hub}": (kind, hub) for kind in WORDS for hub in HUBS}
MEASURES = ("rate", "cpu", "server")
REACH = (Reach("rate", OFFICIAL, least=5),)
PACKAGES = ("eventhub-checkpoints", "azure-eventhub", "pyarrow")


@dataclass(frozen=True)
class Bench:
    """The stand-in, and who runs where."""

    hubs: Server
    cores: Cores
    events: int

    def one_round(self, case: str, number: int) -> dict[str, Figures]:
        """All sides, one after another."""
        return {side: self.once(case, side) for side in turned([*WAYS], number)}

    def once(self, case: str, side: str) -> Figures:
        """One side in a process of its own."""
        kind, hub = CASES[case]
        events = self.events if side == FAST else self.events // SLOWER
        words = [self.hubs.addresses[hub], "--way", side, "--events", str(events)]
        words += ["--properties"] if kind == THREE else []
        busy = used(self.hubs.process)
        rows, wall, cpu = answer_of(MODULE, words, self.cores.client)
        return {
            "rate": rows / wall,
            "cpu": 1e6 * cpu / rows,
            # The hub is busy while events are sent, and else it is not.
            "server": min(1.0, (used(self.hubs.process) - busy) / wall),
        }


def rows_of(bench: Bench, asked: Namespace, console: Console) -> list[Row]:
    """A row for each case that was asked for."""
    found = []
    for case, (kind, hub) in CASES.items():
        if case not in (asked.only or CASES):
            continue
        words = f"{WORDS[kind]}, {hub}"
        console.print(f"measuring {words}, {asked.rounds} rounds")
        rounds = [bench.one_round(case, number) for number in range(asked.rounds)]
        reach = REACH if hub == SWALLOWED else ()
        found.append(Row(case, words, WAYS, MEASURES, rounds, reach))
    return found


def add_own(parser: ArgumentParser) -> None:
    """The argument that the other commands do not have."""
    parser.add_argument("--events", type=int, help=f"on the fast path (default {EVENTS:,})")


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks.send", __doc__, [*CASES], add_own)
    events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    console, cores = wide_console(), Cores.of_this_machine()
    with serving("benchmarks.send_hub", [], cores) as hubs:
        rows = rows_of(Bench(hubs, cores, events), asked, console)
    show("sent from Arrow, by side", rows, console)
    write_json([row.as_dict() for row in rows], asked.quick, asked.json, PACKAGES, {})
    console.print(f"{events:,} events on the fast path; written to {asked.json}")


if __name__ == "__main__":
    main()
