"""Rows go to a hub over the real client's connection, through faults."""

import logging
import time
from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pytest
from azure.eventhub import EventData, EventHubProducerClient

from eventhub_checkpoints import ConfigurationError, HubUnavailableError
from eventhub_checkpoints._shared.partition_keys import partition_of
from eventhub_checkpoints.amqp.messages import decode_message, split_batch
from eventhub_checkpoints.amqp.types import Timestamp
from eventhub_checkpoints.localhub import session
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sdk import fallback, private_names
from eventhub_checkpoints.sdk.private_names import SEND, PrivateName
from eventhub_checkpoints.sdk.sender import OfficialSender
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.amqp import fast
from eventhub_checkpoints.send.amqp.public import EPOCH, public_value
from eventhub_checkpoints.send.amqp.sender import HubSender
from eventhub_checkpoints.send.arrow import read_rows, send_all, send_batches
from eventhub_checkpoints.send.events import encode_rows
from waiting import LIMIT

PATHS = pytest.mark.parametrize("path", ["fast", "public"])
SMALL = 2000
"""Bytes of a batch, so that few events make many batches."""


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch):
    monkeypatch.setattr(fallback, "_said", set())


class Clock:
    """The clock of a sender, which stands still unless the sender sleeps."""

    def __init__(self):
        self.seconds = 0.0
        self._began = time.monotonic()

    def monotonic(self):
        return self._began + self.seconds

    def pause(self, seconds):
        self.seconds = round(self.seconds + seconds, 6)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    replaced = SimpleNamespace(monotonic=clock.monotonic, sleep=clock.pause)
    monkeypatch.setattr(fast, "time", replaced)
    return clock


def bodies(stored, partition=None):
    return [
        row["body"].decode()
        for where, rows in stored().items()
        for row in rows
        if partition in (None, where)
    ]


@PATHS
def test_every_column_arrives(address, rows, stored, path):
    batch = rows(
        ["a", "b", "c"],
        partitionKey=["key", None, None],
        partitionId=[None, "2", None],
        contentType=["text/plain", None, None],
        properties=[[("n", "1"), ("none", None)], [], None],
    )
    assert send_batches(address, [batch], SendSettings(send_path=path)) == 3
    found = {row["body"]: row for own in stored().values() for row in own}
    assert found[b"a"]["partition"] == partition_of("key", ["0", "1", "2", "3"])
    assert found[b"a"]["partitionKey"] == "key"
    assert ("content-type", "text/plain") in found[b"a"]["systemProperties"]
    assert dict(found[b"a"]["properties"])["n"] == "1"
    assert (found[b"b"]["partition"], found[b"b"]["properties"]) == ("2", [])
    assert found[b"c"]["partitionKey"] is None


@PATHS
def test_times_arrive_as_times_of_amqp(address, stored, path):
    moment = datetime(2026, 11, 21, 10, 0, 0, 123_456, tzinfo=UTC)
    kind = pa.map_(pa.string(), pa.timestamp("us", tz="UTC"))
    properties = pa.array([[("at", moment), ("none", None)], [("at", EPOCH)]], kind)
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), properties], ["body", "properties"])
    assert send_batches(address, [batch], SendSettings(send_path=path)) == 2
    found = {row["body"]: dict(row["properties"]) for own in stored().values() for row in own}
    assert found == {b"a": {"at": "1795255200123", "none": "null"}, b"b": {"at": "0"}}
    sent = [
        decode_message(encoded).application_properties["at"]
        for encoded in split_batch(b"".join(encode_rows(read_rows(batch))))
    ]
    assert [(type(value), value) for value in sent] == [
        (Timestamp, 1_795_255_200_123),
        (Timestamp, 0),
    ]
    assert [public_value(value) for value in sent] == [moment.replace(microsecond=123_000), EPOCH]


def test_a_time_that_the_public_path_cannot_send_is_refused():
    with pytest.raises(ConfigurationError, match="use sendPath=fast, or send a string"):
        public_value(Timestamp(2**62))


def test_keys_get_the_partitions_that_the_python_producer_gives_them(hub, address, stored, rows):
    keys = [f"Zug Nr. {number}" for number in range(40)] + ["Zürich", "東京都千代田区"]
    producer = EventHubProducerClient.from_connection_string(
        hub.connection_string("orders"),
        buffered_mode=True,
        on_success=lambda events, partition: None,
        on_error=lambda events, partition, error: None,
    )
    with producer:
        for key in keys:
            producer.send_event(EventData(key), partition_key=key)
        producer.flush()
    theirs = {row["body"]: row["partition"] for own in stored().values() for row in own}
    assert len(theirs) == len(keys)
    for partitioner, is_same in (("python", True), ("service", False)):
        hub.recreate("orders", 4)
        settings = SendSettings(partitioner=partitioner)
        send_batches(address, [rows(keys, partitionKey=keys)], settings)
        ours = {row["body"]: row["partition"] for own in stored().values() for row in own}
        assert (ours == theirs) is is_same


def test_no_rows_need_no_hub(rows):
    text = "Endpoint=sb://nowhere.invalid/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=h"
    assert send_batches(HubAddress.from_connection_string(text), []) == 0


def test_one_connection_serves_all_partitions(hub, address, rows, monkeypatch):
    opened = []
    send_delivery = OfficialSender.send_delivery

    def watched(self, *arguments):
        opened.append(hub.connections())
        return send_delivery(self, *arguments)

    monkeypatch.setattr(OfficialSender, "send_delivery", watched)
    send_batches(address, [rows(["x"] * 8, partitionId=list("01230123"))])
    assert opened == [1] * 4


def test_a_sender_keeps_to_the_window_of_the_hub(address, rows, stored, monkeypatch):
    monkeypatch.setattr(session, "WINDOW", 40)
    windows = []
    send_delivery = OfficialSender.send_delivery

    def watched(self, partition_id, frames, timeout):
        windows.append(self._session.remote_incoming_window - self._uncounted)
        assert len(frames) <= windows[-1] <= 40
        return send_delivery(self, partition_id, frames, timeout)

    monkeypatch.setattr(OfficialSender, "send_delivery", watched)
    batches = [rows(["x" * 250_000] * 4, partitionId=list("0123"))] * 5
    assert send_batches(address, batches) == 20
    assert len(bodies(stored)) == 20
    assert min(windows) < 40


def test_a_partition_stays_in_order_though_deliveries_are_refused(
    hub, address, rows, stored, monkeypatch
):
    monkeypatch.setattr(fast, "PAUSE_WHEN_BUSY", 0.001)
    numbers = [str(number) for number in range(2000)]
    ids = [str(number % 4) for number in range(2000)]
    hub.reject_sends(25, "com.microsoft:server-busy")
    settings = SendSettings(send_path="fast", bytes_per_batch=SMALL)
    assert send_batches(address, [rows(numbers, partitionId=ids)], settings) == 2000
    for partition in "0123":
        expected = [n for n, own in zip(numbers, ids, strict=True) if own == partition]
        assert bodies(stored, partition) == expected


def test_batches_without_answers_are_sent_again_and_nothing_else(hub, address, rows, stored):
    hub.lose_answers(3)
    numbers = [str(number) for number in range(1000)]
    settings = SendSettings(send_path="fast", bytes_per_batch=SMALL)
    assert send_batches(address, [rows(numbers, partitionId=["1"] * 1000)], settings) == 1000
    found = bodies(stored, "1")
    assert list(dict.fromkeys(found)) == numbers
    copies = Counter(found)
    # One unanswered batch at a time: each lost answer copies one batch of at most 2,000 bytes.
    assert 0 < sum(count - 1 for count in copies.values()) <= 3 * SMALL // 6


def test_events_without_a_partition_survive_broken_connections(hub, address, rows, stored):
    numbers = [str(number) for number in range(3000)]
    hub.lose_answers(2)
    settings = SendSettings(send_path="fast", bytes_per_batch=SMALL, most_in_flight=4)
    assert send_batches(address, [rows(numbers)], settings) == 3000
    assert set(bodies(stored)) == set(numbers)


def test_a_throttled_sender_pauses_as_long_as_the_service_asks(
    hub, address, rows, stored, monkeypatch, clock
):
    sent_at = []
    send_delivery = OfficialSender.send_delivery

    def watched(self, *arguments):
        sent_at.append(clock.seconds)
        return send_delivery(self, *arguments)

    monkeypatch.setattr(OfficialSender, "send_delivery", watched)
    hub.reject_sends(3, "com.microsoft:server-busy")
    assert send_batches(address, [rows(["x"])]) == 1
    assert sent_at == [0.0, 4.0, 8.0, 12.0]
    assert len(bodies(stored)) == 1


def test_a_hub_that_stays_busy_is_an_error_in_time(hub, address, rows, clock):
    hub.reject_sends(100_000, "com.microsoft:server-busy", "too much traffic")
    settings = SendSettings(operation_timeout=10)
    with pytest.raises(HubUnavailableError, match=r"not confirmed within 10 s: too much traffic"):
        send_batches(address, [rows(["x"])], settings)
    assert clock.seconds == 10.0


def test_an_error_says_how_much_was_sent(hub, address, rows, stored):
    def batches():
        yield rows(["x" * 900_000] * 20, partitionId=["0"] * 20)
        yield rows(["x" * 1_100_000])

    sentence = r"row 0 of a batch is an event of .* at most 1,048,576 bytes"
    with pytest.raises(ConfigurationError, match=sentence) as refused:
        send_batches(address, batches())
    assert "events were sent before and are in the hub" in str(refused.value)
    assert len(bodies(stored)) >= 18


@PATHS
def test_an_error_counts_what_was_on_its_way(hub, address, rows, stored, path):
    def batches():
        yield rows(["x" * 400] * 6000)
        hub.delay(0.1)
        yield rows(["x", None])

    with pytest.raises(ConfigurationError, match="row 1 of a batch has no body") as refused:
        send_batches(address, batches(), SendSettings(send_path=path))
    hub.delay(0)
    count = len(bodies(stored))
    assert 5000 < count < 6000
    assert f"{count:,} events were sent before and are in the hub" in str(refused.value)
    assert "Up to" not in str(refused.value)


@PATHS
def test_an_error_counts_what_may_be_in_the_hub(hub, rows, stored, path):
    text = hub.connection_string("orders")
    impatient = HubAddress.from_connection_string(text, retry_total=0)
    settings = SendSettings(send_path=path, operation_timeout=LIMIT)
    with HubSender(impatient, settings) as sender:
        send_all(sender, [rows(["a"] * 20)])
        hub.lose_answers(100)
        with pytest.raises(HubUnavailableError) as lost:
            send_all(sender, [rows(["b"] * 30)])
        hub.lose_answers(0)
    assert str(lost.value).endswith("Up to 30 events may be in the hub, which has not answered")
    assert set(bodies(stored)) == {"a", "b"}


def test_a_batch_that_is_confirmed_too_late_is_counted(
    hub, address, rows, stored, monkeypatch, clock
):
    has_more = OfficialSender.has_more.fget
    # No answer is read before its time is up.
    in_time = property(lambda self: clock.seconds > 0 and has_more(self))
    monkeypatch.setattr(OfficialSender, "has_more", in_time)

    def batches():
        yield rows(["x" * 900] * 10)
        clock.seconds = 100.0

    settings = SendSettings(send_path="fast", bytes_per_batch=SMALL)
    with HubSender(address, settings) as sender:
        send_all(sender, [rows(["a"])])
        with pytest.raises(HubUnavailableError, match="not confirmed within 60 s") as error:
            send_all(sender, batches())
    assert len(bodies(stored)) == 9
    assert str(error.value).endswith("8 events were sent before and are in the hub")


@PATHS
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"eventhub_name": "missing"}, "has no event hub 'missing'"),
        ({"partition": "9"}, "a row names a partition that"),
        ({"token": True}, "right to send"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(hub, rows, path, change, sentence):
    name = change.get("eventhub_name", "orders")
    text = hub.connection_string("orders")
    own = HubAddress.from_connection_string(text, eventhub_name=name, retry_total=0)
    hub.refuse_tokens("token" in change)
    batch = rows(["x"], partitionId=[change.get("partition", "0")])
    with pytest.raises(ConfigurationError, match=sentence):
        send_batches(own, [batch], SendSettings(send_path=path, operation_timeout=LIMIT))


def test_a_closed_port_is_one_sentence(rows):
    text = (
        "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;"
        "UseDevelopmentEmulator=true;EntityPath=orders"
    )
    address = HubAddress.from_connection_string(text, retry_total=0)
    with pytest.raises(HubUnavailableError, match="cannot be reached"):
        send_batches(address, [rows(["x"])])


def test_a_changed_client_is_used_by_its_public_api(address, rows, stored, monkeypatch, caplog):
    changed = PrivateName("Session", "renamed", "a test", (SEND,))
    monkeypatch.setattr(private_names, "PRIVATE_NAMES", (*private_names.PRIVATE_NAMES, changed))
    for _ in range(2):
        assert send_batches(address, [rows(["a", "b"])]) == 2
    assert Counter(bodies(stored)) == {"a": 2, "b": 2}
    [sentence] = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert "Session.renamed" in sentence
    assert "public API" in sentence
    with pytest.raises(ConfigurationError, match=r"Session\.renamed"):
        send_batches(address, [rows(["a"])], SendSettings(send_path="fast"))


def test_a_client_that_changes_while_sending_is_continued_by_its_public_api(
    address, rows, stored, monkeypatch, caplog
):
    send_delivery, calls = OfficialSender.send_delivery, []

    def breaking(self, *arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise AttributeError("'SenderLink' object has no attribute 'delivery_count'")
        return send_delivery(self, *arguments)

    monkeypatch.setattr(OfficialSender, "send_delivery", breaking)
    numbers = [str(number) for number in range(1000)]
    settings = SendSettings(bytes_per_batch=SMALL)
    assert send_batches(address, [rows(numbers, partitionId=["0"] * 1000)], settings) == 1000
    assert bodies(stored, "0") == numbers
    assert "has changed" in caplog.text
