"""Sign of a frame: a few bytes that frames of one layout share and few others have.

The sign is the key by which the layout of a frame is looked up, instead of trying the regular
expression of each. It decides nothing: the layout found still has to match.
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
"""Offset in a transfer frame of the size of its small list."""


def sign_of(data: bytes, at: int) -> bytes:
    """Return the sign of the frame at `at`, or b"" if the frame has an unusual structure.

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
        # The byte used as a size is not a size.
        return b""
