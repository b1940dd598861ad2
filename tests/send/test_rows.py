"""Columns and rows that cannot be sent."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.send import SendSettings
from eventhub_checkpoints.send.arrow import check_schema, read_rows


def refusal(batch):
    with pytest.raises(ConfigurationError) as refused:
        read_rows(batch)
    return str(refused.value)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([("partitionKey", pa.string())], "the column body is missing"),
        ([("body", pa.int64())], "the column body has the type int64; expected binary or string"),
        ([("body", pa.string()), ("Body", pa.string())], "column 'Body' cannot be sent"),
        ([("body", pa.string()), ("body", pa.string())], "the column body occurs twice"),
        ([("body", pa.string()), ("partitionId", pa.int32())], "partitionId has the type int32"),
        ([("body", pa.string()), ("properties", pa.string())], "expected map<string,string>"),
        (
            [("body", pa.string()), ("properties", pa.map_(pa.string(), pa.timestamp("us")))],
            r"type map<string, timestamp\[us\]>; expected .* in which a time has a time zone",
        ),
        (
            [("body", pa.string()), ("properties", pa.map_(pa.string(), pa.int64()))],
            "cast other values to strings",
        ),
        ([("body", pa.timestamp("us", "UTC"))], r"body has the type timestamp\[us, tz=UTC\]; exp"),
        (
            [("body", pa.string()), ("enqueuedTime", pa.timestamp("us", "UTC"))],
            "column 'enqueuedTime' cannot be sent: .* partition as partitionId keeps the partition",
        ),
    ],
)
def test_a_frame_with_other_columns_is_refused(fields, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        check_schema(pa.schema(fields))


def test_a_row_without_a_body_is_refused(rows):
    assert refusal(rows(["a", None])).startswith("row 1 of a batch has no body")


def test_a_row_with_a_key_and_an_id_is_refused(rows):
    batch = rows(["a", "b"], partitionKey=[None, "k"], partitionId=["0", "1"])
    assert refusal(batch) == (
        "row 1 of a batch has a partitionKey and a partitionId; leave one of them out"
    )


def test_an_id_that_is_not_a_number_and_an_empty_key_are_refused(rows):
    assert "the partitionId 'first'" in refusal(rows(["a"], partitionId=["first"]))
    assert "an empty partitionKey" in refusal(rows(["a"], partitionKey=[""]))
    assert "expected ASCII" in refusal(rows(["a"], contentType=["text/plaïn"]))


def test_columns_of_nulls_choose_nothing(rows):
    read = read_rows(rows(["a"], partitionKey=[None], properties=[None], contentType=[None]))
    assert (read.partition_keys, read.properties, read.content_types) == (None, None, None)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_read_in_milliseconds(unit):
    moments = [
        datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC),
        None,
        datetime(2026, 11, 21, tzinfo=UTC),
    ]
    kind = pa.map_(pa.string(), pa.timestamp(unit, tz="Europe/Berlin"))
    pairs = pa.array([[("at", moment)] for moment in moments], kind)
    read = read_rows(
        pa.RecordBatch.from_arrays([pa.array(["a"] * 3), pairs], ["body", "properties"])
    )
    assert read.properties.values == [-2000, None, 1_795_219_200_000]


def test_less_than_a_millisecond_is_dropped():
    moment = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)
    pairs = pa.array([[("at", moment)]], pa.map_(pa.string(), pa.timestamp("us", tz="UTC")))
    read = read_rows(pa.RecordBatch.from_arrays([pa.array(["a"]), pairs], ["body", "properties"]))
    assert read.properties.values == [-1]


@pytest.mark.parametrize(
    "setting",
    [{"send_path": "quick"}, {"bytes_per_batch": 0}, {"most_in_flight": 1.5},
     {"operation_timeout": 0}, {"partitioner": "java"}, {"partitioner": None}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ConfigurationError, match=next(iter(setting))):
        SendSettings(**setting)
