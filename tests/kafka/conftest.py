"""A real Kafka broker, and Spark with the Kafka source of the same version."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest

import spark_runs
from eventhub_checkpoints import MemoryCheckpointStore, Scope
from kafka_broker import KafkaBroker
from maven import JarsMissingError
from spark_jars import AVRO, KAFKA_SOURCE, KAFKA_SPARK
from waiting import eventually

COUNTS = {"0": 10, "1": 20, "2": 30, "3": 0}
NUMBERED = f"cast(partition as string) as {spark_runs.PARTITION}", f"offset as {spark_runs.NUMBER}"
PATIENCE = 60


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is missing: run `tox -e kafka`")
    try:
        started = KafkaBroker()
    except JarsMissingError as missing:
        pytest.skip(str(missing))
    with started:
        yield started


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    if pyspark.__version__ != KAFKA_SPARK:
        pytest.skip(
            f"the Kafka source that the tests fetch is of PySpark {KAFKA_SPARK}, this environment "
            f"has {pyspark.__version__}: run `tox -e kafka`"
        )
    try:
        jars = [*KAFKA_SOURCE.jars(), *AVRO.jars()]
    except JarsMissingError as missing:
        pytest.skip(str(missing))
    with spark_runs.session(jars) as session:
        yield session


class Topics:
    """What the tests do to topics, as another program."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient

        # Without its log: the broker ends before these clients do, and each complains of it.
        self._settings: dict[str, Any] = {"bootstrap.servers": address, "log_level": 0}
        self._admin, self._producer = AdminClient(self._settings), Producer(self._settings)

    def create(self, name: str, partitions: int, **config: str) -> None:
        from confluent_kafka.admin import NewTopic

        wanted = NewTopic(name, partitions, 1, config=config)
        [made] = self._admin.create_topics([wanted]).values()
        made.result(PATIENCE)

    def grow(self, name: str, partitions: int) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import NewPartitions

        [grown] = self._admin.create_partitions([NewPartitions(name, partitions)]).values()
        grown.result(PATIENCE)
        # The old one goes by what it has learnt before, for minutes.
        self._producer = Producer(self._settings)

    def recreate(self, name: str, partitions: int) -> None:
        """Delete a topic, and make one of its name as soon as the broker lets go of the old one."""
        [deleted] = self._admin.delete_topics([name]).values()
        deleted.result(PATIENCE)
        eventually(lambda: name not in self._admin.list_topics(timeout=PATIENCE).topics)
        self.create(name, partitions)

    def publish(self, name: str, partition: str, count: int) -> None:
        for one in range(count):
            self._producer.produce(name, f"{partition}/{one}", partition=int(partition))
        assert self._producer.flush(PATIENCE) == 0

    def produce(self, name: str, value: bytes | None, **more: Any) -> None:
        """One record, with what else it is to have."""
        self._producer.produce(name, value, **{"partition": 0, **more})
        assert self._producer.flush(PATIENCE) == 0

    @contextmanager
    def transaction(self, name: str, count: int) -> Iterator[Any]:
        """So many records in an open transaction; it is aborted unless the block commits it."""
        from confluent_kafka import Producer

        producer = Producer({**self._settings, "transactional.id": f"{name}-{next(_serial)}"})
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        for one in range(count):
            producer.produce(name, f"in a transaction {one}", partition=0)
        assert producer.flush(PATIENCE) == 0
        yield producer
        producer.abort_transaction(PATIENCE)

    def commit(self, name: str, count: int) -> None:
        """So many records, and behind them the mark of their transaction."""
        before = self._committed_end(name)
        with self.transaction(name, count) as producer:
            producer.commit_transaction(PATIENCE)
            producer.begin_transaction()
        # The broker writes the mark after it has confirmed the commit.
        eventually(lambda: self._committed_end(name) > before + count, PATIENCE)

    def _committed_end(self, name: str) -> int:
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        wanted = {TopicPartition(name, 0): OffsetSpec.latest()}
        [asked] = self._admin.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED
        ).values()
        return int(asked.result(PATIENCE).offset)

    def trim(self, name: str, partition: str, before: int) -> None:
        """Drop old events, as retention does."""
        from confluent_kafka import TopicPartition

        where = TopicPartition(name, int(partition), before)
        [trimmed] = self._admin.delete_records([where]).values()
        trimmed.result(PATIENCE)


_serial = itertools.count()


@dataclass
class Topic:
    """A topic of a test's own, as the Kafka endpoint shows a hub, and jobs that read it."""

    spark: Any
    broker: KafkaBroker
    topics: Topics
    name: str

    @property
    def scope(self) -> Scope:
        """Whose checkpoints; the store keeps names in lower case, topics have theirs."""
        return Scope("ns.servicebus.windows.net", self.name, "processors")

    def publish(self, partition: str, count: int) -> None:
        self.topics.publish(self.name, partition, count)

    def trim(self, partition: str, before: int) -> None:
        self.topics.trim(self.name, partition, before)

    def checkpoint(self, store: Any, **numbers: int) -> None:
        """Note what a consumer has processed: `checkpoint(store, p0=8)`."""
        for name, number in numbers.items():
            row = {"partition_id": name.removeprefix("p"), "sequence_number": number}
            store.update_checkpoint({**self.scope.as_dict(), **row, "offset": str(number)})

    def batch(self, **options: str) -> spark_runs.Numbers:
        """Read a batch."""
        return spark_runs.batch(self._load(self.spark.read, options))

    def frame(self, **options: str) -> Any:
        """A streaming frame."""
        return self._load(self.spark.readStream, options)

    def _load(self, reader: Any, options: dict[str, str]) -> Any:
        server = {"kafka.bootstrap.servers": self.broker.address, "subscribe": self.name}
        return reader.format("kafka").options(**server, **options).load().selectExpr(*NUMBERED)


@pytest.fixture(scope="session")
def topics(broker: KafkaBroker) -> Topics:
    return Topics(broker.address)


@pytest.fixture(scope="session")
def make(spark: Any, broker: KafkaBroker, topics: Topics) -> Callable[[], Topic]:
    """Makes a topic of four partitions with 10, 20, 30 and no events."""

    def make() -> Topic:
        topic = Topic(spark, broker, topics, f"Orders-{next(_serial)}")
        topics.create(topic.name, len(COUNTS))
        for partition, count in COUNTS.items():
            topic.publish(partition, count)
        return topic

    return make


@pytest.fixture
def topic(make: Callable[[], Topic]) -> Topic:
    return make()


@pytest.fixture
def store() -> MemoryCheckpointStore:
    return MemoryCheckpointStore()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For a query's own checkpoints."""
    return tmp_path / "query"
