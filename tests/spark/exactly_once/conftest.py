"""Databases for results and positions, and batches as Spark hands them to `foreachBatch`."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection, text

from eventhub_checkpoints import Scope
from eventhub_checkpoints.receive.columns import column_types
from eventhub_checkpoints.spark.exactly_once import ExactlyOnce
from eventhub_checkpoints.sql import SqlCheckpointStore

SCHEMA = ", ".join(f"{name} {kind}" for name, kind in column_types().items())
MORNING = datetime(2026, 11, 21, 10, tzinfo=UTC)

Bounds = tuple[int, int]


def offset(number: int) -> str:
    """The hub's text for an event's place."""
    return str(4294967296 + 100 * number)


@dataclass
class Results:
    """A table without a unique key, so that a row that is written twice is there twice."""

    place: Any
    scope: Scope
    name: str = "results"
    opened: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.place.execute(f"CREATE TABLE {self.table} (part TEXT, number BIGINT)")
        self.opened.callback(self.place.execute, f"DROP TABLE {self.table}")

    @property
    def table(self) -> str:
        """Its name, quoted."""
        return str(self.place.tables.quoted(self.name))

    def aside(self, name: str) -> Self:
        """Another table and consumer group in the same database."""
        made = type(self)(self.place, self.scope._replace(consumer_group=name), name)
        self.opened.enter_context(made.opened)
        return made

    @property
    def insert(self) -> str:
        """The beginning of what writes a row."""
        return f"INSERT INTO {self.table} (part, number)"

    def write(self, connection: Connection, rows: Any) -> None:
        """What a user writes."""
        values = [{"part": row.partition, "number": row.sequenceNumber} for row in rows]
        connection.execute(text(f"{self.insert} VALUES (:part, :number)"), values)

    def sink(self, write: Callable[..., Any] | None = None, **settings: Any) -> ExactlyOnce:
        """What a query is given; closed after the test."""
        made = ExactlyOnce(self.place.url, self.scope, write or self.write, **settings)
        return self.opened.enter_context(made)

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many rows each partition has, and how many different ones."""
        found = self.place.execute(
            f"SELECT part, count(*), count(DISTINCT number) FROM {self.table} GROUP BY part"
        )
        return {row[0]: (row[1], row[2]) for row in found}

    def positions(self) -> dict[str, tuple[int, str]]:
        """The positions, as every other client of the store sees them."""
        with SqlCheckpointStore(self.place.url) as store:
            rows = store.list_checkpoints(*self.scope)
        return {row["partition_id"]: (row["sequence_number"], row["offset"]) for row in rows}

    def are(self, **counts: int) -> bool:
        """Whether the table holds exactly events 0 to n - 1 of each partition, named `p0`, ..."""
        wanted = {name.removeprefix("p"): count for name, count in counts.items()}
        stored = {one: (count - 1, offset(count - 1)) for one, count in wanted.items()}
        assert self.counts() == {one: (count, count) for one, count in wanted.items()}
        assert self.positions() == stored
        return True


@pytest.fixture
def scope() -> Scope:
    return Scope(f"ns-{uuid.uuid4().hex[:8]}.servicebus.windows.net", "Orders", "$Default")


def opened(place: Any, scope: Scope) -> Iterator[Results]:
    with place as created:
        made = Results(created, scope)
        with made.opened:
            yield made


@pytest.fixture(params=["sqlite", "postgres"])
def results(
    request: pytest.FixtureRequest, servers: Callable[[str], Any], scope: Scope
) -> Iterator[Results]:
    """Results in each database in turn."""
    yield from opened(servers(request.param).place(), scope)


@pytest.fixture
def sqlite_results(servers: Callable[[str], Any], scope: Scope) -> Iterator[Results]:
    """Results in a file, for what does not differ by database."""
    yield from opened(servers("sqlite").place(), scope)


@pytest.fixture
def postgres_results(servers: Callable[[str], Any], scope: Scope) -> Iterator[Results]:
    """Results on a server, which can end a connection."""
    yield from opened(servers("postgres").place(), scope)


@pytest.fixture
def batch(spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes a batch of the nine columns: `batch(p0=(0, 50), p1=(10, 20))`."""

    def make(**ranges: Bounds) -> DataFrame:
        rows = [
            event(name.removeprefix("p"), one) for name in ranges for one in range(*ranges[name])
        ]
        return spark.createDataFrame(rows, SCHEMA)

    return make


def event(partition: str, number: int) -> tuple[Any, ...]:
    body = f"{partition}/{number}".encode()
    pairs: Mapping[str, str] = {}
    return (body, partition, offset(number), number, MORNING, None, None, pairs, pairs)
