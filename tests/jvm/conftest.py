"""Spark 3.5 with the JVM connector, and a local hub on the one port that this client knows."""

import itertools
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest
from azure.eventhub import EventHubConsumerClient

import spark_runs
from eventhub_checkpoints import Scope
from eventhub_checkpoints.localhub import LocalHub
from maven import JarsMissingError
from spark_jars import CONNECTOR, CONNECTOR_SPARK

AMQPS = 5671
COUNTS = {"0": 10, "1": 20, "2": 30, "3": 0}
PASSWORD = "changeit"
STARTING = "eventhubs.startingPositions"
FROM_THE_START = {"starting_position": "-1"}
PATIENCE = 60


def listening() -> LocalHub:
    """A hub over TLS. The connector ignores a port, so an address is looked for."""
    for last in range(7, 255):
        hub = LocalHub({"unused": 1}, host=f"127.0.0.{last}", port=AMQPS, tls=True)
        with suppress(OSError):
            return hub.start()
    pytest.skip(f"no address 127.0.0.N of this machine has port {AMQPS} free")


@pytest.fixture(scope="session")
def server() -> Iterator[LocalHub]:
    running = listening()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def spark(server: LocalHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session whose Java trusts the hub's certificate."""
    if not pyspark.__version__.startswith(CONNECTOR_SPARK):
        pytest.skip(
            f"the JVM connector needs PySpark {CONNECTOR_SPARK}, this environment has "
            f"{pyspark.__version__}: run `tox -e jvm`"
        )
    try:
        jars = CONNECTOR.jars()
    except JarsMissingError as missing:
        pytest.skip(str(missing))
    trusted = tmp_path_factory.mktemp("trusted") / "trusted.p12"
    words = f"-importcert -noprompt -alias hub -storetype PKCS12 -storepass {PASSWORD}"
    files = ["-file", server.ca_file, "-keystore", str(trusted)]
    subprocess.run(["keytool", *words.split(), *files], check=True, capture_output=True)
    trust = {"": trusted, "Type": "PKCS12", "Password": PASSWORD}
    java = " ".join(
        [
            "-XX:TieredStopAtLevel=1",  # it does not run for long
            *(f"-Djavax.net.ssl.trustStore{name}={value}" for name, value in trust.items()),
        ]
    )
    with spark_runs.session(jars, {"spark.driver.extraJavaOptions": java}) as session:
        yield session


def numbered(frame: Any) -> Any:
    return frame.selectExpr(
        f"partition as {spark_runs.PARTITION}", f"sequenceNumber as {spark_runs.NUMBER}"
    )


@dataclass
class Connector:
    """The connector's own classes, and jobs that read a hub with it.

    Each test has a hub and a consumer group of its own: the connector keeps a receiver for every
    partition and group that it has ever read, until Java ends.
    """

    spark: Any
    server: LocalHub
    hub: str
    group: str
    more: dict[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        return Scope(self.server.namespace, self.hub, self.group)

    @property
    def classes(self) -> Any:
        return self.spark._jvm.org.apache.spark.eventhubs

    def options(self, **given: str) -> dict[str, str]:
        encrypted = self.classes.EventHubsUtils.encrypt(self.server.connection_string(self.hub))
        settings = {
            "connectionString": encrypted,
            "consumerGroup": self.group,
            "operationTimeout": "PT12S",
            "receiverTimeout": "PT10S",
            # One connection per partition and group: with its 16 threads they wait in turns.
            "threadPoolSize": "200",
            **given,
        }
        return {f"eventhubs.{name}": value for name, value in settings.items()}

    def batch(self, **given: str) -> spark_runs.Numbers:
        """Read a batch, with options that are given without their prefix."""
        frame = self.spark.read.format("eventhubs").options(**self.options(**given)).load()
        return spark_runs.batch(numbered(frame))

    def frame(self, *, through: Callable[[Any], Any] = lambda rows: rows, **given: str) -> Any:
        """A streaming frame, with all columns passed through a function."""
        source = self.spark.readStream.format("eventhubs").options(**self.options(**given))
        return numbered(through(source.load()))

    def consume(self, store: Any, count: int) -> spark_runs.Numbers:
        """Read so many events with a real consumer, and checkpoint each of them."""
        client = EventHubConsumerClient(
            **self.server.client_arguments(self.hub),
            consumer_group=self.group,
            checkpoint_store=store,
            load_balancing_interval=1,
            load_balancing_strategy="greedy",
        )
        read: list[tuple[str, int]] = []
        enough = threading.Event()

        def on_event(context: Any, event: Any) -> None:
            if enough.is_set():
                return
            read.append((context.partition_id, event.sequence_number))
            context.update_checkpoint(event)
            if len(read) == count:
                enough.set()

        work = threading.Thread(target=client.receive, args=(on_event,), kwargs=FROM_THE_START)
        with client:
            work.start()
            assert enough.wait(PATIENCE), f"{len(read)} of {count} events within {PATIENCE} s"
        work.join()
        return spark_runs.sorted_numbers(read)

    def conf(self) -> Any:
        plain = self.server.connection_string(self.hub)
        return self.classes.EventHubsConf(self.classes.EventHubsUtils.encrypt(plain))

    def positions(self, text: str) -> dict[tuple[str, int], tuple[Any, ...]]:
        """What its parser makes of `startingPositions`: offset, number, time, inclusive.

        Units: the time is in milliseconds since the epoch.
        """
        entries = self.conf().set(STARTING, text).startingPositions().get().iterator()
        found = {}
        while entries.hasNext():
            entry = entries.next()
            where, position = entry._1(), entry._2()
            time = position.enqueuedTime()
            found[where.ehName(), where.partitionId()] = (
                position.offset(),
                position.seqNo(),
                None if time is None else time.getTime(),
                position.isInclusive(),
            )
        return found

    def rewritten(self, text: str) -> str:
        """What its own writer makes of the positions that its parser has read."""
        read = self.conf().set(STARTING, text).startingPositions().get()
        return str(self.conf().setStartingPositions(read).apply(STARTING))


@pytest.fixture(scope="session")
def make(spark: Any, server: LocalHub) -> Callable[[], Connector]:
    """Makes a hub of four partitions with 10, 20, 30 and no events."""
    used = itertools.count()

    def make() -> Connector:
        name = f"Orders-{next(used)}"
        server.create(name, len(COUNTS))
        for partition, count in COUNTS.items():
            server.publish(name, partition, [f"{partition}/{one}" for one in range(count)])
        return Connector(spark, server, name, f"spark-{name}")

    return make


@pytest.fixture
def connector(make: Callable[[], Connector]) -> Connector:
    return make()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For a query's own checkpoints."""
    return tmp_path / "query"
