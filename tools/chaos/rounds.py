"""One round: a hub's events, workers that come and go, and one that processes the rest."""

import itertools
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos.claimed import Replay, way_of
from chaos.diary import PARTITIONS
from chaos.journal import NOTHING, Journal, Line, Reading
from chaos.judge import Judge
from chaos.nursery import Nursery
from chaos.orders import Orders
from chaos.plan import FREEZE, HUB_FAULTS, Fault, Life, Member, Plan
from chaos.process import Worker
from chaos.publishing import Publishing
from chaos.storage import Clustered, Storage
from chaos.streaming import GROUP, READS, Stream, Streaming
from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub

FIRST_EVENT_SECONDS = 15.0
REST_SECONDS = 90.0
STREAM_SECONDS = 240.0
POLL_SECONDS = 0.05
BUSY = "com.microsoft:server-busy"
HUB_NUMBERS = itertools.count()
"""A round that is run again has another hub, and so no checkpoints."""


@dataclass(frozen=True)
class Outcome:
    """Result of a round.

    Attributes:
        seen: what occurred, by kind; `lost` are events that nobody has done.
        replays: of its sessions.
        problems: descriptions of broken rules.
        ways: what workers of a client and way of saving have done, by kind.
    """

    seen: Counter[str]
    replays: Sequence[Replay] = ()
    problems: Sequence[str] = ()
    ways: Mapping[str, Counter[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """What the rounds on a store share.

    Attributes:
        storage: where positions are saved.
        hub: server of their hubs.
        nursery: starts their workers.
    """

    storage: Storage
    hub: LocalHub
    nursery: Nursery


@dataclass
class Round:
    """Running round.

    Attributes:
        plan: what happens.
        stage: where it happens.
        store: a store on its storage.
        publishing: publisher of events.
        name: of the hub.
        folder: for the journal and the logs.
        seen: what occurred, by kind.
        problems: descriptions of problems other than those that the judge finds.
    """

    plan: Plan
    stage: Stage
    store: Any
    publishing: Publishing
    name: str
    folder: Path
    seen: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        path = self.folder / "journal"
        self._journal = Journal(path, "parent")
        self._reading = Reading(path)
        self._orders: dict[str, Orders] = {}
        self._judge = Judge(self._orders)
        self._streaming: Streaming | None = None
        self._scope = f"{self.stage.hub.host}:{self.stage.hub.port}", self.name, "$Default"

    def run(self) -> Outcome:
        """Let workers come and go, and one process the rest."""
        with ExitStack() as opened:
            if self.plan.stream:
                self._streaming = opened.enter_context(self._stream())
            for number, life in enumerate(self.plan.lives):
                self._live(life)
                if life.recreated:
                    self._recreate()
                if number == 0 and self._streaming and self.plan.stream:
                    self._disturb(self.plan.stream, self._streaming)
            self.publishing.stop()
            self._finish()
            if self._streaming:
                self._finish_stream(self._streaming)
        return self._outcome()

    def _stream(self) -> Streaming:
        self.seen["streams"] += 1
        connection = self.stage.hub.connection_string(self.name)
        return Streaming(connection, self.stage.storage.shown, self.folder)

    def _disturb(self, stream: Stream, streaming: Streaming) -> None:
        """Kill a stream as soon as it has read something, and start it again."""
        if stream.is_killed:
            self._wait_until(lambda: any(self._judge.done[one] for one in READS.values()))
            self.seen["streams killed"] += 1
            streaming.kill(stream)

    def _wait_until(self, predicate: Callable[[], bool], seconds: float = REST_SECONDS) -> None:
        """Read the journal until something is true, for a limited time."""
        end = time.monotonic() + seconds
        while not predicate() and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            self._more()

    def _finish_stream(self, streaming: Streaming) -> None:
        """Let a stream read what is left, and check what it has published."""
        last = self.publishing.last()
        expected = {READS[one]: number for one, number in last.items()}
        known = self._judge.known
        self._wait_until(
            lambda: (
                streaming.ended() is not None
                or all(known[one] == number for one, number in expected.items())
            ),
            STREAM_SECONDS,
        )
        if problem := streaming.end():
            self.problems.append(problem)
        self._more()
        if missing := self._judge.lost(expected):
            self.problems.append(f"the stream has not read {len(missing)}, as {missing[:3]}")
        found = self._saved(GROUP, READS)
        if found != last:
            self.problems.append(f"{found} is published, and the hub ends at {last}")

    def _start(self, orders: Orders) -> Worker:
        orders = replace(
            orders,
            connection=self.stage.hub.connection_string(self.name),
            url=self.stage.storage.shown,
            journal=str(self.folder / "journal"),
        )
        self._orders[orders.name] = orders
        self.seen["clocks off"] += bool(orders.clock)
        return Worker(orders, self.folder, self.stage.nursery)

    def _live(self, life: Life) -> None:
        """Run some workers, which share and take from each other, until they end."""
        workers: list[tuple[Member, Worker]] = []
        for member in life.members:
            workers.append((member, self._start(member.orders)))
            if member.waits:
                self._wait_for_begun(workers[-1][1])
        for fault in life.faults:
            self._have(fault, [worker for _, worker in workers])
        time.sleep(life.seconds)
        while workers:
            member, worker = workers.pop()
            self._end(member, worker)
            # The other worker may take over, or may not get that far.
            time.sleep(member.pause if workers else 0)
        self._look()

    def _have(self, fault: Fault, workers: Sequence[Worker]) -> None:
        """Have a fault, for as long as it lasts."""
        if fault.kind == FREEZE:
            if workers:
                self.seen["pauses"] += 1
                workers[0].freeze()
                time.sleep(fault.seconds)
                workers[0].thaw()
        elif fault.kind in HUB_FAULTS:
            self.seen["hub faults"] += 1
            self._have_at_the_hub(fault)
        elif isinstance(self.stage.storage, Clustered):
            self._fail_over(self.stage.storage)
        else:
            self.seen["outages"] += 1
            with self.stage.storage.having(fault.kind):
                time.sleep(fault.seconds)

    def _fail_over(self, storage: Clustered) -> None:
        """End the primary; where its successor may have forgotten something, record what it has."""
        self.seen["fail-overs"] += 1
        cluster = storage.cluster
        nodes = list(cluster.nodes)

        def look() -> None:
            survived = []
            for node in cluster.survivors:
                with open_store(storage.url_of(node)) as store:
                    survived += [(nodes.index(node), *row) for row in self._rows(store)]
            # An answer may have arrived just before the primary's death, and be recorded late.
            for number, partition, position, etag in survived:
                self._journal.write("survived", partition, number, position, etag=etag)

        if cluster.forgets:
            cluster.fail_over(look)
            self._journal.write("succeeded", claim=nodes.index(cluster.primary))
        else:
            cluster.fail_over()

    def _rows(self, store: Any) -> Iterator[tuple[str, int, str]]:
        """Yield the partitions of the journal with their positions and etags on a store."""
        groups = {"$Default": {one: one for one in PARTITIONS}}
        if self._streaming:
            groups[GROUP] = READS
        for group, names in groups.items():
            scope = *self._scope[:2], group
            found = {row["partition_id"]: row for row in store.list_checkpoints(*scope)}
            owned = {row["partition_id"]: row["etag"] for row in store.list_ownership(*scope)}
            for one, name in names.items():
                number = found[one]["sequence_number"] if one in found else NOTHING
                yield name, number, owned.get(one, "none")

    def _have_at_the_hub(self, fault: Fault) -> None:
        hub = self.stage.hub
        if fault.kind == "connections lost":
            hub.drop_connections()
        elif fault.kind == "connections refused":
            hub.refuse_connections()
            hub.drop_connections()
            time.sleep(fault.seconds)
            hub.refuse_connections(False)
        elif fault.kind == "hub busy":
            hub.refuse_links(2, BUSY)
            hub.detach_receivers(self.name, condition=BUSY)
            time.sleep(fault.seconds)
            hub.refuse_links(0, BUSY)
        else:
            hub.delay(fault.seconds / 20)
            time.sleep(fault.seconds)
            hub.delay(0)

    def _recreate(self) -> None:
        """Create the hub again, and remove the positions, as its operator has to do."""
        self._more()
        self.seen["re-creations"] += 1
        self.seen["events"] += sum(number + 1 for number in self.publishing.last().values())
        self.stage.hub.recreate(self.name)
        self.store.delete_scope(*self._scope)
        self._journal.write("recreated")
        for partition in PARTITIONS:
            self.publishing.publish(partition, 1)

    def _end(self, member: Member, worker: Worker) -> None:
        self.seen["stops"] += member.end == "stop"
        problem = worker.kill() if member.end == "kill" else worker.end()
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
        """Record what is saved and who owns what now, and return the positions."""
        for row in self.store.list_ownership(*self._scope):
            self._journal.write("stored", row["partition_id"], etag=row["etag"])
        if self._streaming:
            self._saved(GROUP, READS)
        return self._saved("$Default", {one: one for one in PARTITIONS})

    def _saved(self, group: str, names: Mapping[str, str]) -> dict[str, int]:
        """Record the positions of a group, under these names of its partitions."""
        self._journal.write("listing")
        rows = self.store.list_checkpoints(*self._scope[:2], group)
        found = {row["partition_id"]: row["sequence_number"] for row in rows}
        for partition, name in names.items():
            self._journal.write("listed", name, 0, found.get(partition, NOTHING))
        return found

    def _finish(self) -> None:
        """Let an undisturbed worker process what is left, and check the end."""
        last = self.publishing.last()
        worker = self._start(self.plan.last)
        end, left = time.monotonic() + REST_SECONDS, set(PARTITIONS)
        while left and worker.ended() is None and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            for line in self._more():
                if line.what in ("done", "saved"):
                    end = time.monotonic() + REST_SECONDS
                if is_at_the_end(line, worker, last):
                    left.discard(line.partition)
        if left:
            waited = f"the last worker has ended, or was idle for {REST_SECONDS:g} s"
            self.problems.append(f"the rest of {sorted(left)} is not done: {waited}")
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
        if missing := self._judge.lost(last):
            self.problems.append(f"{len(missing)} events are lost, as {missing[:3]}")
        self.seen += self._judge.counts
        self.seen["events"] += sum(number + 1 for number in last.values())
        for orders in self._orders.values():
            self._judge.ways[way_of(orders.kind)]["rounds"] = 1
        if self._streaming:
            self._judge.ways[GROUP]["rounds"] = 1
        problems = [*self.problems, *self._judge.problems]
        return Outcome(self.seen, self._judge.replays, problems, self._judge.ways)


def is_at_the_end(line: Line, worker: Worker, last: Mapping[str, int]) -> bool:
    """Return whether a line shows that a worker has finished a partition.

    A client that is closed cancels its handlers, and so what the official store is writing.
    """
    finished = "saved" if worker.orders.way == "official" else "done"
    is_position = line.who == worker.orders.name and line.what in ("claimed", finished)
    return is_position and line.number == last[line.partition]


def run_round(stage: Stage, plan: Plan) -> Outcome:
    """Run the round of a plan; keep its files if something went wrong."""
    hub = stage.hub
    name = f"hub-{plan.seed}-{next(HUB_NUMBERS)}"
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    with ExitStack() as opened:
        hub.create(name, len(PARTITIONS))
        opened.callback(hub.delete, name)
        store = opened.enter_context(open_store(stage.storage.url))
        publishing = opened.enter_context(Publishing(hub, name, random.Random(plan.seed)))
        outcome = Round(plan, stage, store, publishing, name, folder).run()
    if outcome.problems:
        return replace(outcome, problems=[*outcome.problems, f"journal and logs are in {folder}"])
    shutil.rmtree(folder)
    return outcome
