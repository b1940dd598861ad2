"""Rows over Kafka: librdkafka's own mock of a cluster, written by its producer and read by ours."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from eventhub_checkpoints import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive import OffsetRange, partition_properties
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.arrow import send_all
from eventhub_checkpoints.send.kafka.sender import KafkaSender
from waiting import LIMIT, eventually

QUICK = SendSettings(operation_timeout=LIMIT)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The servers of a mock cluster, which lives as long as this producer."""
    producer = Producer({"test.mock.num.brokers": "1", "log_level": "0"})
    [broker] = producer.list_topics(timeout=LIMIT).brokers.values()
    yield f"{broker.host}:{broker.port}"
    producer.flush(1)


def address_of(cluster, topic, **settings):
    return KafkaAddress.of_topic(topic, {"bootstrap.servers": cluster, **settings})


def test_every_column_arrives(cluster, rows):
    address = address_of(cluster, "columns")
    batch = rows(
        ["a", "b", "c"],
        partitionId=["1", "1", None],
        partitionKey=[None, None, "key"],
        properties=[[("n", "1"), ("é", "ü")], [], None],
    )
    with KafkaSender(address, QUICK) as sender:
        send_all(sender, [batch])
        assert sender.accepted == 3
        assert sender.is_usable
    properties = partition_properties(address)
    ends = {each: properties[each].next_sequence_number for each in properties}
    found = [
        row
        for partition, end in ends.items()
        if end
        for each in read_range(address, OffsetRange(partition, 0, end))
        for row in each.to_pylist()
    ]
    by_body = {row["body"]: row for row in found}
    assert [row["body"] for row in found if row["partition"] == "1"][:2] == [b"a", b"b"]
    assert by_body[b"a"]["properties"] == [("n", "1"), ("é", "ü")]
    assert (by_body[b"c"]["partitionKey"], by_body[b"c"]["properties"]) == ("key", [])


def test_a_time_arrives_as_its_number_in_milliseconds(cluster):
    address = address_of(cluster, "times")
    kind = pa.map_(pa.string(), pa.timestamp("us", tz="UTC"))
    properties = pa.array([[("at", datetime(2026, 11, 21, tzinfo=UTC)), ("none", None)]], kind)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["a"]), pa.array(["0"]), properties], ["body", "partitionId", "properties"]
    )
    with KafkaSender(address, QUICK) as sender:
        send_all(sender, [batch])
    [read] = read_range(address, OffsetRange("0", 0, 1))
    assert dict(read["properties"][0].as_py()) == {"at": "1795219200000", "none": "null"}


def test_order_and_number_survive_a_small_queue(cluster, rows):
    address = address_of(cluster, "order", **{"queue.buffering.max.messages": "100"})
    numbers = [str(number) for number in range(2000)]
    with KafkaSender(address, QUICK) as sender:
        send_all(sender, [rows(numbers, partitionId=["0"] * 2000)])
        assert sender.accepted == 2000
    batches = read_range(address, OffsetRange("0", 0, 2000))
    assert [row["body"].decode() for each in batches for row in each.to_pylist()] == numbers


@pytest.mark.parametrize(("linger", "count"), [("0", 1000), ("15000", 0)])
def test_an_error_counts_what_was_on_its_way_and_nothing_follows(cluster, rows, linger, count):
    address = address_of(cluster, f"counted-{linger}", **{"linger.ms": linger})

    def stored():
        return sum(each.next_sequence_number for each in partition_properties(address).values())

    def batches():
        yield rows(["x"] * 1000)
        eventually(lambda: stored() == 1 + count)
        yield rows(["y", None])

    with KafkaSender(address_of(cluster, address.eventhub_name), QUICK) as first:
        send_all(first, [rows(["a"])])
    sender = KafkaSender(address, QUICK)
    with sender, pytest.raises(ConfigurationError, match="row 1 of a batch has no body") as refused:
        send_all(sender, batches())
    sentence = "1,000 events were sent before and are in the hub"
    assert (sentence in str(refused.value)) == (count > 0)
    assert "Up to" not in str(refused.value)
    assert stored() == 1 + count


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"contentType": ["text/plain"]}, "contentType, which Kafka's records do not have"),
        ({"partitionId": ["99"]}, r"did not accept .* over Kafka"),
        ({"properties": [[("long", "x" * 2_000_000)]]}, "did not accept row 0 of a batch"),
    ],
)
def test_what_kafka_cannot_take_is_one_sentence(cluster, rows, columns, sentence):
    sender = KafkaSender(address_of(cluster, "refused"), QUICK)
    with sender, pytest.raises(ConfigurationError, match=sentence):
        send_all(sender, [rows(["x"], **columns)])


def test_a_cluster_that_is_not_there_is_an_error(rows):
    address = address_of("127.0.0.1:1", "nowhere")
    settings = SendSettings(operation_timeout=1)
    with KafkaSender(address, settings) as sender, pytest.raises(HubUnavailableError):
        send_all(sender, [rows(["x"])])


def test_a_setting_that_librdkafka_does_not_know_is_named(cluster):
    with pytest.raises(ConfigurationError, match=r"the setting kafka\.no\.such"):
        KafkaSender(address_of(cluster, "x", **{"no.such": "secret"}), QUICK)
