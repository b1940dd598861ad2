"""One round: many queries in a driver that is killed, then in one that reads to the end."""

import itertools
import pickle
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from backends import Backend
from backends.tables import TablesPlace
from crashes.drivers import driver
from crashes.harness import Result
from crashes.spark.cells import HUB, PARTITIONS, RECEIVE_PATHS, Cell, Death, Job
from crashes.spark.judge import Found, Numbers, Outcome, Written, judged
from eventhub_checkpoints.cli.demo.children import Child, ChildError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.spark import read_spark_checkpoint

DRIVER_SECONDS = 600
PACE_SECONDS = 1.0
RESULTS = "results"
COLUMNS = "part VARCHAR(9), number BIGINT, attempt INT, batch INT"


@dataclass(frozen=True)
class Query:
    """Query of a round: its cell, its database, and its job for the drivers."""

    cell: Cell
    place: TablesPlace
    job: Job

    def found(self) -> Found:
        """Return the contents of its database, bypassing the store."""
        # Positions first: a writer of both at once writes no position without its results.
        rows = self.place.rows("checkpoint")
        stored = {one: int(row["sequencenumber"]) for one, row in rows.items()}
        table = self.job.table
        results = self.place.execute(f"SELECT part, number, attempt, batch FROM {table}")
        return Found([Written(*row) for row in results], stored)

    def begin(self, stored: Numbers) -> Numbers:
        """Return the last events before the position where the next driver has to begin."""
        if self.cell.checkpoint == "deleted":
            return stored
        return read_spark_checkpoint(self.job.checkpoint).positions

    def again(self) -> Job:
        """Return the job for the next driver; delete Spark's checkpoint if the cell says so."""
        if self.cell.checkpoint == "deleted":
            shutil.rmtree(self.job.checkpoint)
        return replace(self.job, attempt=1, death=None)


class Publishing:
    """Publishes a few events at a time, to random partitions."""

    def __init__(self, hub: LocalHub, chosen: random.Random) -> None:
        self._hub = hub
        self._chosen = chosen
        self._next = 0.0

    def now_and_then(self) -> None:
        """Publish a few events if the last ones were published some time ago."""
        if time.monotonic() > self._next:
            self._next = time.monotonic() + PACE_SECONDS
            self.some(10)

    def some(self, most: int) -> None:
        """Publish at most this many events, to one partition."""
        partition = self._chosen.choice(PARTITIONS)
        self._hub.publish(HUB, partition, [b"event"] * self._chosen.randint(1, most))

    def last(self) -> Numbers:
        """Return the last event of each partition."""
        held = [self._hub.partition_properties(HUB, one) for one in PARTITIONS]
        return {one.partition_id: one.last_sequence_number for one in held if not one.is_empty}


def run_round(
    cells: Sequence[Cell],
    seed: int,
    backends: Sequence[Backend],
    finish: Callable[[Sequence[Job], Path], None] | None = None,
) -> Result:
    """Run a round with a query for each cell.

    Args:
        cells: of the queries.
        seed: of the round.
        backends: where the queries save, in turn.
        finish: runs the queries until they have read what is there; None: a second driver does.

    Raises:
        ChildError: a driver failed, or a query was not killed where it should have been.
    """
    chosen = random.Random(seed)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="spark-crashes-")))
        hub = opened.enter_context(LocalHub({HUB: len(PARTITIONS)}))
        queries = [
            query(cell, number, hub, folder, chosen, opened.enter_context(place_on(backend)))
            for number, (cell, backend) in enumerate(zip(cells, itertools.cycle(backends)))
        ]
        publishing = Publishing(hub, chosen)
        outcomes = killed_and_gone_on(queries, publishing, folder, finish or in_a_driver)
    kinds = ("events", "lost", "doubled")
    seen = Counter({kind: sum(getattr(one, kind) for one in outcomes) for kind in kinds})
    return Result(seen, [problem for one in outcomes for problem in one.problems], outcomes)


def place_on(backend: Backend) -> TablesPlace:
    """Return a database with a table for results."""
    place = backend.place()
    assert isinstance(place, TablesPlace)
    return place


def query(
    cell: Cell, number: int, hub: LocalHub, folder: Path, chosen: random.Random, place: TablesPlace
) -> Query:
    """Return a query that dies where the seed decides."""
    table = place.tables.quoted(RESULTS)
    place.execute(f"CREATE TABLE {table} ({COLUMNS})")
    job = Job(
        name=f"query-{number}",
        route=cell.route,
        hub=hub.connection_string(HUB),
        url=place.url,
        engine_url=place.engine.url.render_as_string(hide_password=False),
        table=table,
        checkpoint=folder / f"checkpoint-{number}",
        waiting=folder / f"waiting-{number}",
        attempt=0,
        limit=chosen.randint(5, 25),
        receive_path=chosen.choice(RECEIVE_PATHS),
        death=Death.of(cell, chosen),
    )
    return Query(cell, place, job)


def killed_and_gone_on(
    queries: Sequence[Query],
    publishing: Publishing,
    folder: Path,
    finish: Callable[[Sequence[Job], Path], None],
) -> list[Outcome]:
    """Kill a driver when each query waits; let the queries finish; compare."""
    for _ in range(20):
        publishing.some(20)
    kill(queries, publishing, folder)
    killed = [query.found() for query in queries]
    begins = [query.begin(one.stored) for query, one in zip(queries, killed, strict=True)]
    publishing.some(50)
    finish([query.again() for query in queries], folder)
    published = publishing.last()
    return [
        judged(query.cell, one, begin, query.found(), published)
        for query, one, begin in zip(queries, killed, begins, strict=True)
    ]


def kill(queries: Sequence[Query], publishing: Publishing, folder: Path) -> None:
    """Run a driver until each of its queries waits to be killed, and kill it."""
    waiting = [query.job.waiting for query in queries]

    def is_there() -> bool:
        publishing.now_and_then()
        return all(one.exists() for one in waiting)

    with started([query.job for query in queries], folder, "killed") as running:
        running.wait_ready(is_there, DRIVER_SECONDS)
        running.kill()


def in_a_driver(jobs: Sequence[Job], folder: Path) -> None:
    """Run a driver until its queries have read what is there.

    Raises:
        ChildError: it failed.
    """
    with started(jobs, folder, "goes-on") as running:
        if running.wait(DRIVER_SECONDS) != 0:
            raise ChildError(f"the second driver failed:\n{running.tail()}")


def started(jobs: Sequence[Job], folder: Path, name: str) -> Child:
    """Start a driver with these queries."""
    given = folder / f"{name}.jobs"
    given.write_bytes(pickle.dumps(jobs))
    return driver("crashes.spark.driver", given, log=folder / f"{name}.log")
