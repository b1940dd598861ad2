"""Let everything go wrong while workers process, on any store.

    python -m crashes processing --store all --rounds 170 --parallel 8      several rounds at once
    python -m crashes processing --store redis --seed 7 --rounds 1 --without fault-0,worker-2
    python -m crashes processing --ways batches,batch-processor,each --rounds 200

In each round some workers process the events of two partitions, one after another or two at once,
with either client and every way of saving: a write for each event, a `CoalescingCheckpointStore`, a
`Checkpointer` with a pool or sequentially, an `EventProcessor` of events or of Arrow batches, a
loop over `consume_batches`, on Blob also the official store, with policies and limits chosen by the
seed. Half of them are behind a `HandoverStore`. Some
workers' clocks are an hour off. The workers are killed, stopped, or suspended for longer than an
ownership lasts; the storage is away, silent, slow, killed and started again, without room on its
disk, or loses its answers; the hub drops or refuses connections, is busy, or is created again. In
every 50th round a Spark stream reads the hub beside them, and publishes its progress. The last
worker processes the rest. `plan.py` and `storage.py` have what goes wrong; `judge.py` and
`claimed.py` of the workers have the rules.

A failing round is run again with ever fewer faults and workers, as long as it still fails.
"""

import argparse
import multiprocessing
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from counts import at_least_one
from crashes.harness import PROGRAM, Result, Rows, seeds_of, shrunk, table, told
from crashes.processing.plan import Plan, drawn
from crashes.processing.rounds import Stage, run_round
from crashes.processing.storage import SINGLE, STORES, running
from crashes.workers.claimed import Replay, nearest
from crashes.workers.nursery import Nursery
from crashes.workers.orders import OFFICIAL, WAYS, Way
from eventhub_checkpoints.localhub import LocalHub

ROUNDS = 10
JUDGED = ("lost", "back", "two owners", "replay", "read twice")
"""Kinds of broken rules that have a column even if they did not occur."""
BOUNDED = ("nearest to its bound", "most read again")


class Share(NamedTuple):
    """Rounds on one store, for one process.

    Attributes:
        store: its name.
        seeds: of the rounds.
        ways: of saving, that workers are drawn from.
        without: names of faults and workers to leave out.
        shrinks: whether a failing round is made smaller.
        command: repeats a round.
    """

    store: str
    seeds: range
    ways: Sequence[Way] = WAYS
    without: Sequence[str] = ()
    shrinks: bool = False
    command: str = f"{PROGRAM} processing"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this scenario has."""
    parser.add_argument("--store", choices=("all", *STORES), default="sqlite")
    parser.add_argument(
        "--ways",
        type=some_ways,
        default=",".join(WAYS),
        metavar="NAMES",
        help=f"ways of saving, of {', '.join(WAYS)}; {OFFICIAL} is used beside others, on Blob",
    )
    parser.add_argument(
        "--parallel", type=at_least_one, default=1, metavar="N", help="rounds at once"
    )
    parser.add_argument("--without", metavar="NAMES", default="", help="faults and workers")
    parser.add_argument("--no-shrink", action="store_true", help="do not make failures smaller")


def some_ways(text: str) -> str:
    """Return names of ways of saving.

    Raises:
        argparse.ArgumentTypeError: one is unknown, or none of them is for every store.
    """
    names = {*text.split(",")}
    if unknown := names - {*WAYS}:
        raise argparse.ArgumentTypeError(f"no way of saving: {', '.join(sorted(unknown))}")
    if names == {OFFICIAL}:
        raise argparse.ArgumentTypeError(f"{OFFICIAL} needs another way beside it")
    return text


def results(chosen: argparse.Namespace, command: str) -> Iterator[Result]:
    """Run the chosen rounds, in this process or in several, and yield their results."""
    seeds = seeds_of(chosen)
    most = -(-chosen.rounds // chosen.parallel)
    ways = [way for way in WAYS if way in chosen.ways.split(",")]
    without = [name for name in chosen.without.split(",") if name]
    shrinks = not (without or chosen.no_shrink)
    shares = [
        Share(store, seeds[first : first + most], ways, without, shrinks, repeating(command, store))
        for first in range(0, chosen.rounds, most)
        for store in (SINGLE if chosen.store == "all" else (chosen.store,))
    ]
    if chosen.parallel == 1:
        for share in shares:
            yield from run_rounds(share)
        return
    # Not forked: the threads of a hub do not survive it.
    with ProcessPoolExecutor(chosen.parallel, multiprocessing.get_context("spawn")) as pool:
        for found in pool.map(run_rounds, shares):
            yield from found


def repeating(command: str, store: str) -> str:
    """Return the command that repeats a round on one store."""
    return command.replace("--store all", f"--store {store}")


def run_rounds(share: Share) -> list[Result]:
    """Run the rounds on one hub and one storage.

    Raises:
        ServerMissingError: the store's server is not available.
    """
    found = []
    with running(share.store) as storage, LocalHub({"none": 1}) as hub, Nursery() as nursery:
        stage = Stage(storage, hub, nursery)
        for seed in share.seeds:
            plan = drawn(seed, share.store, storage.faults, share.ways)
            run = partial(run_round, stage, plan.without(share.without))
            smaller = partial(needless, stage, plan) if share.shrinks else lambda: share.without
            found.append(told(share.command, seed, run, smaller))
    return found


def needless(stage: Stage, plan: Plan) -> list[str]:
    """Return names of the faults and workers without which a round still fails."""
    return shrunk(plan.names, lambda names: bool(run_round(stage, plan.without(names)).problems))


def report(results: Sequence[Result]) -> str:
    """Return tables by store, and by way of saving on each store and on all of several."""
    judged = [result for result in results if result.details]
    return "\n\n".join(map(table, (by_store(judged), by_way(judged))))


def grouped(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results of each store."""
    found: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        found[result.details.store].append(result)
    return found


def replays_of(results: Sequence[Result]) -> list[Replay]:
    """Return the replays of all sessions."""
    return [replay for result in results for replay in result.details.replays]


def by_store(results: Sequence[Result]) -> Rows:
    """Return a row for each store."""
    kinds = columns(result.seen for result in results)
    yield ("store", "rounds", "failed", *kinds, *BOUNDED)
    for store, of_store in grouped(results).items():
        seen = sum((result.seen for result in of_store), Counter[str]())
        counts = len(of_store), sum(bool(result.problems) for result in of_store)
        yield (
            store,
            *map(str, (*counts, *(seen[kind] for kind in kinds))),
            *bounds(replays_of(of_store)),
        )


def by_way(results: Sequence[Result]) -> Rows:
    """Return a row for each store and way of saving, and for each way on all of several stores."""
    parts = grouped(results)
    if len(parts) > 1:
        parts["all"] = [*results]
    kinds = columns(ways_of(results).values())
    yield ("store", "way", *kinds, *BOUNDED)
    for store, of_store in parts.items():
        for way, seen in sorted(ways_of(of_store).items()):
            replays = [replay for replay in replays_of(of_store) if replay.way == way]
            yield (store, way, *(str(seen[kind]) for kind in kinds), *bounds(replays))


def columns(counts: Iterable[Counter[str]]) -> list[str]:
    """Return the kinds of a table: what occurred, and then the broken rules."""
    occurred = {kind for seen in counts for kind, count in seen.items() if count}
    return [*sorted(occurred - {*JUDGED}), *JUDGED]


def ways_of(results: Sequence[Result]) -> dict[str, Counter[str]]:
    """Return what occurred, by way of saving."""
    ways: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        for way, seen in result.details.ways.items():
            ways[way].update(seen)
    return ways


def bounds(replays: Sequence[Replay]) -> tuple[str, str]:
    """Return the counted events and the bound of the session nearest to it, and the most events."""
    if not (found := nearest(replays)):
        return "", ""
    return f"{found.counted} of {found.bound}", str(max(replay.events for replay in replays))
