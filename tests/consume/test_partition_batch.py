"""Rows of a batch as events of the official client, which the rest of the package works with."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pytest
from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpMessageProperties

from eventhub_checkpoints.consume.partition_batch import PartitionBatch
from eventhub_checkpoints.consume.settings import NAMES
from eventhub_checkpoints.dead_letters import DeadLetter
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.batches import SCHEMA, schema_of
from eventhub_checkpoints.receive.columns import Columns

TEN = datetime(2026, 11, 21, 10, 0, 0, 123000, tzinfo=UTC)
MILLISECONDS = round(TEN.timestamp() * 1000)


def received(number, body=None, properties=None, key=None, offset="", **message):
    """Return an event as the client receives it."""
    event = EventData(f"event {number}" if body is None else body)
    event.properties = properties or {}
    annotations = {
        b"x-opt-sequence-number": number,
        b"x-opt-enqueued-time": MILLISECONDS + number,
    }
    if offset is not None:
        annotations[b"x-opt-offset"] = (offset or f"{number * 100}").encode()
    if key is not None:
        annotations[b"x-opt-partition-key"] = key.encode()
    event.raw_amqp_message.annotations = annotations
    if message:
        event.raw_amqp_message.properties = AmqpMessageProperties(**message)
    return event


def batch_of(events, columns=None):
    schema = SCHEMA if columns is None else schema_of(columns)
    return PartitionBatch.of("0", columns_of(events), schema)


def test_a_row_is_an_event_with_all_that_its_columns_have():
    batch = batch_of([received(4), received(5, properties={"kind": "a", "n": 3}, key="key")])
    event = batch[1]
    assert isinstance(event, EventData)
    assert event.body_as_str() == "event 5"
    assert b"".join(event.body) == b"event 5"
    assert (event.sequence_number, event.offset) == (5, "500")
    assert event.enqueued_time == datetime.fromtimestamp((MILLISECONDS + 5) / 1000, UTC)
    assert event.partition_key == b"key"
    assert event.properties == {"kind": "a", "n": "3"}
    assert batch[0].properties == {}
    assert batch[0].partition_key is None


def test_a_key_is_as_the_client_receives_it():
    """A handler of dead letters need not know where an event came from."""
    original = received(5, key="key", properties={"kind": "a"})
    (event,) = batch_of([original])
    assert event.partition_key == original.partition_key
    assert event.offset == original.offset
    assert event.enqueued_time == original.enqueued_time
    assert event.body_as_str() == original.body_as_str()
    assert event.sequence_number == original.sequence_number


@pytest.mark.parametrize("body", [b"", b"\0\xff", "Zürich".encode(), bytes(100_000)])
def test_a_body_is_the_same_bytes(body):
    (event,) = batch_of([received(0, body)])
    assert b"".join(event.body) == body


def test_a_batch_is_a_sequence():
    batch = batch_of([received(number) for number in range(10, 15)])
    assert len(batch) == 5
    assert batch
    assert [event.sequence_number for event in batch] == [10, 11, 12, 13, 14]
    assert [event.sequence_number for event in reversed(batch)] == [14, 13, 12, 11, 10]
    assert (batch[0].sequence_number, batch[-1].sequence_number) == (10, 14)
    assert batch.numbers == range(10, 15)
    assert batch.last == (14, "1400")
    for index in (5, -6):
        with pytest.raises(IndexError):
            batch[index]


def test_a_long_batch_is_iterated_over_whole():
    batch = batch_of([received(number, b"") for number in range(2_500)])
    assert [event.sequence_number for event in batch] == [*range(2_500)]
    assert [event.offset for event in batch][-1] == "249900"


def test_a_batch_without_rows_is_false_and_has_its_columns():
    for columns in (None, ["body"]):
        schema = SCHEMA if columns is None else schema_of(columns)
        batch = PartitionBatch.of("0", Columns(), schema)
        assert not batch
        assert (len(batch), [*batch]) == (0, [])
        assert batch.arrow.num_rows == 0
        assert batch.arrow.schema == schema
        with pytest.raises(IndexError):
            batch[-1]


@pytest.mark.parametrize(
    ("at", "numbers"),
    [
        (slice(None), [10, 11, 12, 13, 14]),
        (slice(1, 3), [11, 12]),
        (slice(3, 100), [13, 14]),
        (slice(-2, None), [13, 14]),
        (slice(3, 1), []),
        (slice(4, 5), [14]),
    ],
)
def test_a_slice_is_a_batch_of_its_rows(at, numbers):
    batch = batch_of([received(number) for number in range(10, 15)])[at]
    assert isinstance(batch, PartitionBatch)
    assert [*batch.numbers] == numbers
    assert len(batch) == len(numbers)
    assert batch.arrow["sequenceNumber"].to_pylist() == numbers
    assert [event.sequence_number for event in batch] == numbers
    assert [event.offset for event in batch] == [str(number * 100) for number in numbers]
    if numbers:
        assert batch.last == (numbers[-1], str(numbers[-1] * 100))
        again = batch[len(batch) - 1 :]
        assert [event.body_as_str() for event in again] == [f"event {numbers[-1]}"]


@pytest.mark.parametrize("step", [2, -1, -2])
def test_a_slice_with_a_step_has_the_rows_that_a_list_would_have(step):
    batch = batch_of([received(number) for number in range(10, 15)])
    expected = [event.sequence_number for event in [*batch][::step]]
    assert [event.sequence_number for event in batch[::step]] == expected


def test_the_numbers_of_a_batch_with_gaps_are_those_of_its_rows():
    batch = batch_of([received(number) for number in (3, 4, 9, 10)])
    assert [*batch.numbers] == [3, 4, 9, 10]
    assert [event.sequence_number for event in batch] == [3, 4, 9, 10]
    assert [*batch[1:3].numbers] == [4, 9]
    assert batch[1:3].last == (9, "900")
    assert batch[-1].offset == "1000"


def test_numbers_that_begin_anew_are_those_of_the_rows():
    """A hub that was created again while a batch was joined."""
    batch = batch_of([received(number) for number in (98, 99, 0, 1)])
    assert [*batch.numbers] == [98, 99, 0, 1]
    assert batch.last == (1, "100")


HAVE_KEYS = ("partitionKey", "systemProperties")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_in_no_column_is_missing_but_the_position_is_there(name):
    original = received(7, properties={"kind": "a"}, key="key")
    (event,) = batch_of([original], [name])
    assert (event.sequence_number, event.offset) == (7, "700")
    assert event.body_as_str() == ("event 7" if name == "body" else "")
    assert event.properties == ({"kind": "a"} if name == "properties" else {})
    assert event.partition_key == (b"key" if name in HAVE_KEYS else None)
    assert (event.enqueued_time is not None) == (name == "enqueuedTime")


def test_an_event_without_an_offset_has_none():
    batch = batch_of([received(7, offset=None)])
    assert batch.last == (7, None)
    assert batch[0].offset is None
    assert batch[0].sequence_number == 7


def test_system_properties_are_those_that_have_a_column():
    event = batch_of([received(7, key="key")])[0]
    names = {b"x-opt-sequence-number", b"x-opt-offset", b"x-opt-enqueued-time"}
    assert {*event.system_properties} == names | {b"x-opt-partition-key"}


MESSAGE = {
    **{
        name: name.encode()
        for name in (
            *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id"),
            *("content_type", "content_encoding", "group_id", "reply_to_group_id"),
        )
    },
    "absolute_expiry_time": MILLISECONDS,
    "creation_time": 5,
    "group_sequence": 7,
}


def test_the_properties_of_a_message_are_those_that_the_client_receives():
    original = received(7, key="key", **MESSAGE)
    (event,) = batch_of([original])
    assert event.system_properties == original.system_properties
    assert (event.message_id, event.content_type) == ("message_id", "content_type")
    assert event.correlation_id == "correlation_id"
    (event,) = batch_of([received(7, content_type=b"text/plain")], ["systemProperties"])
    assert event.content_type == "text/plain"
    assert event.message_id is None


CONTEXT = SimpleNamespace(
    fully_qualified_namespace="ns",
    eventhub_name="orders",
    consumer_group="$Default",
    partition_id="3",
)


def test_a_dead_letter_keeps_a_row():
    original = received(7, properties={"kind": "a"}, key="key", **MESSAGE)
    (event,) = batch_of([original])
    kept = DeadLetter.of(CONTEXT, event, ValueError("no number"))
    assert (kept.partition_id, kept.sequence_number, kept.offset) == ("3", 7, "700")
    assert kept.body == b"event 7"
    assert kept.properties == {"kind": "a"}
    assert kept.partition_key == "key"
    assert kept.enqueued_time == datetime.fromtimestamp((MILLISECONDS + 7) / 1000, UTC)
    assert "no number" in kept.error_message
    of_client = DeadLetter.of(CONTEXT, original, ValueError("no number"))
    assert replace(kept, time=TEN) == replace(of_client, time=TEN)
    assert kept.amqp_properties["content_type"] == "content_type"
    assert DeadLetter.from_json(kept.to_json()) == kept


def test_a_dead_letter_of_chosen_columns_keeps_those():
    (event,) = batch_of([received(7, properties={"kind": "a"})], ["body"])
    kept = DeadLetter.of(CONTEXT, event, OSError())
    assert (kept.sequence_number, kept.offset, kept.body) == (7, "700", b"event 7")
    assert kept.properties == {}
    assert kept.enqueued_time is None


def test_the_arrow_batch_is_not_copied():
    batch = batch_of([received(number) for number in range(3)])
    assert isinstance(batch.arrow, pa.RecordBatch)
    assert batch.arrow is batch.arrow
    body = batch.arrow["body"].buffers()[2]
    assert batch[1:].arrow["body"].buffers()[2].address == body.address
