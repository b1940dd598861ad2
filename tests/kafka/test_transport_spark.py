"""`format("eventhubs")` with `transport=kafka`, as a batch and as a stream, on a real broker."""

import pytest

import spark_runs
from eventhub_checkpoints import open_store
from eventhub_checkpoints.errors import DataLossError
from eventhub_checkpoints.spark import HubRanges, OffsetRange
from eventhub_checkpoints.spark.source.batches import read_task
from eventhub_checkpoints.spark.source.options import SourceOptions
from eventhub_checkpoints.spark.source.stream import EventHubStreamReader
from kafka_broker import CONNECTION_STRING

NUMBER = "sequenceNumber"
ROW = f"partition as {spark_runs.PARTITION}", f"sequenceNumber as {spark_runs.NUMBER}"
ALL = {"0": [*range(10)], "1": [*range(20)], "2": [*range(30)]}


class Transport:
    """Reads the topic of a test by our source."""

    def __init__(self, topic):
        self.topic = topic
        self.given = {
            "transport": "kafka",
            "kafka.bootstrap.servers": topic.broker.address,
            "eventHubName": topic.name,
            "fullyQualifiedNamespace": topic.scope.fully_qualified_namespace,
            "consumerGroup": topic.scope.consumer_group,
        }

    def load(self, reader, **options):
        return reader.format("eventhubs").options(**{**self.given, **options}).load()

    def batch(self, **options):
        return spark_runs.batch(self.load(self.topic.spark.read, **options).selectExpr(*ROW))

    def stream(self, folder, **options):
        frame = self.load(self.topic.spark.readStream, **options).selectExpr(*ROW)
        return spark_runs.stream(frame, folder)


@pytest.fixture
def transport(topic):
    return Transport(topic)


@pytest.fixture
def url(topic, tmp_path):
    """A store in which a consumer has processed up to 8, 19 and 14, and partition 3 not at all."""
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    store = open_store(url, create_tables=True)
    topic.checkpoint(store, p0=8, p1=19, p2=14)
    store.close()
    return url


def test_a_batch_has_what_sparks_own_source_has(topic, topics, transport):
    headers = {"currency": b"EUR", "n": b"1"}
    topics.produce(topic.name, b"value", key=b"key", headers=headers, timestamp=1_700_000_000_123)
    server = {"kafka.bootstrap.servers": topic.broker.address, "subscribe": topic.name}
    theirs = topic.spark.read.format("kafka").options(**server, includeHeaders="true").load()
    wanted = theirs.selectExpr(
        "cast(partition as string)", "offset", "value", "cast(key as string)", "timestamp",
        "transform(coalesce(headers, array()), h -> h.key || '=' || cast(h.value as string))",
    )  # fmt: skip
    ours = transport.load(topic.spark.read).selectExpr(
        "partition", "sequenceNumber", "body", "partitionKey", "enqueuedTime",
        "transform(map_entries(properties), h -> h.key || '=' || h.value)",
    )  # fmt: skip
    rows = sorted(map(tuple, ours.collect()), key=lambda row: row[:2])
    assert rows == sorted(map(tuple, wanted.collect()), key=lambda row: row[:2])
    assert len(rows) == 61


def test_a_batch_is_exactly_what_lies_between_two_positions(topic, transport):
    wanted = [OffsetRange("0", 3, 5), OffsetRange("1", 0, 0), OffsetRange("2", 29, 30)]
    ranges = HubRanges(topic.name, [*wanted, OffsetRange("3", 0, 0)])
    assert transport.batch(**ranges.to_source()) == {"0": [3, 4], "2": [29]}


def test_a_batch_begins_behind_the_checkpoints(transport, url):
    assert transport.batch(checkpointStore=url) == {"0": [9], "2": [*range(15, 30)]}


def test_a_batch_begins_at_a_time(transport):
    assert transport.batch(startingPosition="2020-01-01T00:00:00Z") == ALL
    assert transport.batch(startingPosition="2120-01-01T00:00:00Z") == {}


def test_a_stream_begins_behind_the_checkpoints_and_goes_on_by_its_own(
    topic, topics, transport, url, folder
):
    run = transport.stream(folder, checkpointStore=url)
    assert run.error is None
    assert run.read == {"0": [9], "2": [*range(15, 30)]}
    topics.publish(topic.name, "1", 2)
    topics.commit(topic.name, 1)
    topics.grow(topic.name, 5)
    topics.publish(topic.name, "4", 3)
    again = transport.stream(folder, startingPosition="latest")
    assert again.error is None
    # The record of the transaction; behind it lie marks only, and a new partition is read whole.
    assert again.read == {"0": [10], "1": [20, 21], "4": [0, 1, 2]}
    assert transport.stream(folder).read == {}


def test_records_that_have_expired_end_a_stream_unless_loss_is_allowed(topic, transport, folder):
    assert transport.stream(folder).read == ALL
    topic.publish("0", 10)
    topic.trim("0", before=15)
    assert "the first retained is 15" in str(transport.stream(folder).error)
    assert transport.stream(folder, failOnDataLoss="false").read == {"0": [*range(15, 20)]}


def test_records_that_expire_before_a_batch_is_run_again_are_counted(topic, transport):
    def reader(**options):
        return EventHubStreamReader(SourceOptions.parse({**transport.given, **options}))

    one = reader()
    start = one.initialOffset()
    end = one.latestOffset(start)
    topic.trim("2", before=20)
    with pytest.raises(DataLossError, match="the first retained is 20, so 20 events are lost"):
        reader().partitions(start, end)
    again = reader(failOnDataLoss="false")
    tasks = again.partitions(start, end)
    read = [
        number for task in tasks for part in read_task(task) for number in part[NUMBER].to_pylist()
    ]
    assert len(read) == 40
    assert again.latestOffset(end)["_lost"] == {"2": 20}


def test_a_topic_that_was_created_again_ends_a_stream_unless_loss_is_allowed(
    topic, topics, transport, folder
):
    assert transport.stream(folder).read == ALL
    topics.recreate(topic.name, 3)
    topic.publish("1", 4)
    assert "deleted and created again" in str(transport.stream(folder).error)
    assert transport.stream(folder, failOnDataLoss="false").read == {"1": [0, 1, 2, 3]}


def test_a_hub_is_read_by_its_connection_string(topic, transport, url):
    transport.given = {
        "transport": "kafka",
        "connectionString": CONNECTION_STRING,
        "eventHubName": topic.name,
        "consumerGroup": topic.scope.consumer_group,
        "kafka.bootstrap.servers": topic.broker.sasl_address,
        "kafka.security.protocol": "SASL_PLAINTEXT",
    }
    # The same names, and so the same checkpoints.
    assert transport.batch(checkpointStore=url) == {"0": [9], "2": [*range(15, 30)]}
    refused = {"connectionString": f"{CONNECTION_STRING}x"}
    with pytest.raises(Exception, match="Invalid username or password") as error:
        transport.batch(**refused)
    assert "SharedAccessKey=" not in str(error.value)
