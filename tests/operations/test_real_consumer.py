"""Lag and replicas against the events that a real consumer then gets, here and by KEDA's formula.

Ten cases on a local hub with stored checkpoints, as `docs/how-to/autoscale.md` shows them.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub import LoadBalancingStrategy as Strategy

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import Position, change_positions
from eventhub_checkpoints.operations.lag import lag
from eventhub_checkpoints.operations.scale import TARGET, demand
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import SqlCheckpointStore
from keda_formula import THRESHOLD, Partition, metric, replicas
from waiting import LIMIT

# The client leaves the sockets of closed receivers to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

PAGE = Path(__file__).parents[2] / "docs/how-to/autoscale.md"
EVENT, LAST_EVENT = b"event", b"last"


@dataclass(frozen=True)
class Fill:
    """Events of a partition, and what is stored.

    Attributes:
        processed: events before the checkpoint; None if there is no checkpoint.
        behind: events after it.
        expired: events, from the first one ever, that are not retained any more.
        foreign_checkpoint: stored instead, as that of a hub that was deleted.
    """

    processed: int | None
    behind: int
    expired: int = 0
    foreign_checkpoint: int | None = None


class Case(NamedTuple):
    """A situation, what KEDA's formula and ours make of it, and the events that are left."""

    name: str
    partitions: Sequence[Fill]
    keda: int
    ours: int
    received: int


CASES = [
    Case("5 events behind", [Fill(95, 5)], 5, 5, 5),
    Case("100 events behind in each of 4 partitions", [Fill(100, 100)] * 4, 256, 256, 400),
    Case("nothing was ever sent", [Fill(None, 0)], 0, 0, 0),
    Case("a lone event at number 7, no checkpoint", [Fill(None, 8, expired=7)], 0, 1, 1),
    Case("99 events behind in the only partition", [Fill(1, 99)], 99, 64, 99),
    Case("one of 4 partitions has 990 events", [Fill(10, 990), *[Fill(10, 0)] * 3], 256, 64, 990),
    Case(
        "in 4 partitions, 990 of 1,000 events behind have expired",
        [Fill(10, 1000, expired=1000)] * 4,
        256,
        40,
        40,
    ),
    Case("all events behind have expired", [Fill(5, 15, expired=20)], 15, 0, 0),
    Case(
        "the hub was re-created, checkpoint 5,000",
        [Fill(None, 10, foreign_checkpoint=5000)],
        0,
        10,
        10,
    ),
    Case(
        "the same with 4 partitions, checkpoint 1,000,000",
        [Fill(None, 10, foreign_checkpoint=1_000_000)] * 4,
        256,
        40,
        40,
    ),
]


class Site:
    """A hub of one case, and the store of its consumer."""

    def __init__(self, hub: LocalHub, name: str, store: SqlCheckpointStore, case: Case) -> None:
        self.hub, self.name, self.store, self.case = hub, name, store, case
        self.text = hub.connection_string(name)
        self.address = HubAddress.from_connection_string(self.text)
        for partition_id, fill in zip(hub.partition_ids(name), case.partitions, strict=True):
            self.fill(partition_id, fill)

    def fill(self, partition_id: str, fill: Fill) -> None:
        """Publish the events of a partition, and store its checkpoint."""
        if fill.processed is not None:
            self.hub.publish(self.name, partition_id, [EVENT] * fill.processed)
            properties = self.hub.partition_properties(self.name, partition_id)
            self.save(partition_id, properties.last_sequence_number, properties.last_offset)
        if fill.foreign_checkpoint is not None:
            self.save(partition_id, fill.foreign_checkpoint, str(fill.foreign_checkpoint * 100))
        self.hub.publish(self.name, partition_id, [EVENT] * fill.behind)
        if fill.expired:
            self.hub.trim(self.name, partition_id, fill.expired)

    def save(self, partition_id: str, number: int, offset: str) -> None:
        """Store a checkpoint."""
        row = {"partition_id": partition_id, "sequence_number": number, "offset": offset}
        self.store.update_checkpoint({**self.address.scope().as_dict(), **row})

    def by_keda(self) -> int:
        """Return KEDA's metric from what the hub and the store have."""
        rows = self.store.list_checkpoints(*self.address.scope())
        numbers = {row["partition_id"]: row["sequence_number"] for row in rows}
        partitions = []
        for partition_id in self.hub.partition_ids(self.name):
            found = self.hub.partition_properties(self.name, partition_id)
            first, last = found.first_sequence_number, found.last_sequence_number
            partitions.append(Partition(first, last, numbers.get(partition_id)))
        return metric(partitions)

    def reset_if_recreated(self) -> None:
        """Let the group begin anew, as its checkpoints belong to a hub that was deleted."""
        targets = {
            partition_id: Position(-1, "-1")
            for partition_id, fill in zip(
                self.hub.partition_ids(self.name), self.case.partitions, strict=True
            )
            if fill.foreign_checkpoint is not None
        }
        change_positions(self.store, self.address.scope(), targets, keep=lambda _: None)

    def consume(self) -> int:
        """Run a consumer until it has all events; return how many were there before it ran."""
        partition_ids = self.hub.partition_ids(self.name)
        for partition_id in partition_ids:
            self.hub.publish(self.name, partition_id, [LAST_EVENT])
        received, ended = 0, set[str]()
        done = threading.Event()

        def process(context, events) -> None:
            nonlocal received
            bodies = [event.body_as_str().encode() for event in events]
            received += bodies.count(EVENT)
            context.update_checkpoint(events[-1])
            if LAST_EVENT in bodies:
                ended.add(context.partition_id)
            if len(ended) == len(partition_ids):
                done.set()

        client = EventHubConsumerClient.from_connection_string(
            self.text,
            "$Default",
            checkpoint_store=self.store,
            load_balancing_interval=0.5,
            load_balancing_strategy=Strategy.GREEDY,
            socket_timeout=0.02,
        )
        receiving = threading.Thread(
            target=client.receive_batch,
            args=(process,),
            kwargs={"starting_position": "-1", "max_batch_size": 300},
        )
        receiving.start()
        try:
            assert done.wait(LIMIT)
        finally:
            client.close()
            receiving.join()
        return received


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    url = f"sqlite:///{tmp_path_factory.mktemp('cases')}/checkpoints.db"
    hubs = {f"case-{number}": len(case.partitions) for number, case in enumerate(CASES)}
    with ExitStack() as stack:
        hub = stack.enter_context(LocalHub(hubs))
        made = []
        for name, case in zip(hubs, CASES, strict=True):
            store = stack.enter_context(SqlCheckpointStore(url, create_tables=True))
            made.append(Site(hub, name, store, case))
        yield made


def test_the_lag_is_the_number_of_events_that_a_consumer_gets(sites) -> None:
    assert TARGET == THRESHOLD

    def run(site: Site) -> tuple[int, int, int | None, int]:
        by_keda, found = site.by_keda(), lag(site.store, site.address)
        site.reset_if_recreated()
        return by_keda, demand([found]).scale, found.lag, site.consume()

    with ThreadPoolExecutor(len(sites)) as pool:
        results = dict(zip([case.name for case in CASES], pool.map(run, sites), strict=True))
    assert results == {
        case.name: (case.keda, case.ours, case.received, case.received) for case in CASES
    }


def test_the_page_shows_the_ten_cases() -> None:
    rows = [
        f"| {case.name} | {case.received} | {case.keda} | {replicas(case.keda)} "
        f"| {case.ours} | {replicas(case.ours)} |"
        for case in CASES
    ]
    assert len(rows) == 10
    assert "\n".join(rows) in PAGE.read_text("utf-8")
