"""A Spark session for all tests of this folder, and a hub with four partitions for each."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_runs
from client_threads import wait_for_clients
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark.sink.writer import SENDERS
from eventhub_checkpoints.spark.source.batches import CONNECTIONS

HUB_THAT_IS_NOT_THERE = (
    "Endpoint=sb://in.the.environment/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=Orders"
)
TESTS = str(Path(__file__).parent)
SMOKE = "test_smoke.py"
"""The one file whose tests start Spark outside the long suite."""


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts Spark as long, but for the smoke tests.

    And bear that PySpark 4.0 leaves the socket of every `collect` to the garbage collector.
    """
    for item in items:
        if not item.path.is_relative_to(TESTS):
            continue
        if "spark" in getattr(item, "fixturenames", ()) and item.path.name != SMOKE:
            item.add_marker(pytest.mark.long)
        if pyspark.__version__.startswith("4.0."):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `store_for_source` finds the checkpoints that a test has written."""
    return tmp_path_factory.mktemp("store") / "checkpoints.json"


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of Spark's event log, which the history server reads."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(stored: Path, event_log: Path) -> Iterator[SparkSession]:
    """Two local cores. Spark's own Python processes find the package on PYTHONPATH."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", TESTS, prepend=os.pathsep)
        patch.setenv("STORE_FOR_SOURCE", str(stored))
        patch.setenv("HUB_SECRET_FOR_SOURCE", HUB_THAT_IS_NOT_THERE)
        patch.setenv("VAULT_SECRET", "secret of the vault")
        logged = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": event_log.as_uri(),
            "spark.eventLog.compress": "false",
        }
        with spark_runs.session(settings=spark_runs.QUICK | logged) as session:
            yield session


@pytest.fixture(scope="session")
def server() -> Iterator[LocalHub]:
    with LocalHub({"Orders": 4}) as running:
        yield running
        wait_for_clients()


@pytest.fixture
def hub(server: LocalHub) -> LocalHub:
    """A hub `Orders` with 10, 20, 30 and no events in its four partitions."""
    server.recreate("Orders", 4)
    for partition, count in {"0": 10, "1": 20, "2": 30}.items():
        server.publish("Orders", partition, [f"{partition}/{one}" for one in range(count)])
    return server


@pytest.fixture
def address(hub: LocalHub) -> HubAddress:
    return HubAddress.from_connection_string(hub.connection_string("Orders"))


@pytest.fixture(autouse=True)
def no_connection_is_kept() -> Iterator[None]:
    """Close what a test has left open in this process; Spark's workers have their own."""
    yield
    CONNECTIONS.close()
    SENDERS.close()


@pytest.fixture
def own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `own_credentials` be imported, as a user's module on the PYTHONPATH."""
    monkeypatch.syspath_prepend(TESTS)


class ForeignStore:
    """Rows as stores of other makers return them."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows

    def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> list[dict[str, Any]]:
        return [dict(row) for row in self.rows]


@pytest.fixture
def foreign_store() -> type[ForeignStore]:
    return ForeignStore


@pytest.fixture
def start_query(spark: SparkSession, hub: LocalHub, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts queries on the hub; their checkpoints are the test's own, and they end with it."""
    started = []

    def start(
        sink: Any,
        *,
        shape: Callable[[DataFrame], DataFrame] | None = None,
        trigger: dict[str, Any] | None = None,
        checkpoint: str = "query",
        mode: str = "append",
        **options: Any,
    ) -> Any:
        address = hub.connection_string("Orders")
        source = spark.readStream.format("eventhubs").option("connectionString", address)
        frame = source.options(**options).load()
        query = (
            (shape(frame) if shape else frame)
            .writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .outputMode(mode)
            .trigger(**(trigger or {"availableNow": True}))
            .start()
        )
        started.append(query)
        return query

    yield start
    for query in started:
        query.stop()
