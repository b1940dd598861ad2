"""Ranges of a real topic over Kafka: exactly these records, or an error."""

import base64
import itertools
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AccessToken

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.amqp.encode import encode
from eventhub_checkpoints.receive import (
    DataLossError,
    HubAddress,
    HubUnavailableError,
    OffsetRange,
    ReadSettings,
    first_event,
    list_partitions,
    partition_properties,
)
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.kafka.address import KafkaAddress
from eventhub_checkpoints.spark import gap_report
from kafka_broker import CONNECTION_STRING
from waiting import LIMIT, eventually

SERIAL = itertools.count()
STRICT = ReadSettings(receiver_timeout=3600)
"""What waits for `receiver_timeout` does not end within the time limit of a test."""
TOLERANT = replace(STRICT, fail_on_data_loss=False)


@pytest.fixture
def name(topics):
    """An empty topic with one partition."""
    name = f"Plain-{next(SERIAL)}"
    topics.create(name, 1)
    return name


@pytest.fixture
def address(broker, name):
    return KafkaAddress.of_topic(name, {"bootstrap.servers": broker.address})


def rows(address, begin, end, settings=TOLERANT):
    batches = [*read_range(address, OffsetRange("0", begin, end), settings)]
    return [row for batch in batches for row in batch.to_pylist()]


def numbers(address, begin, end, settings=TOLERANT):
    return [row["sequenceNumber"] for row in rows(address, begin, end, settings)]


def ends(address):
    held = partition_properties(address)["0"]
    return held.first_sequence_number, held.next_sequence_number


def test_a_range_is_exactly_what_lies_in_it(topics, name, address):
    topics.publish(name, "0", 30)
    assert ends(address) == (0, 30)
    assert numbers(address, 3, 8) == [3, 4, 5, 6, 7]
    assert [row["body"] for row in rows(address, 28, 30)] == [b"0/28", b"0/29"]
    assert numbers(address, 0, 30) == [*range(30)]


def test_many_records_come_in_batches(topics, name, address):
    topics.publish(name, "0", 20_000)
    wanted = OffsetRange("0", 1_000, 19_999)
    batches = [*read_range(address, wanted, ReadSettings(rows_per_batch=3_000))]
    assert [batch.num_rows for batch in batches] == [3_000] * 6 + [999]
    assert [n for one in batches for n in one["sequenceNumber"].to_pylist()] == [
        *range(1_000, 19_999)
    ]


def test_a_record_has_the_nine_columns_of_an_event(topics, name, broker):
    headers = {"to": b"me", "text": encode("hello"), "number": encode(5)}
    topics.produce(name, b"body", key=b"key", headers=headers, timestamp=1_700_000_000_123)
    topics.produce(name, None, headers={"currency": b"EUR", "none": None})
    own = {"bootstrap.servers": broker.address}
    [event, bare] = rows(KafkaAddress.of_topic(name, own, headers="auto"), 0, 2)
    assert event == {
        "body": b"body",
        "partition": "0",
        "offset": None,
        "sequenceNumber": 0,
        "enqueuedTime": datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(milliseconds=123),
        "publisher": None,
        "partitionKey": "key",
        "properties": [("text", "hello"), ("number", "5")],
        "systemProperties": [("to", "me")],
    }
    assert (bare["body"], bare["partitionKey"]) == (b"", None)
    assert bare["properties"] == [("currency", "EUR"), ("none", "null")]
    assert datetime.now(UTC) - bare["enqueuedTime"] < timedelta(minutes=5)


def test_a_topic_of_a_plain_cluster_has_its_headers_as_they_are(topics, name, address):
    topics.produce(name, b"body", headers={"to": b"me", "price": b"price"})
    assert rows(address, 0, 1)[0]["properties"] == [("to", "me"), ("price", "price")]


def test_a_range_that_ends_in_marks_of_transactions_ends(topics, name, address):
    topics.publish(name, "0", 2)
    topics.commit(name, 3)
    with topics.transaction(name, 4):
        pass
    # Three records and a mark, four that were aborted and another mark, and the same again of
    # the empty transaction that `commit` has left.
    begin, end = ends(address)
    assert begin == 0
    assert end >= 2 + 4 + 5
    assert numbers(address, 0, end) == [0, 1, 2, 3, 4]
    assert numbers(address, 5, end) == []
    assert numbers(address, 4, 5) == [4]


def test_an_open_transaction_lies_behind_the_end(topics, name, address, broker):
    topics.publish(name, "0", 2)
    with topics.transaction(name, 3):
        assert ends(address) == (0, 2)
        own = {"bootstrap.servers": broker.address, "isolation.level": "read_uncommitted"}
        assert ends(KafkaAddress.of_topic(name, own)) == (0, 5)


def test_what_compaction_has_removed_is_passed_over(topics, broker):
    name = f"Compacted-{next(SERIAL)}"
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    topics.create(name, 1, **config)
    address = KafkaAddress.of_topic(name, {"bootstrap.servers": broker.address})
    for number in range(6):
        topics.produce(name, b"%d" % number, key=b"same")

    def is_compacted():
        # A segment is closed by a record that comes after its time.
        topics.produce(name, b"later", key=b"other")
        return numbers(address, 0, 6) == [5]

    eventually(is_compacted)
    assert numbers(address, 0, 5) == []
    assert numbers(address, 2, 6, STRICT) == [5]


def test_records_that_have_expired_are_a_loss(topics, name, address, caplog):
    topics.publish(name, "0", 20)
    topics.trim(name, "0", before=12)
    with pytest.raises(DataLossError, match=r"the first retained is 12, so 7 events are lost"):
        rows(address, 5, 20, STRICT)
    assert numbers(address, 5, 15) == [12, 13, 14]
    assert numbers(address, 5, 10) == []
    assert "events are lost" in caplog.text


def test_what_a_job_would_lose_is_told_before(topics, name, address):
    topics.publish(name, "0", 20)
    topics.trim(name, "0", before=12)
    [gap] = gap_report({"0": 7}, address).gaps
    assert (gap.partition_id, gap.lost) == ("0", 4)


def test_records_that_expire_while_others_are_read_are_a_loss(topics, name, broker, caplog):
    for _ in range(40):
        topics.produce(name, bytes(100_000))
    few = {"queued.min.messages": "1", "fetch.message.max.bytes": "100000"}
    address = KafkaAddress.of_topic(name, {"bootstrap.servers": broker.address, **few})
    strict, tolerant = (
        read_range(address, OffsetRange("0", 0, 40), ReadSettings(rows_per_batch=1, **more))
        for more in ({}, {"fail_on_data_loss": False})
    )
    assert [next(each).num_rows for each in (strict, tolerant)] == [1, 1]
    topics.trim(name, "0", before=35)
    with pytest.raises(DataLossError, match="the first retained is 35"):
        list(strict)
    rest = [batch["sequenceNumber"][0].as_py() for batch in tolerant]
    assert rest[-5:] == [35, 36, 37, 38, 39]
    assert len(rest) < 39
    assert "events are lost" in caplog.text


def test_a_topic_that_was_created_again_is_a_loss(topics, name, address):
    topics.publish(name, "0", 20)
    assert ends(address) == (0, 20)
    topics.recreate(name, 1)
    topics.publish(name, "0", 3)
    with pytest.raises(DataLossError, match="Was the hub deleted and created again"):
        rows(address, 10, 20, STRICT)
    with pytest.raises(DataLossError, match="Was the hub deleted and created again"):
        rows(address, 2, 20, STRICT)
    assert numbers(address, 0, 20) == [0, 1, 2]


def test_what_is_not_there_is_named(broker, name):
    own = {"bootstrap.servers": broker.address}
    with pytest.raises(ConfigurationError, match=r"has no topic 'Nothing' over Kafka"):
        list_partitions(KafkaAddress.of_topic("Nothing", own))
    address = KafkaAddress.of_topic(name, own)
    with pytest.raises(ConfigurationError, match="has no partition 7; it has 0"):
        partition_properties(address, ["7"])
    # One that a hub had before it was created again.
    assert [*partition_properties(address, expected=["0", "7"])] == ["0"]


def test_a_time_is_the_first_record_that_is_not_before_it(topics, name, address):
    base = datetime(2026, 1, 1, tzinfo=UTC)
    for second in range(5):
        stamp = int((base + timedelta(seconds=second)).timestamp() * 1000)
        topics.produce(name, b"body", timestamp=stamp)

    def first(seconds, inclusive=True):
        return first_event(address, "0", base + timedelta(seconds=seconds), inclusive, 30)

    assert [first(-1), first(2), first(2.0004), first(2.5)] == [0, 2, 3, 3]
    assert [first(2, inclusive=False), first(4, inclusive=False)] == [3, 5]
    assert first(100) == 5


def of_hub(broker, name, hub):
    own = {"bootstrap.servers": broker.sasl_address, "security.protocol": "SASL_PLAINTEXT"}
    return KafkaAddress.of_hub(hub, own)


def test_a_connection_string_is_a_log_in(broker, topics, name):
    topics.publish(name, "0", 3)
    hub = HubAddress.from_connection_string(CONNECTION_STRING, eventhub_name=name)
    address = of_hub(broker, name, hub)
    assert address.scope() == hub.scope()
    assert ends(address) == (0, 3)
    assert numbers(address, 0, 3) == [0, 1, 2]


def test_a_wrong_key_is_said_at_once_and_not_shown(broker, name):
    wrong = CONNECTION_STRING.replace("a2V5", "d3Jvbmc")
    address = of_hub(broker, name, HubAddress.from_connection_string(wrong, eventhub_name=name))
    with pytest.raises(ConfigurationError, match="Invalid username or password") as refused:
        partition_properties(address)
    assert "d3Jvbmc" not in str(refused.value)
    stream = address.open_stream("0", 0, 3, STRICT)
    with stream, pytest.raises(ConfigurationError, match="Invalid username or password"):
        stream.next(LIMIT)


class Tokens:
    """A credential whose tokens nobody has signed, as the broker takes them."""

    def get_token(self, *scopes, **_):
        now = int(time.time())
        claims = {"sub": "reader", "iat": now, "exp": now + 3600}
        texts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        token = ".".join(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in texts)
        return AccessToken(f"{token}.", now + 3600)


def test_tokens_are_a_log_in(broker, topics, name):
    topics.publish(name, "0", 3)
    hub = HubAddress.from_credential("ns.servicebus.windows.net", name, Tokens())
    address = of_hub(broker, name, hub)
    assert list_partitions(address) == ["0"]
    assert numbers(address, 1, 3) == [1, 2]


def test_a_server_without_a_log_in_is_told_from_one_that_is_not_there(broker, name):
    hub = HubAddress.from_connection_string(CONNECTION_STRING, eventhub_name=name)
    own = {"bootstrap.servers": broker.address, "security.protocol": "SASL_PLAINTEXT"}
    with pytest.raises(ConfigurationError, match=r"Check .* kafka\.security\.protocol"):
        list_partitions(KafkaAddress.of_hub(hub, own))
    tls = {"bootstrap.servers": broker.address, "security.protocol": "SSL"}
    address = KafkaAddress.of_topic(name, tls)
    # What librdkafka makes of it depends on how far the handshake had come.
    said = "connecting to a PLAINTEXT broker listener|SSL connection closed by peer"
    with pytest.raises(HubUnavailableError, match=said):
        address.ask_first("0", datetime.now(UTC), True, 1.5)
