"""Move a group between stores under load, and kill the move at every step.

In each round two workers process the events of two partitions from the source. While they do, the
group moves to the target, in a program that is killed at its first call of a store, run again,
killed at its second call, and so on until it ends; after the first calls, which are all different,
the steps become longer. Between two runs, its fences may expire. A worker of the target is started
as soon as that is prepared. In some rounds a worker of the source is killed beside the move. By the
seed, partitions are taken from their workers, or the workers are stopped gracefully and the move
waits for them.
"""

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from backends import BACKENDS, Backend, Place
from crashes.harness import Result, seeds_of, table, told
from crashes.workers.diary import PARTITIONS
from crashes.workers.journal import Line
from crashes.workers.nursery import Nursery
from crashes.workers.orders import CLIENT, Orders, Way, chosen_orders
from crashes.workers.process import Worker
from crashes.workers.publishing import Publishing
from crashes.workers.rounds import WorkersRound, in_folder
from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER
from eventhub_checkpoints.operations.move import Move, Pass
from killed_calls import KilledError, Killer

ROUNDS = 10
EXPIRES_AFTER: float = CLIENT["partition_ownership_expiration_interval"]
SETTLE = EXPIRES_AFTER
"""Longer than by default: workers on a busy machine notice a loss late."""
SINGLE_STEPS = 30
"""Calls of the first two passes of a move; later passes repeat them until nothing changes."""
EVERY = 0.05
WAYS: tuple[Way, ...] = ("handler", "coalesced", "pool")
"""An `EventProcessor` ends where it finds a closed checkpoint, which is right, but no round."""
HUB = "orders"
SHARED = [name for name, kind in BACKENDS.items() if kind.reaches_processes]


class OpenLines:
    """Drops what workers record of closed checkpoints: there is no position, and no event.

    The judge compares positions, and a closed checkpoint has none.
    """

    def __init__(self) -> None:
        self._closed: set[tuple[str, str, int]] = set()

    def of(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the other lines."""
        for line in lines:
            key = line.who, line.partition, line.claim
            if line.what == "claimed" and line.number == CLOSED_NUMBER:
                self._closed.add(key)
            elif line.what == "listed" and line.number == CLOSED_NUMBER:
                continue
            if key not in self._closed:
                yield line


@dataclass(kw_only=True)
class MoveRound(WorkersRound):
    """Running round.

    Attributes:
        chance: decides what happens.
        source, target: where the positions are, and where they go.
        stride: number of calls by which the first runs of the move differ.
        waits: whether the move waits for the workers instead of taking partitions from them.
    """

    chance: random.Random
    source: Place
    target: Place
    stride: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lines = OpenLines()
        self._workers: list[Worker] = []
        self._new: list[Worker] = []
        self.waits = self.chance.random() < 0.5
        self._ended: set[str] = set()

    def run(self) -> Result:
        """Move the group, let the target's worker process the rest; return what occurred."""
        chance = self.chance
        for _ in range(2):
            self._workers.append(self._start(self.source))
        self.wait_for_begun(*self._workers)
        time.sleep(chance.uniform(0, 1))
        ending = threading.Thread(target=self._end_old) if self.waits else None
        victim = self._workers[0] if chance.random() < 0.3 else None
        self._move(ending, victim)
        if ending is not None:
            ending.join()
        for worker in self._workers:
            if worker.orders.name not in self._ended:
                self._stop(worker)
        self.publishing.stop()
        self._finish()
        return self._outcome()

    def _start(self, place: Place) -> Worker:
        orders = chosen_orders(self.chance, f"worker-{len(self.orders)}", WAYS)
        slowness = min(orders.slowness, 0.1)
        orders = replace(orders, failures=0.0, hands_over=False, slowness=slowness)
        return self.start(orders, place.url)

    def _end_old(self) -> None:
        """Stop the workers of the source gracefully, one after another, during the move."""
        for worker in list(self._workers):
            time.sleep(1.0)
            if worker.orders.name not in self._ended:
                self._ended.add(worker.orders.name)
                self._stop(worker)

    def _stop(self, worker: Worker) -> None:
        self.seen["graceful stops"] += 1
        self.stop(worker)

    def _move(self, ending: threading.Thread | None, victim: Worker | None) -> None:
        """Run the move again and again, each time to one call further, until it ends."""
        last = 0
        while True:
            last += self.stride * (1 if last < SINGLE_STEPS else last // 4)
            killer = Killer(last, is_answered=self.chance.random() < 0.5)
            if self._run_move(killer):
                return
            self.seen["kills of the move"] += 1
            # The fences expire in a pause that is long enough.
            time.sleep(self.chance.choice((0, 0, 0, 0.2, 1.2 * EXPIRES_AFTER)))
            if not self._new and self._is_prepared():
                self._new.append(self._start(self.target))
                if ending is not None:
                    ending.start()
            if victim is not None and self._new and victim.orders.name not in self._ended:
                self._ended.add(victim.orders.name)
                self.seen["killed workers"] += 1
                self.note(victim, victim.kill())

    def _run_move(self, killer: Killer) -> bool:
        """Run the move; return whether it has ended."""
        made = Pass(0.0)
        with open_store(self.source.url) as source, open_store(self.target.url) as target:
            move = Move(
                killer.guards(source),
                killer.guards(target),
                self.scope,
                PARTITIONS,
                expires_after=EXPIRES_AFTER,
                settle=SETTLE,
                waits=self.waits,
            )
            try:
                for made in move.run(EVERY, threading.Event()):
                    if made.error:
                        self.seen["outages"] += 1
            except KilledError:
                return False
        return made.is_done

    def _is_prepared(self) -> bool:
        with open_store(self.target.url) as store:
            rows = store.list_checkpoints(*self.scope)
        return {row["partition_id"] for row in rows} == set(PARTITIONS)

    def more(self) -> Sequence[Line]:
        """Have the judge read what the journal has now, without closed checkpoints."""
        lines = list(self._lines.of(self.reading.more()))
        self.judge.read(lines)
        return lines

    def _finish(self) -> None:
        """Wait until the target's worker has processed everything, and stop it."""
        last = self.publishing.last()
        if not self._new:
            self._new.append(self._start(self.target))
        [worker] = self._new

        def left() -> list[str]:
            return [one for one in PARTITIONS if last[one] not in self.judge.done[one]]

        self.wait_until(lambda _: not left(), goes_on=True)
        if left():
            self.problems.append(f"the target's worker does not process the rest of {left()}")
        worker.has_begun = True
        self._stop(worker)
        with open_store(self.target.url) as store:
            self.end(self.saved(store))

    def _outcome(self) -> Result:
        self.judged()
        # At a loss, a pool goes on with what it has begun, which is not saved then.
        pools = {name for name, each in self.orders.items() if each.way == "pool"}
        excused = set[str]() if self.waits else pools
        twice, by_move = twice_done(self.reading.lines, self.orders, self.source.url, excused)
        self.seen["taken" if not self.waits else "waited for"] = 1
        self.seen["done twice"] = twice
        self.seen["done twice by the move"] = by_move
        if by_move:
            self.problems.append(f"{by_move} events are done twice because of the move")
        return Result(self.seen, self.problems)


def twice_done(
    lines: Iterable[Line], orders: dict[str, Orders], source: str, excused: Iterable[str]
) -> tuple[int, int]:
    """Return how many events were done again, and how many of them because of the move.

    A worker that is killed does not save what it has done last; that is within the bound of its
    policy, which the judge checks. Events that are done again at the same store are balanced
    between its workers. For all others, the reason is the move.

    Args:
        lines: of the journal.
        orders: of every worker, by its name.
        source: URL of the store that the group leaves.
        excused: workers whose events may be done again after they lost a partition, within the
            bound of their policy.
    """
    excused = {*excused, *(line.who for line in lines if line.what == "kill")}
    first: dict[tuple[str, int], str] = {}
    twice = by_move = 0
    for line in lines:
        if line.what != "done":
            continue
        before = first.setdefault((line.partition, line.number), line.who)
        is_across = orders[before].url == source != orders[line.who].url
        twice += before != line.who
        by_move += is_across and before not in excused
    return twice, by_move


def run_round(
    source: Backend, target: Backend, nursery: Nursery, seed: int, stride: int = 1
) -> Result:
    """Run the round of a seed on two running backends; keep its files if something went wrong."""
    return in_folder(partial(run_in, source, target, nursery, seed, stride))


def run_in(
    source: Backend, target: Backend, nursery: Nursery, seed: int, stride: int, folder: Path
) -> Result:
    """Run the round of a seed in a folder."""
    with ExitStack() as opened:
        here, there = (opened.enter_context(each.place()) for each in (source, target))
        hub = opened.enter_context(LocalHub({HUB: len(PARTITIONS)}))
        return MoveRound(
            hub=hub,
            name=HUB,
            publishing=opened.enter_context(Publishing(hub, HUB, random.Random(seed))),
            nursery=nursery,
            folder=folder,
            chance=random.Random(seed),
            source=here,
            target=there,
            stride=stride,
        ).run()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this scenario has."""
    parser.add_argument("--source", choices=SHARED, default="blob")
    parser.add_argument("--target", choices=SHARED, default="postgres")
    parser.add_argument(
        "--stride", type=int, default=1, help="multiplies the steps; 1: each call is met"
    )


def results(chosen: argparse.Namespace, command: str) -> Iterator[Result]:
    """Run the chosen rounds, and yield their results."""
    with (
        BACKENDS[chosen.source]() as source,
        BACKENDS[chosen.target]() as target,
        Nursery() as nursery,
    ):
        for seed in seeds_of(chosen):
            run = partial(run_round, source, target, nursery, seed, chosen.stride)
            yield told(command, seed, run)


def report(results: Sequence[Result]) -> str:
    """Return a table of what occurred in all rounds."""
    seen = Counter(rounds=len(results)) + sum((each.seen for each in results), Counter[str]())
    return table([("what", "count"), *((kind, str(count)) for kind, count in seen.items())])
