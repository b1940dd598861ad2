"""Messages and their sections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.amqp.decode import Decoder
from eventhub_checkpoints.amqp.encode import encode, encode_described
from eventhub_checkpoints.amqp.messages import (
    DATA,
    NO_VALUE,
    VALUE,
    Header,
    Message,
    Properties,
    decode_message,
    encode_batch,
    section,
    sections,
    split_batch,
)
from eventhub_checkpoints.amqp.types import CodecError, Symbol, Timestamp, UInt
from examples import examples

FULL = Message(
    header=Header(durable=True, priority=1, ttl=1000, first_acquirer=True, delivery_count=2),
    delivery_annotations={Symbol("d"): 1},
    message_annotations={Symbol("x-opt-offset"): "12", Symbol("x-opt-enqueued-time"): Timestamp(1)},
    properties=Properties(
        message_id="m",
        user_id=b"u",
        to="t",
        subject="s",
        reply_to="r",
        correlation_id=5,
        content_type="application/json",
        content_encoding="gzip",
        absolute_expiry_time=1,
        creation_time=2,
        group_id="g",
        group_sequence=3,
        reply_to_group_id="rg",
    ),
    application_properties={"a": 1, "b": UInt(2)},
    data=[b"one", b"two"],
    footer={Symbol("f"): None},
)

bodies = st.one_of(
    st.builds(Message, data=st.lists(st.binary(max_size=300), min_size=1, max_size=3)),
    st.builds(Message, sequence=st.lists(st.lists(st.integers(0, 9)), min_size=1, max_size=3)),
    st.builds(Message, value=st.none() | st.text(max_size=300) | st.booleans()),
)


def test_every_section_comes_back():
    assert decode_message(FULL.encode()) == FULL


@examples(100)
@given(bodies)
def test_every_kind_of_body_comes_back(message):
    assert decode_message(memoryview(message.encode())) == message


def test_a_value_section_of_null_is_not_the_same_as_none():
    assert decode_message(section(VALUE, None)).value is None
    assert decode_message(section(DATA, b"")).value is NO_VALUE


def test_keys_of_annotations_are_written_as_symbols():
    message = decode_message(Message(message_annotations={"a": 1}).encode())
    assert [type(key) for key in message.message_annotations] == [Symbol]


def test_sections_are_found_without_reading_them():
    raw = FULL.encode()
    found = list(sections(raw))
    assert [part.code for part in found] == [
        0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x75, 0x78,
    ]  # fmt: skip
    assert [part.offset for part in found[1:]] == [part.end for part in found[:-1]]
    assert raw[found[5].start : found[5].end] == encode(b"one")


def test_sections_may_be_named_by_symbol():
    raw = b"\x00" + encode(Symbol("amqp:data:binary")) + encode(b"x")
    assert decode_message(raw).data == [b"x"]


def test_a_message_cut_off_anywhere_raises_the_codecs_error_or_lacks_sections():
    raw = FULL.encode()
    ends = {part.end for part in sections(raw)} | {0}
    for length in range(len(raw)):
        if length in ends:
            decode_message(raw[:length])
        else:
            with pytest.raises(CodecError):
                decode_message(raw[:length])


def test_the_messages_of_a_batch_come_back():
    messages = [Message(data=[bytes((number,))]).encode() for number in range(3)]
    envelope = Message(message_annotations={Symbol("x-opt-partition-key"): "k"})
    assert split_batch(encode_batch(messages, envelope)) == messages
    assert split_batch(encode_batch([])) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"\x40",
        b"\x00\x53\x79\x40",
        b"\x00\x53\x10\xc0\x01\x00",
        encode_described(DATA, encode("text")),
        encode_described(0x72, encode([])),
        encode_described(0x73, encode({})),
        encode_described(0x76, encode(b"")),
        b"\x00\xc0\x01\x00\x40",
    ],
    ids=bytes.hex,
)
def test_bytes_that_are_not_a_message_are_refused(raw):
    with pytest.raises(CodecError):
        decode_message(raw)


def test_a_batch_of_something_else_than_binary_is_refused():
    with pytest.raises(CodecError):
        split_batch(encode_described(DATA, encode("text")))


def test_a_lenient_decoder_keeps_an_event_whose_text_is_not_utf_8():
    raw = encode_described(0x74, b"\xc1\x07\x02\xa1\x01a\xa1\x01\xff") + section(DATA, b"x")
    with pytest.raises(CodecError):
        decode_message(raw)
    message = decode_message(raw, decoder=Decoder("replace"))
    assert (message.application_properties, message.data) == ({"a": "\ufffd"}, [b"x"])


@examples(300)
@given(st.binary(max_size=100))
def test_any_bytes_give_a_message_or_the_codecs_error(raw):
    try:
        decode_message(raw)
    except CodecError:
        return
