"""Spark's clusters and Spark Connect, where this package is shipped as a zip and not installed."""

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

import page_blocks
from eventhub_checkpoints import Scope
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import SqlCheckpointStore
from spark_cluster import HOST, START_SECONDS, BareSpark, standalone

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/spark-clusters.md"
COUNTS = {"0": 10, "1": 20, "2": 30, "3": 0}
PROCESSED = {"0": 4, "1": 9}
"""The last sequence numbers that consumers have processed."""
CONNECT, SERVES = "start-connect-server.sh", re.compile(r"Spark Connect server started at: (\S+)")


def documented(program: str) -> str:
    """The one command of the page that contains these words."""
    blocks = [block.text.strip() for block in page_blocks.blocks(PAGE) if block.language == "text"]
    [line] = [text for text in blocks if program in text]
    return line


@dataclass
class Hub:
    """A hub of a test's own with 10, 20, 30 and no events, and a store with two checkpoints."""

    server: LocalHub
    name: str
    store_url: str

    @property
    def connection_string(self) -> str:
        return self.server.connection_string(self.name)

    @property
    def scope(self) -> Scope:
        return HubAddress.from_connection_string(self.connection_string).scope()

    @property
    def options(self) -> dict[str, str]:
        return {"connectionString": self.connection_string, "checkpointStore": self.store_url}

    def store(self) -> SqlCheckpointStore:
        return SqlCheckpointStore.from_url(self.store_url)

    def stored(self) -> dict[str, tuple[int, str]]:
        """Sequence number and offset of each checkpoint."""
        with self.store() as store:
            rows = store.list_checkpoints(*self.scope)
        return {row["partition_id"]: (row["sequence_number"], row["offset"]) for row in rows}


@pytest.fixture(scope="session")
def server() -> Iterator[LocalHub]:
    with LocalHub({"unused": 1}) as running:
        yield running


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def hub(server: LocalHub, numbers: Iterator[int], tmp_path: Path) -> Hub:
    made = Hub(server, f"Orders-{next(numbers)}", f"sqlite:///{tmp_path}/positions.db")
    server.create(made.name, len(COUNTS))
    for partition, count in COUNTS.items():
        server.publish(made.name, partition, [f"{partition}/{one}" for one in range(count)])
    with made.store() as store:
        store.create()
        for partition, number in PROCESSED.items():
            row = {"partition_id": partition, "offset": str(number), "sequence_number": number}
            store.update_checkpoint({**made.scope.as_dict(), **row})
    return made


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling is missing: run `tox -e clusters`")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> BareSpark:
    return BareSpark.made(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="session")
def standalone_master(bare: BareSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers."""
    with standalone(bare, tmp_path_factory.mktemp("standalone")) as address:
        yield address


@dataclass
class Shipping:
    """Starts programs by the page's lines, in a folder with the zip, on a bare machine."""

    bare: BareSpark
    wheel: Path

    def start(self, program: str, folder: Path, settings: dict[str, str], **given: str) -> Child:
        """Start it as the page says.

        Args:
            program: which one; the page has one command that contains it.
            folder: where it is started.
            settings: Spark's.
            given: variables of its environment.
        """
        shutil.copy(self.wheel, folder / "eventhub_checkpoints.zip")
        environment = {**self.bare.environment(folder, settings), **given}
        return Child(
            ("sh", "-c", documented(program)), log=folder / "spark.log", env=environment, cwd=folder
        )


@pytest.fixture(scope="session")
def shipping(bare: BareSpark, wheel: Path) -> Shipping:
    return Shipping(bare, wheel)


@pytest.fixture(scope="module")
def spark(
    shipping: Shipping, standalone_master: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A session of Spark Connect, whose server runs on the cluster."""
    pytest.importorskip("grpc", reason="Spark Connect is missing: run `tox -e clusters`")
    folder = tmp_path_factory.mktemp("connect")
    settings = {
        "spark.master": standalone_master,
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": "0",
    }
    files = {"SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder), "SPARK_NO_DAEMONIZE": "1"}
    # PySpark notes in the environment that this process has chosen Connect.
    with shipping.start(CONNECT, folder, settings, **files) as server, patch.dict(os.environ):
        serves = server.wait_ready(lambda: SERVES.search(server.log.read_text()), START_SECONDS)
        session = SparkSession.builder.remote(f"sc://{serves[1]}").getOrCreate()
        try:
            yield session
        finally:
            session.stop()
