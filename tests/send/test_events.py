"""Rows become the messages that the official client would send."""

import pyarrow as pa
from azure.eventhub._pyamqp._decode import decode_payload
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.amqp.messages import split_batch
from eventhub_checkpoints.send.arrow import read_rows
from eventhub_checkpoints.send.events import encode_rows
from examples import examples

MAP = pa.map_(pa.string(), pa.string())
TEXTS = st.text(max_size=300)
ASCII = st.text(st.characters(max_codepoint=127), min_size=1, max_size=300)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "body": st.binary(max_size=700),
            "partitionKey": st.none() | st.text(min_size=1, max_size=300),
            "contentType": st.none() | ASCII,
            "properties": st.none() | st.dictionaries(TEXTS, st.none() | TEXTS, max_size=4),
        }
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = pa.schema(
    [
        ("body", pa.binary()),
        ("partitionKey", pa.string()),
        ("contentType", pa.string()),
        ("properties", MAP),
    ]
)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def as_row(message):
    """What the official client decodes."""
    annotations = {text(key): text(value) for key, value in (message[2] or {}).items()}
    return {
        "body": b"".join(message[5]),
        "partitionKey": annotations.get("x-opt-partition-key"),
        "contentType": text(message[3][6]) if message[3] else None,
        "properties": {text(key): text(value) for key, value in (message[4] or {}).items()},
    }


@examples(25)
@given(ROWS, st.integers(0, 3))
def test_the_official_client_decodes_what_the_rows_say(rows, start):
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA).slice(min(start, len(rows) - 1))
    encoded = encode_rows(read_rows(batch))
    messages = split_batch(b"".join(encoded))
    expected = [{**row, "properties": row["properties"] or {}} for row in rows]
    decoded = [as_row(decode_payload(memoryview(message))) for message in messages]
    assert decoded == expected[len(rows) - len(batch) :]


@examples(25)
@given(st.lists(st.binary(max_size=700) | st.text(max_size=99).map(str.encode), min_size=1))
def test_bodies_alone_take_the_same_form(bodies):
    for kind in (pa.binary(), pa.large_binary()):
        batch = pa.RecordBatch.from_arrays([pa.array(bodies, kind)], ["body"])
        messages = split_batch(b"".join(encode_rows(read_rows(batch))))
        assert [b"".join(decode_payload(memoryview(each))[5]) for each in messages] == bodies
