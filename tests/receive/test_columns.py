import uuid
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from eventhub_checkpoints.receive.amqp.events import body_bytes, columns_of
from eventhub_checkpoints.receive.batches import SCHEMA, binary_array, in_batches, record_batch
from eventhub_checkpoints.receive.columns import as_text

ENQUEUED = 1795255200123


def event(body=b"body", properties=None, **annotations):
    made = EventData(body)
    made.properties = properties
    made.raw_amqp_message.annotations = {
        b"x-opt-sequence-number": 7,
        b"x-opt-offset": b"4711",
        b"x-opt-enqueued-time": ENQUEUED,
        **{key.replace("_", "-").encode(): value for key, value in annotations.items()},
    }
    return made


def batch_of(*made):
    return record_batch("3", columns_of(made))


def row(made):
    return batch_of(made).to_pylist()[0]


def test_the_nine_columns_of_the_connector_are_filled():
    made = event(properties={b"k": b"v"}, x_opt_partition_key=b"device-1", x_opt_publisher=b"door")
    made.content_type = "application/json"
    assert row(made) == {
        "body": b"body",
        "partition": "3",
        "offset": "4711",
        "sequenceNumber": 7,
        "enqueuedTime": datetime.fromtimestamp(ENQUEUED / 1000, UTC),
        "publisher": "door",
        "partitionKey": "device-1",
        "properties": [("k", "v")],
        "systemProperties": [
            ("content-type", "application/json"),
            ("x-opt-partition-key", "device-1"),
            ("x-opt-publisher", "door"),
        ],
    }


def test_the_schema_is_the_one_that_spark_derives():
    kinds = {
        "body": BinaryType(),
        "sequenceNumber": LongType(),
        "enqueuedTime": TimestampType(),
        "properties": MapType(StringType(), StringType()),
        "systemProperties": MapType(StringType(), StringType()),
    }
    fields = [StructField(name, kinds.get(name, StringType())) for name in SCHEMA.names]
    assert to_arrow_schema(StructType(fields), timezone="UTC").equals(SCHEMA)


def test_an_empty_list_is_an_empty_batch():
    assert batch_of().schema.equals(SCHEMA)
    assert batch_of().num_rows == 0


def test_what_an_event_does_not_carry_is_null_or_empty():
    found = row(event())
    assert found["publisher"] is None
    assert found["partitionKey"] is None
    assert found["properties"] == []
    assert found["systemProperties"] == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"text", "text"),
        ("text", "text"),
        ("ünï", "ünï"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (b"\xff\x01", "[-1,1]"),
        ([1, b"a", {b"k": None}], '[1,"a",{"k":null}]'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    ],
)
def test_a_property_is_its_text_or_its_json(value, text):
    assert row(event(properties={b"k": value}))["properties"] == [("k", text)]


def test_a_property_that_is_not_a_string_does_not_change_the_others():
    made = event(properties={b"before": b"text", b"it": b"\xff", b"after": "text", b"n": 2**40})
    pairs = [("before", "text"), ("it", "[-1]"), ("after", "text"), ("n", "1099511627776")]
    assert row(made)["properties"] == pairs


def test_each_event_has_its_own_properties():
    made = [event(properties={b"k": b"1"}), event(), event(properties={b"k": b"2", b"l": b"3"})]
    column = batch_of(*made).column("properties")
    assert column.to_pylist() == [[("k", "1")], [], [("k", "2"), ("l", "3")]]


def test_a_null_property_is_the_connectors_null():
    assert row(event(properties={"k": None}))["properties"] == [("k", "null")]
    assert as_text(None) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (AmqpAnnotatedMessage(data_body=[b"a", b"b"]), b"ab"),
        (AmqpAnnotatedMessage(data_body=b""), b""),
        (AmqpAnnotatedMessage(value_body=b"raw"), b"raw"),
        (AmqpAnnotatedMessage(value_body="text"), b"text"),
        (AmqpAnnotatedMessage(value_body={"a": 1}), b'{"a":1}'),
        (AmqpAnnotatedMessage(sequence_body=[[1, 2], ["x"]]), b'[[1,2],["x"]]'),
    ],
    ids=["two sections", "empty", "binary value", "text value", "map value", "sequences"],
)
def test_a_body_of_any_kind_becomes_bytes(message, expected):
    assert body_bytes(message) == expected


def test_times_keep_their_milliseconds():
    column = batch_of(event()).column("enqueuedTime")
    assert column.cast(pa.int64()).to_pylist() == [ENQUEUED * 1000]


def test_parts_of_the_size_of_a_batch_are_not_copied():
    parts = [columns_of([event(b"x" * 10)] * 4) for _ in range(3)]
    assert [*map(id, in_batches(iter(parts), 4, 1000))] == [*map(id, parts)]


def test_other_parts_are_joined_and_cut():
    bodies = [b"%d" % number for number in range(11)]
    parts = [columns_of([event(body) for body in bodies[at : at + 3]]) for at in range(0, 11, 3)]
    assert [each.bodies for each in in_batches(parts, 4, 1000)] == [
        bodies[:4],
        bodies[4:8],
        bodies[8:],
    ]


@pytest.mark.parametrize("values", [[], [b""], [b"", b"ab", b""], [b"\xff" * 70_000, b"c"] * 3])
def test_byte_strings_are_the_array_that_arrow_makes_of_them(values):
    array = binary_array(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.binary()))
