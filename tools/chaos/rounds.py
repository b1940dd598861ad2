"""One round: a hub's events, workers that come and go, and one that processes the rest."""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos.claimed import Replay
from chaos.diary import PARTITIONS
from chaos.journal import NOTHING, Journal, Line, Reading
from chaos.judge import Judge, lost
from chaos.orders import Orders, chosen_orders
from chaos.process import Worker
from chaos.publishing import Publishing
from chaos.storage import Storage
from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub

FIRST_EVENT_SECONDS = 6.0
REST_SECONDS = 90.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Outcome:
    """Result of a round.

    Attributes:
        seen: what occurred, by kind; `lost events` are events that nobody has done.
        replays: of its sessions.
        problems: descriptions of broken rules.
    """

    seen: Counter[str]
    replays: Sequence[Replay] = ()
    problems: Sequence[str] = ()


@dataclass
class Round:
    """Running round.

    Attributes:
        chance: decides what happens.
        storage: where positions are saved.
        store: a store on it.
        publishing: publisher of events.
        hub: hub of the events.
        name: of the hub.
        folder: for the journal and the logs.
        longest_outage: maximum seconds of one outage of the storage.
        seen: what occurred, by kind.
        problems: descriptions of problems other than those that the judge finds.
    """

    chance: random.Random
    storage: Storage
    store: Any
    publishing: Publishing
    hub: LocalHub
    name: str
    folder: Path
    longest_outage: float
    seen: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        path = self.folder / "journal"
        self._journal = Journal(path, "parent")
        self._reading = Reading(path)
        self._orders: dict[str, Orders] = {}
        self._judge = Judge(self._orders)

    def run(self) -> Outcome:
        """Let workers come and go, and one process the rest."""
        for _ in range(self.chance.randint(2, 4)):
            self._live()
        self.publishing.stop()
        self._finish()
        return self._outcome()

    def _start(self, **changes: Any) -> Worker:
        places = {
            "connection": self.hub.connection_string(self.name),
            "url": self.storage.shown,
            "journal": str(self.folder / "journal"),
        }
        orders = chosen_orders(self.chance, f"worker-{len(self._orders)}", **places)
        orders = replace(orders, **changes)
        self._orders[orders.name] = orders
        return Worker(orders, self.folder)

    def _live(self) -> None:
        """Run one worker, or two that share and take from each other, until they end."""
        chance = self.chance
        workers = [self._start()]
        if chance.random() < 0.9:
            self._wait_for_begun(workers[0])
        if chance.random() < 0.3:
            workers.append(self._start())
            if chance.random() < 0.8:
                self._wait_for_begun(workers[1])
        if chance.random() < 0.2:
            self.seen["lost connections"] += 1
            self.hub.drop_connections()
        has_outage = chance.random() < 0.25
        with self.storage.outage() if has_outage else nullcontext():
            self.seen["outages"] += has_outage
            longest = self.longest_outage
            time.sleep(chance.uniform(longest / 20, longest) if has_outage else 0)
            if has_outage and chance.random() < 0.3:
                self._end(workers.pop())
        time.sleep(chance.uniform(0, 1.5))
        chance.shuffle(workers)
        while workers:
            self._end(workers.pop())
            # The other worker may take over, or may not get that far.
            time.sleep(chance.choice((0, 0, 2.5)) if workers else 0)
        self._look()

    def _end(self, worker: Worker) -> None:
        if self.chance.random() < 0.7:
            self.seen["kills"] += 1
            problem = worker.kill()
        else:
            self.seen["graceful stops"] += 1
            problem = worker.end()
        if problem:
            self.problems.append(f"{worker.orders.name}, {worker.orders.kind}: {problem}")

    def _wait_for_begun(self, worker: Worker) -> None:
        """Wait for a worker's first event, for a limited time: there may be none left."""
        name, end = worker.orders.name, time.monotonic() + FIRST_EVENT_SECONDS
        while not worker.has_begun and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            found = (line.who == name and line.what == "begun" for line in self._more())
            worker.has_begun = any(found)

    def _more(self) -> Any:
        lines = self._reading.more()
        self._judge.read(lines)
        return lines

    def _look(self) -> dict[str, int]:
        """Record and return the positions that are saved now."""
        names = f"{self.hub.host}:{self.hub.port}", self.name, "$Default"
        self._journal.write("listing")
        rows = self.store.list_checkpoints(*names)
        found = {row["partition_id"]: row["sequence_number"] for row in rows}
        for partition in PARTITIONS:
            self._journal.write("listed", partition, 0, found.get(partition, NOTHING))
        return found

    def _finish(self) -> None:
        """Let an undisturbed worker process what is left, and check the end."""
        last = self.publishing.last()
        worker = self._start(failures=0.0, slowness=0.0, write_slowness=0.0)
        end, left = time.monotonic() + REST_SECONDS, set(PARTITIONS)
        while left and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            left -= {line.partition for line in self._more() if is_at_the_end(line, worker, last)}
        if left:
            self.problems.append(f"the rest of {sorted(left)} is not done after {REST_SECONDS} s")
        worker.has_begun = True
        if problem := worker.end():
            self.problems.append(f"{worker.orders.name}, {worker.orders.kind}: {problem}")
        found = self._look()
        for partition in PARTITIONS:
            self._journal.write("claimed", partition, 0, found.get(partition, NOTHING))
        if found != last:
            self.problems.append(f"{found} is saved, and the hub ends at {last}")

    def _outcome(self) -> Outcome:
        self._more()
        last = self.publishing.last()
        self.seen["rounds"] = 1
        self.seen["events"] = sum(number + 1 for number in last.values())
        self.seen["claims"] = len(self._judge.replays)
        self.seen["steals"] = self._judge.steals
        self.seen["lost events"] = len(lost(self._judge.done, last))
        return Outcome(self.seen, self._judge.replays, [*self.problems, *self._judge.problems])


def is_at_the_end(line: Line, worker: Worker, last: Mapping[str, int]) -> bool:
    """Return whether a line shows that a worker has finished a partition."""
    is_position = line.who == worker.orders.name and line.what in ("claimed", "done")
    return is_position and line.number == last[line.partition]


def run_round(hub: LocalHub, storage: Storage, seed: int, longest_outage: float) -> Outcome:
    """Run the round of a seed; keep its files if something went wrong."""
    chance, name = random.Random(seed), f"hub-{seed}"
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    with ExitStack() as opened:
        hub.create(name, len(PARTITIONS))
        opened.callback(hub.delete, name)
        store = opened.enter_context(open_store(storage.url))
        publishing = opened.enter_context(Publishing(hub, name, random.Random(seed)))
        running = Round(chance, storage, store, publishing, hub, name, folder, longest_outage)
        outcome = opened.enter_context(stopping(running)).run()
    if outcome.problems:
        return replace(outcome, problems=[*outcome.problems, f"journal and logs are in {folder}"])
    shutil.rmtree(folder)
    return outcome


@contextmanager
def stopping(running: Round) -> Iterator[Round]:
    """Stop publishing when a round is over, even if it failed."""
    try:
        yield running
    finally:
        running.publishing.stop()
