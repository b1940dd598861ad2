"""One round: a hub's events, workers that come and go, and one that processes the rest."""

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from crashes.harness import Result
from crashes.processing.plan import FREEZE, HUB_FAULTS, Fault, Life, Member, Plan
from crashes.processing.storage import Clustered, Storage
from crashes.processing.stream import GROUP, READS, Stream, Streaming
from crashes.workers.claimed import Replay, way_of
from crashes.workers.diary import PARTITIONS
from crashes.workers.journal import NOTHING, Line
from crashes.workers.nursery import Nursery
from crashes.workers.orders import Orders
from crashes.workers.process import Worker
from crashes.workers.publishing import Publishing
from crashes.workers.rounds import OF_PARTITIONS, WorkersRound, in_folder
from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub

STREAM_SECONDS = 240.0
BUSY = "com.microsoft:server-busy"
HUB_NUMBERS = itertools.count()
"""A round that is run again has another hub, and so no checkpoints."""


@dataclass(frozen=True)
class Outcome:
    """What the report is made of.

    Attributes:
        store: of the round.
        replays: of its sessions.
        ways: what workers of a client and way of saving have done, by kind.
    """

    store: str
    replays: Sequence[Replay] = ()
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


@dataclass(kw_only=True)
class Round(WorkersRound):
    """Running round.

    Attributes:
        plan: what happens.
        storage: where positions are saved.
        store: a store on it.
    """

    plan: Plan
    storage: Storage
    store: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        self._streaming: Streaming | None = None

    def run(self) -> Result:
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
        connection = self.hub.connection_string(self.name)
        return Streaming(connection, self.storage.shown, self.folder)

    def _disturb(self, stream: Stream, streaming: Streaming) -> None:
        """Kill a stream as soon as it has read something, and start it again."""
        if stream.is_killed:
            self.wait_until(lambda _: any(self.judge.done[one] for one in READS.values()))
            self.seen["streams killed"] += 1
            streaming.kill(stream)

    def _finish_stream(self, streaming: Streaming) -> None:
        """Let a stream read what is left, and check what it has published."""
        last = self.publishing.last()
        expected = {READS[one]: number for one, number in last.items()}
        known = self.judge.known
        self.wait_until(
            lambda _: (
                streaming.ended() is not None
                or all(known[one] == number for one, number in expected.items())
            ),
            STREAM_SECONDS,
        )
        if problem := streaming.end():
            self.problems.append(problem)
        self.more()
        if missing := self.judge.lost(expected):
            self.problems.append(f"the stream has not read {len(missing)}, as {missing[:3]}")
        found = self.saved(self.store, GROUP, READS)
        if found != last:
            self.problems.append(f"{found} is published, and the hub ends at {last}")

    def _start(self, orders: Orders) -> Worker:
        self.seen["clocks off"] += bool(orders.clock)
        return self.start(orders, self.storage.shown)

    def _live(self, life: Life) -> None:
        """Run some workers, which share and take from each other, until they end."""
        workers: list[tuple[Member, Worker]] = []
        for member in life.members:
            workers.append((member, self._start(member.orders)))
            if member.waits:
                self.wait_for_begun(workers[-1][1])
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
        elif isinstance(self.storage, Clustered):
            self._fail_over(self.storage)
        else:
            self.seen["outages"] += 1
            with self.storage.having(fault.kind):
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
                self.journal.write("survived", partition, number, position, etag=etag)

        if cluster.forgets:
            cluster.fail_over(look)
            self.journal.write("succeeded", claim=nodes.index(cluster.primary))
        else:
            cluster.fail_over()

    def _rows(self, store: Any) -> Iterator[tuple[str, int, str]]:
        """Yield the partitions of the journal with their positions and etags on a store."""
        groups = {"$Default": OF_PARTITIONS}
        if self._streaming:
            groups[GROUP] = READS
        for group, names in groups.items():
            scope = self.scope._replace(consumer_group=group)
            found = {row["partition_id"]: row for row in store.list_checkpoints(*scope)}
            owned = {row["partition_id"]: row["etag"] for row in store.list_ownership(*scope)}
            for one, name in names.items():
                number = found[one]["sequence_number"] if one in found else NOTHING
                yield name, number, owned.get(one, "none")

    def _have_at_the_hub(self, fault: Fault) -> None:
        hub = self.hub
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
        self.more()
        self.seen["re-creations"] += 1
        self.seen["events"] += sum(number + 1 for number in self.publishing.last().values())
        self.hub.recreate(self.name)
        self.store.delete_scope(*self.scope)
        self.journal.write("recreated")
        for partition in PARTITIONS:
            self.publishing.publish(partition, 1)

    def _end(self, member: Member, worker: Worker) -> None:
        self.seen["stops"] += member.end == "stop"
        self.note(worker, worker.kill() if member.end == "kill" else worker.end())

    def _look(self) -> dict[str, int]:
        """Record what is saved and who owns what now, and return the positions."""
        for row in self.store.list_ownership(*self.scope):
            self.journal.write("stored", row["partition_id"], etag=row["etag"])
        if self._streaming:
            self.saved(self.store, GROUP, READS)
        return self.saved(self.store)

    def _finish(self) -> None:
        """Let an undisturbed worker process what is left, and check the end."""
        last, left = self.publishing.last(), set(PARTITIONS)
        worker = self._start(self.plan.last)

        def is_over(lines: Sequence[Line]) -> bool:
            left.difference_update(
                line.partition for line in lines if is_at_the_end(line, worker, last)
            )
            return not left or worker.ended() is not None

        self.wait_until(is_over, goes_on=True)
        if left:
            self.problems.append(f"the last worker does not process the rest of {sorted(left)}")
        worker.has_begun = True
        self.stop(worker)
        self.end(self._look())

    def _outcome(self) -> Result:
        self.judged()
        for orders in self.orders.values():
            self.judge.ways[way_of(orders.kind)]["rounds"] = 1
        if self._streaming:
            self.judge.ways[GROUP]["rounds"] = 1
        outcome = Outcome(self.plan.store, self.judge.replays, self.judge.ways)
        return Result(self.seen, self.problems, outcome)


def is_at_the_end(line: Line, worker: Worker, last: Mapping[str, int]) -> bool:
    """Return whether a line shows that a worker has finished a partition.

    A client that is closed cancels its handlers, and so what the official store is writing.
    """
    finished = "saved" if worker.orders.way == "official" else "done"
    is_position = line.who == worker.orders.name and line.what in ("claimed", finished)
    return is_position and line.number == last[line.partition]


def run_round(stage: Stage, plan: Plan) -> Result:
    """Run the round of a plan; keep its files if something went wrong."""
    return in_folder(partial(run_in, stage, plan))


def run_in(stage: Stage, plan: Plan, folder: Path) -> Result:
    """Run the round of a plan in a folder."""
    hub, name = stage.hub, f"hub-{plan.seed}-{next(HUB_NUMBERS)}"
    with ExitStack() as opened:
        hub.create(name, len(PARTITIONS))
        opened.callback(hub.delete, name)
        return Round(
            hub=hub,
            name=name,
            publishing=opened.enter_context(Publishing(hub, name, random.Random(plan.seed))),
            nursery=stage.nursery,
            folder=folder,
            plan=plan,
            storage=stage.storage,
            store=opened.enter_context(open_store(stage.storage.url)),
        ).run()
