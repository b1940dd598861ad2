"""Live moves under load: workers process, the move is killed at every step, and a judge looks.

    python tools/campaign.py move --source blob --target postgres --rounds 20

In each round two workers process the events of two partitions from the source. While they do, the
group moves to the target, in a program that is killed at its first call of a store, run again,
killed at its second call, and so on until it ends; after the first calls, which are all different,
the steps become longer. Between two runs, its fences may expire. A worker of the target is started
as soon as that is prepared. In some rounds a worker of the source is killed beside the move. By the
seed, partitions are taken from their workers, or the workers are stopped gracefully and the move
waits for them.

The workers, their journal and the rules about it are those of `chaos`.
"""

import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from backends import Backend, Place
from chaos.diary import PARTITIONS
from chaos.journal import NOTHING, Journal, Line, Reading
from chaos.judge import Judge, lost
from chaos.nursery import Nursery
from chaos.orders import Orders, Way, chosen_orders
from chaos.process import Worker
from chaos.publishing import Publishing
from chaos.settings import CLIENT
from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations.move import Move, Pass
from eventhub_checkpoints.operations.positions import CLOSED_NUMBER, Position
from eventhub_checkpoints.records import Scope
from killed_calls import KilledError, Killer

EXPIRES_AFTER: float = CLIENT["partition_ownership_expiration_interval"]
SETTLE = EXPIRES_AFTER
"""Longer than by default: workers on a busy machine notice a loss late."""
SINGLE_STEPS = 30
"""Calls of the first two passes of a move; later passes repeat them until nothing changes."""
EVERY = 0.05
WAYS: tuple[Way, ...] = ("handler", "coalesced", "pool")
"""An `EventProcessor` ends where it finds a closed checkpoint, which is right, but no round."""
REST_SECONDS = 90.0
HUB = "orders"


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


@dataclass
class MoveRound:
    """Running round.

    Attributes:
        chance: decides what happens.
        source, target: where the positions are, and where they go.
        hub: hub of the events.
        publishing: publisher of events.
        nursery: starts the workers.
        folder: for the journal and the logs.
        stride: number of calls by which the first runs of the move differ.
        seen: what occurred, by kind.
        problems: descriptions of what went wrong.
    """

    chance: random.Random
    source: Place
    target: Place
    hub: LocalHub
    publishing: Publishing
    nursery: Nursery
    folder: Path
    stride: int = 1
    seen: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        path = self.folder / "journal"
        self._journal = Journal(path, "parent")
        self._reading, self._lines = Reading(path), OpenLines()
        self._orders: dict[str, Orders] = {}
        self._judge = Judge(self._orders)
        self._scope = Scope(f"{self.hub.host}:{self.hub.port}", HUB, "$Default")
        self._workers: list[Worker] = []
        self._new: list[Worker] = []
        self.waits = self.chance.random() < 0.5
        self._killed: set[str] = set()

    def run(self) -> Counter[str]:
        """Move the group, let the target's worker process the rest; return what occurred."""
        chance = self.chance
        for _ in range(2):
            self._workers.append(self._start(self.source))
        self._wait_for_begun(self._workers)
        time.sleep(chance.uniform(0, 1))
        ending = threading.Thread(target=self._end_old) if self.waits else None
        victim = self._workers[0] if chance.random() < 0.3 else None
        self._move(ending, victim)
        for worker in self._workers:
            if worker.orders.name not in self._killed:
                self._end(worker)
        if ending is not None:
            ending.join()
        self.publishing.stop()
        self._finish()
        return self._outcome()

    def _start(self, place: Place) -> Worker:
        orders = chosen_orders(self.chance, f"worker-{len(self._orders)}", WAYS)
        orders = replace(
            orders,
            connection=self.hub.connection_string(HUB),
            url=place.url,
            journal=str(self.folder / "journal"),
            failures=0.0,
            hands_over=False,
            slowness=min(orders.slowness, 0.1),
        )
        self._orders[orders.name] = orders
        return Worker(orders, self.folder, self.nursery)

    def _end_old(self) -> None:
        """Stop the workers of the source gracefully, one after another, during the move."""
        for worker in list(self._workers):
            time.sleep(1.0)
            if worker.orders.name not in self._killed:
                self._killed.add(worker.orders.name)
                self._end(worker)

    def _end(self, worker: Worker) -> None:
        self.seen["graceful stops"] += 1
        if problem := worker.end():
            self.problems.append(f"{worker.orders.name}, {worker.orders.kind}: {problem}")

    def _move(self, ending: threading.Thread | None, victim: Worker | None) -> None:
        """Run the move again and again, each time to one call further, until it ends."""
        last = 0
        while True:
            last += self.stride if last < SINGLE_STEPS else last // 4
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
            if victim is not None and self._new and victim.orders.name not in self._killed:
                self._killed.add(victim.orders.name)
                self.seen["killed workers"] += 1
                if problem := victim.kill():
                    self.problems.append(f"{victim.orders.name}: {problem}")

    def _run_move(self, killer: Killer) -> bool:
        """Run the move; return whether it has ended."""
        made = Pass(0.0)
        with open_store(self.source.url) as source, open_store(self.target.url) as target:
            move = Move(
                killer.guards(source),
                killer.guards(target),
                self._scope,
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
            rows = store.list_checkpoints(*self._scope)
        return {row["partition_id"] for row in rows} == set(PARTITIONS)

    def _more(self) -> list[Line]:
        lines = list(self._lines.of(self._reading.more()))
        self._judge.read(lines)
        return lines

    def _wait_for_begun(self, workers: Iterable[Worker]) -> None:
        left, end = {worker.orders.name: worker for worker in workers}, time.monotonic() + 30
        while left and time.monotonic() < end:
            time.sleep(EVERY)
            for line in self._more():
                if line.what == "begun" and line.who in left:
                    left.pop(line.who).has_begun = True

    def _finish(self) -> None:
        """Wait until the target's worker has processed everything, and stop it."""
        last, left = self.publishing.last(), set(PARTITIONS)
        if not self._new:
            self._new.append(self._start(self.target))
        worker, end = self._new[0], time.monotonic() + REST_SECONDS
        self._more()
        while left and time.monotonic() < end:
            time.sleep(EVERY)
            self._more()
            left = {id_ for id_ in PARTITIONS if last[id_] not in self._judge.done[id_]}
        if left:
            self.problems.append(f"the rest of {sorted(left)} is not done after {REST_SECONDS} s")
        worker.has_begun = True
        self._end(worker)
        self._journal.write("listing")
        with open_store(self.target.url) as store:
            rows = store.list_checkpoints(*self._scope)
        found = {row["partition_id"]: Position.of(row).sequence_number for row in rows}
        for id_ in PARTITIONS:
            number = found.get(id_)
            self._journal.write("listed", id_, 0, NOTHING if number is None else number)
            self._journal.write("claimed", id_, 0, NOTHING if number is None else number)
        self._more()
        if found != last:
            self.problems.append(f"{found} is saved at the target, and the hub ends at {last}")

    def _outcome(self) -> Counter[str]:
        last = self.publishing.last()
        self.seen["rounds"] = 1
        self.seen["events"] = sum(number + 1 for number in last.values())
        self.seen["lost events"] = len(lost(self._judge.done, last))
        self.seen["taken" if not self.waits else "waited for"] = 1
        # At a loss, a pool goes on with what it has begun, which is not saved then.
        pools = {name for name, each in self._orders.items() if each.way == "pool"}
        excused = set[str]() if self.waits else pools
        twice, by_move = twice_done(self._reading.lines, self._orders, self.source.url, excused)
        self.seen["events done twice"] = twice
        self.seen["done twice by the move"] = by_move
        self.problems += self._judge.problems
        return self.seen


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


def run_moves(
    source: Backend, target: Backend, seed: int, rounds: int, stride: int = 1
) -> Counter[str]:
    """Run the rounds on two running backends; return what occurred, by kind.

    Args:
        source: where the group is.
        target: where it goes.
        seed: of the first round; each has the next one.
        rounds: number of rounds.
        stride: number of calls by which the first runs of a move differ; 1: each call is met.

    Raises:
        AssertionError: a round failed; the message has its seed.
    """
    seen: Counter[str] = Counter()
    for number in range(seed, seed + rounds):
        folder = Path(tempfile.mkdtemp(prefix="move-chaos-"))
        with ExitStack() as opened:
            here, there = (opened.enter_context(each.place()) for each in (source, target))
            hub = opened.enter_context(LocalHub({HUB: len(PARTITIONS)}))
            publishing = opened.enter_context(Publishing(hub, HUB, random.Random(number)))
            nursery = opened.enter_context(Nursery())
            chance = random.Random(number)
            running = MoveRound(chance, here, there, hub, publishing, nursery, folder, stride)
            outcome = running.run()
        what = "\n  ".join(running.problems)
        assert not what, f"round {number}: journal and logs are in {folder}\n  {what}"
        for kind in ("lost events", "done twice by the move"):
            assert not outcome[kind], f"round {number}: {outcome[kind]} {kind}; see {folder}"
        shutil.rmtree(folder)
        seen.update(outcome)
        seen.setdefault("lost events", 0)
        seen.setdefault("done twice by the move", 0)
    return seen
