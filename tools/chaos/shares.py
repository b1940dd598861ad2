"""Rounds on one or several stores, in this process or in several at once."""

import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos.claimed import Replay
from chaos.nursery import Nursery
from chaos.plan import Plan, drawn, shrunk
from chaos.rounds import Outcome, Stage, run_round
from chaos.storage import running
from eventhub_checkpoints.localhub import LocalHub


@dataclass
class Total:
    """What occurred on a store.

    Attributes:
        rounds: how many have run.
        seen: what occurred, by kind.
        replays: of all sessions.
        failed: seeds.
        ways: what workers of a client and way of saving have done, by kind; `rounds` are those in
            which there was one.
    """

    rounds: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    replays: list[Replay] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    ways: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count a round."""
        self.rounds += 1
        self.seen.update(outcome.seen)
        self.replays += outcome.replays
        self._add_ways(outcome.ways)
        if outcome.problems:
            self.failed.append(seed)

    def __add__(self, other: "Total") -> "Total":
        both = Total(
            self.rounds + other.rounds,
            self.seen + other.seen,
            [*self.replays, *other.replays],
            [*self.failed, *other.failed],
        )
        both._add_ways(self.ways)
        both._add_ways(other.ways)
        return both

    def _add_ways(self, ways: Mapping[str, Counter[str]]) -> None:
        for way, seen in ways.items():
            self.ways[way].update(seen)


class Share(NamedTuple):
    """Rounds that one process runs.

    Attributes:
        store: its name.
        seed: of the first round.
        rounds: how many.
        without: names of faults and workers that are left out.
        shrinks: whether failing rounds are made smaller.
    """

    store: str
    seed: int
    rounds: int
    without: Sequence[str] = ()
    shrinks: bool = False


def shared(seed: int, rounds: int, parallel: int) -> list[range]:
    """Return the seeds of the rounds of each process."""
    most = -(-rounds // parallel)
    return [
        range(first, min(first + most, seed + rounds)) for first in range(seed, seed + rounds, most)
    ]


def results(shares: Sequence[Share], parallel: int) -> Iterator[Total]:
    """Run the rounds of each share, in this process or in several, and yield their results."""
    if parallel == 1:
        yield from map(run_rounds, shares)
        return
    # Not forked: the threads of a hub do not survive it.
    with ProcessPoolExecutor(parallel, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run_rounds, shares)


def run_rounds(share: Share) -> Total:
    """Run the rounds on one hub and one storage, and print a line for each.

    Raises:
        ServerMissingError: the store's server is not available.
    """
    store, total = share.store, Total()
    with (
        running(store) as storage,
        LocalHub({"none": 1}) as hub,
        Nursery() as nursery,
    ):
        stage = Stage(storage, hub, nursery)
        for number in range(share.seed, share.seed + share.rounds):
            plan, began = drawn(number, store, storage.faults), time.monotonic()
            outcome = run_round(stage, plan.without(share.without))
            total.add(number, outcome)
            result = "failed" if outcome.problems else "ok"
            counts = ", ".join(f"{count} {kind}" for kind, count in outcome.seen.items() if count)
            print(f"{store} {number} {result}, {time.monotonic() - began:.0f} s: {counts}")
            if outcome.problems:
                print(*(f"  {problem}" for problem in outcome.problems), sep="\n", flush=True)
                if share.shrinks:
                    print(f"repeat: {repetition(store, plan, smaller(stage, plan))}")
            sys.stdout.flush()
    return total


def smaller(stage: Stage, plan: Plan) -> list[str]:
    """Return names of the faults and workers without which a round still fails."""
    return shrunk(plan, lambda names: bool(run_round(stage, plan.without(names)).problems))


def repetition(store: str, plan: Plan, without: Sequence[str]) -> str:
    """Return the command that repeats a round."""
    left_out = f" --without {','.join(without)}" if without else ""
    return f"python -m chaos --store {store} --seed {plan.seed} --rounds 1{left_out}"
