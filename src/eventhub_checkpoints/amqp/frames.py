"""Encoding of AMQP frames, and their extraction from a stream of bytes.

Source: OASIS AMQP 1.0, part 2, sections 2.2 and 2.3; part 5, section 5.3.1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from eventhub_checkpoints.amqp.composites import Composite, from_described
from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Transfer,
)
from eventhub_checkpoints.amqp.types import CodecError

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.constructors import Buffer

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
TLS_HEADER = b"AMQP\x02\x01\x00\x00"
EMPTY_FRAME = b"\x00\x00\x00\x08\x02\x00\x00\x00"
"""Frame without a body: a heartbeat."""

AMQP_FRAME, SASL_FRAME = 0, 1
MIN_MAX_FRAME_SIZE = 512

_BODIES = (
    *(Transfer, Flow, Disposition, Attach, Detach, Begin, End, Open, Close),
    *(SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome),
)

_HEAD = struct.Struct(">IBBH")


class Frame(NamedTuple):
    """Frame inside a buffer: the body extends from `start` to `end`."""

    kind: int
    channel: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Body:
    """A frame's performative (None in an empty frame) and the payload behind it."""

    performative: Composite | None
    payload: bytes


def encode_frame(
    performative: Composite, channel: int = 0, payload: bytes = b"", kind: int = AMQP_FRAME
) -> bytes:
    """Encode a frame; `payload` follows the performative unchanged."""
    body = performative.encode()
    return _HEAD.pack(8 + len(body) + len(payload), 2, kind, channel) + body + payload


def split_frame(buffer: Buffer, offset: int, limit: int) -> Frame | None:
    """Find the frame that starts at `offset`.

    Args:
        buffer: received bytes.
        offset: where the frame starts.
        limit: the negotiated maximum frame size, in bytes.

    Returns:
        The frame, or None while some of its bytes are missing.

    Raises:
        CodecError: the header is impossible, or the frame is larger than the limit.
    """
    if len(buffer) - offset < 8:
        return None
    size, words, kind, channel = _HEAD.unpack_from(buffer, offset)
    if size < 8 or words < 2 or words * 4 > size or kind > SASL_FRAME:
        raise CodecError(f"{bytes(buffer[offset : offset + 8])!r} is no AMQP frame header")
    if size > limit:
        raise CodecError(f"a frame of {size} bytes is larger than the {limit} agreed on")
    if len(buffer) - offset < size:
        return None
    return Frame(kind, channel, offset + words * 4, offset + size)


def decode_body(buffer: Buffer, frame: Frame) -> Body:
    """Decode a frame's performative; the payload is copied out of the buffer.

    Raises:
        CodecError: the body is not a performative.
    """
    if frame.start == frame.end:
        return Body(None, b"")
    # The view keeps the decoder from reading on into the next frame.
    with memoryview(buffer) as whole, whole[frame.start : frame.end] as view:
        value, at = decode(view)
        performative = from_described(value)
        if not isinstance(performative, _BODIES):
            raise CodecError(f"a frame's body is no {type(performative).__name__}")
        return Body(performative, bytes(view[at:]))
