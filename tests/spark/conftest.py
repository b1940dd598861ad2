"""A Spark session for all tests of this folder, and a hub with four partitions for each."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import eventhub_checkpoints
from eventhub_checkpoints.localhub import LocalHub

HUB_THAT_IS_NOT_THERE = (
    "Endpoint=sb://in.the.environment/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=Orders"
)
SOURCES = str(Path(eventhub_checkpoints.__file__).parent.parent)
TESTS = str(Path(__file__).parent)


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `store_for_source` finds the checkpoints that a test has written."""
    return tmp_path_factory.mktemp("store") / "checkpoints.json"


@pytest.fixture(scope="session")
def spark(stored: Path) -> Iterator[SparkSession]:
    """Two local cores. Spark's own Python processes find the package on PYTHONPATH."""
    path = [SOURCES, TESTS, os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("STORE_FOR_SOURCE", str(stored))
        patch.setenv("HUB_SECRET_FOR_SOURCE", HUB_THAT_IS_NOT_THERE)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[LocalHub]:
    with LocalHub({"Orders": 4}) as running:
        yield running


@pytest.fixture
def hub(server: LocalHub) -> LocalHub:
    """A hub `Orders` with 10, 20, 30 and no events in its four partitions."""
    server.recreate("Orders", 4)
    for partition, count in {"0": 10, "1": 20, "2": 30}.items():
        server.publish("Orders", partition, [f"{partition}/{one}" for one in range(count)])
    return server
