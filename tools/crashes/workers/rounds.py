"""Running round of workers on one hub: who works, what the journal has so far, what is saved."""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crashes.harness import Result
from crashes.workers.diary import PARTITIONS
from crashes.workers.journal import NOTHING, Journal, Line, Reading
from crashes.workers.judge import Judge
from crashes.workers.nursery import Nursery
from crashes.workers.orders import Orders
from crashes.workers.process import Worker
from crashes.workers.publishing import Publishing
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.records import Scope

FIRST_EVENT_SECONDS = 15.0
REST_SECONDS = 90.0
POLL_SECONDS = 0.05
PROGRESS = ("done", "read", "saved")
OF_PARTITIONS = {partition: partition for partition in PARTITIONS}


@dataclass
class WorkersRound:
    """Running round of workers.

    Attributes:
        hub: server of the hub.
        name: of the hub.
        publishing: publisher of its events.
        nursery: starts the workers.
        folder: for the journal and the logs.
        seen: what occurred, by kind.
        problems: descriptions of problems other than those that the judge finds.
        orders: of every worker that was started, by its name.
        judge: knows the journal as far as it was read.
    """

    hub: LocalHub
    name: str
    publishing: Publishing
    nursery: Nursery
    folder: Path
    seen: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    orders: dict[str, Orders] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal", "parent")
        self.reading = Reading(self.folder / "journal")
        self.judge = Judge(self.orders)
        self.scope = Scope(f"{self.hub.host}:{self.hub.port}", self.name, "$Default")

    def start(self, orders: Orders, url: str) -> Worker:
        """Start a worker whose store has this URL."""
        orders = replace(
            orders,
            connection=self.hub.connection_string(self.name),
            url=url,
            journal=str(self.folder / "journal"),
        )
        self.orders[orders.name] = orders
        return Worker(orders, self.folder, self.nursery)

    def stop(self, worker: Worker) -> None:
        """Stop a worker gracefully."""
        self.note(worker, worker.end())

    def note(self, worker: Worker, problem: str) -> None:
        """Record how a worker has ended, if that is a problem."""
        if problem:
            self.problems.append(f"{worker.orders.name}, {worker.orders.kind}: {problem}")

    def more(self) -> Sequence[Line]:
        """Have the judge read what the journal has now, and return that."""
        lines = self.reading.more()
        self.judge.read(lines)
        return lines

    def wait_until(
        self,
        is_reached: Callable[[Sequence[Line]], bool],
        seconds: float | None = None,
        *,
        goes_on: bool = False,
    ) -> bool:
        """Read the journal until something is reached; return whether it was in time.

        Args:
            is_reached: is given the lines since the last call.
            seconds: how long to wait; None: `REST_SECONDS`.
            goes_on: whether each event that is processed gives as much time again.
        """
        seconds = REST_SECONDS if seconds is None else seconds
        end = time.monotonic() + seconds
        while not is_reached(lines := self.more()):
            if goes_on and any(line.what in PROGRESS for line in lines):
                end = time.monotonic() + seconds
            if time.monotonic() > end:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def wait_for_begun(self, *workers: Worker) -> None:
        """Wait for the first event of each worker, for a limited time: there may be none left."""
        left = {worker.orders.name: worker for worker in workers}

        def all_have(lines: Sequence[Line]) -> bool:
            for line in lines:
                if line.what == "begun" and line.who in left:
                    left.pop(line.who).has_begun = True
            return not left

        self.wait_until(all_have, FIRST_EVENT_SECONDS)

    def saved(
        self, store: Any, group: str = "$Default", names: Mapping[str, str] = OF_PARTITIONS
    ) -> dict[str, int]:
        """Record and return the positions of a group, under these names of its partitions."""
        self.journal.write("listing")
        rows = store.list_checkpoints(*self.scope._replace(consumer_group=group))
        found = {row["partition_id"]: row["sequence_number"] for row in rows}
        for partition, name in names.items():
            self.journal.write("listed", name, 0, found.get(partition, NOTHING))
        return found

    def end(self, found: Mapping[str, int]) -> None:
        """Check that these positions, which nobody is going to change, are those of the hub's end.

        The judge compares what each session has done with where the next one begins: here.
        """
        last = self.publishing.last()
        for partition in PARTITIONS:
            self.journal.write("claimed", partition, 0, found.get(partition, NOTHING))
        if found != last:
            self.problems.append(f"{found} is saved, and the hub ends at {last}")

    def judged(self) -> None:
        """Add what the judge has counted and found, and the events that nobody has processed."""
        last = self.publishing.last()
        self.more()
        if missing := self.judge.lost(last):
            self.problems.append(f"{len(missing)} events are lost, as {missing[:3]}")
        self.seen += self.judge.counts
        self.seen["events"] += sum(number + 1 for number in last.values())
        self.problems += self.judge.problems


def in_folder(run: Callable[[Path], Result]) -> Result:
    """Run a round in a folder of its own, which is kept if something went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="crashes-"))
    result = run(folder)
    if result.problems:
        return replace(result, problems=[*result.problems, f"journal and logs are in {folder}"])
    shutil.rmtree(folder)
    return result
