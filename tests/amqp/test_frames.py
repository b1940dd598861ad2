"""Frames in a stream of bytes."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.amqp.performatives import (
    AMQP_FRAME,
    EMPTY_FRAME,
    SASL_FRAME,
    Accepted,
    Detach,
    Error,
    Open,
    SaslOutcome,
    Transfer,
    decode_body,
    encode_frame,
    split_frame,
)
from eventhub_checkpoints.amqp.types import CodecError
from examples import examples

LIMIT = 1 << 20


def test_a_frame_comes_back_with_its_channel_and_payload():
    raw = encode_frame(Transfer(handle=3, more=True), channel=258, payload=b"payload")
    frame = split_frame(b"before" + raw + b"after", 6, LIMIT)
    body = decode_body(b"before" + raw + b"after", frame)
    assert (frame.kind, frame.channel, frame.end) == (AMQP_FRAME, 258, 6 + len(raw))
    assert body.performative == Transfer(handle=3, more=True)
    assert body.payload == b"payload"


def test_a_frame_of_the_security_layer_says_so():
    raw = encode_frame(SaslOutcome(), kind=SASL_FRAME)
    assert split_frame(raw, 0, LIMIT).kind == SASL_FRAME


def test_an_empty_frame_has_no_performative():
    body = decode_body(EMPTY_FRAME, split_frame(EMPTY_FRAME, 0, LIMIT))
    assert (body.performative, body.payload) == (None, b"")


def test_an_extended_header_is_skipped():
    raw = encode_frame(Detach(handle=1))
    longer = (len(raw) + 4).to_bytes(4, "big") + b"\x03" + raw[5:8] + b"more" + raw[8:]
    assert decode_body(longer, split_frame(longer, 0, LIMIT)).performative == Detach(handle=1)


def test_a_frame_that_is_not_all_there_is_waited_for():
    raw = encode_frame(Open(container_id="c"))
    for length in range(len(raw)):
        assert split_frame(raw[:length], 0, LIMIT) is None


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("00000007 02000000", "not an AMQP frame header"),
        ("00000010 01000000", "not an AMQP frame header"),
        ("00000008 03000000", "not an AMQP frame header"),
        ("00000010 02070000", "not an AMQP frame header"),
        ("00200000 02000000", "larger than the 1048576 negotiated"),
        ("ffffffff 02000000", "larger"),
    ],
)
def test_an_impossible_header_is_refused_before_its_body_is_waited_for(header, reason):
    with pytest.raises(CodecError, match=reason):
        split_frame(bytes.fromhex(header), 0, LIMIT)


@pytest.mark.parametrize("body", [Accepted(), Error()], ids=lambda body: type(body).__name__)
def test_a_body_that_is_not_a_performative_is_refused(body):
    raw = encode_frame(body)
    with pytest.raises(CodecError):
        decode_body(raw, split_frame(raw, 0, LIMIT))


def test_a_body_never_reads_into_the_next_frame():
    raw = encode_frame(Open(container_id="container"))
    short = (len(raw) - 3).to_bytes(4, "big") + raw[4:]
    with pytest.raises(CodecError):
        decode_body(short + raw, split_frame(short + raw, 0, LIMIT))


@examples(300)
@given(st.binary(max_size=100))
def test_a_body_of_any_bytes_gives_a_performative_or_the_codecs_error(body):
    raw = bytearray((8 + len(body)).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body)
    with suppress(CodecError):
        decode_body(raw, split_frame(raw, 0, LIMIT))
    # A view that was left open would forbid this.
    raw.clear()
