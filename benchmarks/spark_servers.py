"""The stand-in and the Kafka broker of one run, each filled, and each on a core of its own."""

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.places import first_line
from benchmarks.spark_cores import ROOT, on_cores
from benchmarks.spark_hub import BODY, hub_name, shares, some
from eventhub_checkpoints.cli.demo.children import Child
from kafka_broker import KafkaBroker

START_SECONDS = 120

Kind = tuple[int, int]
"""So many partitions, and so many properties in each event."""


@dataclass(frozen=True)
class Cores:
    """Which core does what.

    Attributes:
        server: the stand-in and the broker; only one of them has work at a time.
        client: the plain loop, or all of Spark: JVM and Python.
        both: two for Spark; where the machine has no more, the server's is one of them.
    """

    server: Set[int]
    client: Set[int]
    both: Set[int]

    @classmethod
    def of_this_machine(cls) -> "Cores":
        """The first two or three that this process may use.

        Raises:
            OSError: there is only one.
        """
        first, *others = sorted(os.sched_getaffinity(0))
        if not others:
            raise OSError("this needs two cores, one for the server and one for the client")
        return cls({first}, {others[0]}, set(others[:2] if len(others) > 1 else (first, *others)))


@dataclass(frozen=True)
class Server:
    """One that runs.

    Attributes:
        process: its id.
        addresses: what its clients need, by hub or topic.
    """

    process: int
    addresses: Mapping[str, str]


@contextmanager
def stand_in(kinds: Set[Kind], events: int, cores: Cores) -> Iterator[Server]:
    """A local hub with so many events in a hub of each kind; without kinds there is none."""
    if not kinds:
        yield Server(os.getpid(), {})
        return
    words = [f"--kind={partitions},{properties}" for partitions, properties in sorted(kinds)]
    with serving("benchmarks.spark_hub", ["--events", str(events), *words], cores) as found:
        yield found


@contextmanager
def serving(module: str, words: Sequence[str], cores: Cores) -> Iterator[Server]:
    """A module that prints the addresses of its hubs as a line of JSON, and serves them."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with on_cores(cores.server):
            child = Child([sys.executable, "-m", module, *words], log=log, cwd=ROOT, name=module)
        with child:
            line = child.wait_ready(lambda: first_line(log), START_SECONDS)
            yield Server(child.pid, json.loads(line))


def why_no_kafka() -> str | None:
    """What an environment lacks for Spark's Kafka source; None where it has everything."""
    import pyspark

    from maven import JarsMissingError
    from spark_jars import KAFKA_BROKER, KAFKA_SOURCE, KAFKA_SPARK

    if pyspark.__version__ != KAFKA_SPARK:
        return f"its jars are of PySpark {KAFKA_SPARK}, and this is {pyspark.__version__}"
    if importlib.util.find_spec("confluent_kafka") is None:
        return "confluent-kafka is missing, which fills the topics"
    try:
        KAFKA_SOURCE.jars()
        KAFKA_BROKER.jars()
    except JarsMissingError as missing:
        return str(missing)
    return None


@contextmanager
def broker(kinds: Sequence[Kind], events: int, cores: Cores) -> Iterator[Server]:
    """A Kafka broker with so many events in a topic of each kind."""
    running = KafkaBroker()
    try:
        with on_cores(cores.server):
            running.start()
        for kind in kinds:
            fill(running.address, *kind, events)
        yield Server(running.process, {hub_name(*kind): running.address for kind in kinds})
    finally:
        running.stop()


def fill(address: str, partitions: int, properties: int, events: int) -> None:
    """Make a topic and publish the events; properties become headers."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    settings = {"bootstrap.servers": address, "log_level": 0}
    name = hub_name(partitions, properties)
    admin = AdminClient(settings)
    [made] = admin.create_topics([NewTopic(name, partitions, 1)]).values()
    made.result(START_SECONDS)
    producer = Producer(settings | {"linger.ms": 50})
    headers = [(key, str(value)) for key, value in some(properties).items()]
    for partition, count in enumerate(shares(events, partitions)):
        for _ in range(count):
            producer.produce(name, BODY, partition=partition, headers=headers)
            producer.poll(0)
        producer.flush(START_SECONDS)
