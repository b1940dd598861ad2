"""A few bytes that all frames of one layout have in common, and few others: its sign.

By it the layout of a frame is looked up, where it would take a match for each to find it. A sign
decides nothing: what is found by it has to match.
"""

from __future__ import annotations

from eventhub_checkpoints.amqp.messages import (
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
)

_ANNOTATIONS = bytes((MESSAGE_ANNOTATIONS, 0xC1))
_LARGE_ANNOTATIONS = bytes((MESSAGE_ANNOTATIONS, 0xD1))
_FIELDS = bytes((PROPERTIES, 0xC0))
_PAIRS = bytes((APPLICATION_PROPERTIES, 0xC1))

_BEFORE = (HEADER, DELIVERY_ANNOTATIONS)
_SMALL = (0xC0, 0xC1)

_TRANSFER = 12
"""Where a frame of a transfer has the size of its small list."""


def sign_of(data: bytes, at: int) -> bytes:
    """The sign of the frame at `at`; b"" where it is built otherwise than nearly all are.

    It holds the counts of annotations, properties and application properties, the first property's
    constructor, and the first letters of the first application property's name.
    """
    try:
        at += _TRANSFER + 3 + data[at + _TRANSFER]
        while data[at] in _BEFORE and data[at + 1] in _SMALL:
            at += 5 + data[at + 2]
        begin = data[at : at + 2]
        if begin == _ANNOTATIONS:
            sign = data[at + 3 : at + 4]
            at += 5 + data[at + 2]
        elif begin == _LARGE_ANNOTATIONS:
            sign = data[at + 6 : at + 10]
            at += 8 + int.from_bytes(data[at + 2 : at + 6], "big")
        else:
            return b""
        begin = data[at : at + 2]
        if begin == _FIELDS:
            sign += data[at + 3 : at + 5]
            at += 5 + data[at + 2]
            begin = data[at : at + 2]
        if begin == _PAIRS:
            return sign + data[at + 3 : at + 8]
        return sign + begin[:1]
    except IndexError:
        # What was taken for a size is none.
        return b""
