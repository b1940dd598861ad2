"""Let everything go wrong while workers process, and report what happened to events and positions.

    python -m chaos --store all --rounds 50
    python -m chaos --store redis --seed 7 --rounds 1             repeat a round that has failed
    python -m chaos --store redis --seed 7 --rounds 1 --without fault-0,worker-2

Run it with PYTHONPATH=src:tools. In each round some workers process the events of two partitions,
one after another or two at once, with either client and every way of saving: a write for each
event, a `CoalescingCheckpointStore`, a `Checkpointer` with a pool or sequentially, an
`EventProcessor`, on Blob also the official store, with policies and limits chosen by the seed. Some
workers' clocks are an hour off. The workers are killed, stopped, or suspended for longer than an
ownership lasts; the storage is away, silent, slow, killed and started again, or loses its answers;
the hub drops or refuses connections, is busy, or is created again. The last worker processes the
rest. `judge.py` and `claimed.py` have the rules, `plan.py` and `storage.py` what goes wrong.

Round n of seed s is that of seed s + n; the seed decides what happens, and the timing depends on
the machine. A failing round is run again with ever fewer faults and workers, as long as it still
fails, and printed as a command.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backends import ServerMissingError
from chaos.claimed import Replay, largest
from chaos.plan import Plan, drawn, shrunk
from chaos.rounds import Outcome, run_round
from chaos.storage import SINGLE, STORES, Storage, storage_of
from eventhub_checkpoints.localhub import LocalHub

COLUMNS = (
    *("events", "claims", "kills", "stops", "pauses", "outages", "hub faults", "re-creations"),
    *("clocks off", "steals", "lost", "back", "two owners", "replay"),
)
RULES = ("passed", "left out", "graceful", "back by official")
"""Kinds that have a column only if they occurred."""


@dataclass
class Total:
    """What occurred on a store.

    Attributes:
        rounds: how many have run.
        seen: what occurred, by kind.
        replays: of all sessions.
        failed: seeds.
    """

    rounds: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    replays: list[Replay] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count a round."""
        self.rounds += 1
        self.seen.update(outcome.seen)
        self.replays += outcome.replays
        if outcome.problems:
            self.failed.append(seed)


def run_rounds(
    store: str, seed: int, rounds: int, without: Sequence[str] = (), *, shrinks: bool = False
) -> Total:
    """Run the rounds on one hub and one storage, and print a line for each.

    Raises:
        ServerMissingError: the store's server is not available.
    """
    total = Total()
    with (
        STORES[store]() as backend,
        storage_of(store, backend) as storage,
        LocalHub({"none": 1}) as hub,
    ):
        for number in range(seed, seed + rounds):
            plan, began = drawn(number, store, storage.faults), time.monotonic()
            outcome = run_round(hub, storage, plan.without(without))
            total.add(number, outcome)
            result = "failed" if outcome.problems else "ok"
            counts = ", ".join(f"{count} {kind}" for kind, count in outcome.seen.items() if count)
            print(f"{store} {number} {result}, {time.monotonic() - began:.0f} s: {counts}")
            if outcome.problems:
                print(*(f"  {problem}" for problem in outcome.problems), sep="\n", flush=True)
                if shrinks:
                    print(f"repeat: {repetition(store, plan, smaller(hub, storage, plan))}")
            sys.stdout.flush()
    return total


def smaller(hub: LocalHub, storage: Storage, plan: Plan) -> list[str]:
    """Return names of the faults and workers without which a round still fails."""
    return shrunk(plan, lambda names: bool(run_round(hub, storage, plan.without(names)).problems))


def repetition(store: str, plan: Plan, without: Sequence[str]) -> str:
    """Return the command that repeats a round."""
    left_out = f" --without {','.join(without)}" if without else ""
    return f"python -m chaos --store {store} --seed {plan.seed} --rounds 1{left_out}"


def table(totals: Mapping[str, Total]) -> str:
    """Return a table with a row for each store, and one of the sessions nearest to their bounds."""
    more = [kind for kind in RULES if any(total.seen[kind] for total in totals.values())]
    columns = (*COLUMNS, *more)
    heads = ("store", "rounds", "failed", *columns)
    rows: list[tuple[str, ...]] = [heads]
    for store, total in totals.items():
        counts = (
            total.rounds,
            len(total.failed),
            *(total.seen[kind] for kind in (*COLUMNS, *more)),
        )
        rows.append((store, *map(str, counts)))
    kinds: list[tuple[str, ...]] = [
        ("nearest to its bound", "way", "claims", "counted", "bound", "most read again")
    ]
    for store, total in totals.items():
        for kind, one in largest(total.replays).items():
            own = [replay.events for replay in total.replays if replay.kind == kind]
            kinds.append((store, kind, *map(str, (len(own), one.counted, one.bound, max(own)))))
    return f"{aligned(rows)}\n\n{aligned(kinds)}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("all", *STORES), default="sqlite")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--without", metavar="NAMES", default="", help="faults and workers")
    parser.add_argument("--no-shrink", action="store_true", help="do not make failures smaller")
    chosen = parser.parse_args(arguments)
    print(f"chaos: seed {chosen.seed}, {chosen.rounds} rounds of {chosen.store}", flush=True)
    without = [name for name in chosen.without.split(",") if name]
    shrinks = not (without or chosen.no_shrink)
    totals: dict[str, Total] = {}
    for store in SINGLE if chosen.store == "all" else [chosen.store]:
        try:
            totals[store] = run_rounds(store, chosen.seed, chosen.rounds, without, shrinks=shrinks)
        except ServerMissingError as missing:
            print(missing)
            return 1
    print(table(totals))
    return 1 if any(total.failed for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
