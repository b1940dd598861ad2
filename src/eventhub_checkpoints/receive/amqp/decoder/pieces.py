"""Values as pieces of a pattern: constructors and keys are literals, contents are groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.constructors import skip
from eventhub_checkpoints.amqp.decode import PLAIN
from eventhub_checkpoints.receive.amqp.decoder.events import ENQUEUED_TIME, SEQUENCE_NUMBER
from eventhub_checkpoints.receive.amqp.decoder.slots import (
    INTEGERS,
    TEXTS,
    TRUTHS,
    UNREADABLE,
    Slot,
    is_sized,
    width_of,
)

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.messages import Section
    from eventhub_checkpoints.amqp.types import Value
    from eventhub_checkpoints.receive.amqp.decoder.patterns import Pattern


class NotRegularError(Exception):
    """A frame has parts that no template can describe; the generic decoder always reads it."""


def open_compound(pattern: Pattern, raw: bytes, at: int) -> tuple[int, int]:
    """Add the constructor, size and count of a list or map; return the count and items' offset."""
    width = {0xC0: 1, 0xC1: 1, 0xD0: 4, 0xD1: 4}.get(raw[at])
    if width is None:
        raise NotRegularError
    begin = at + 1 + width
    pattern.literal(raw[at : at + 1])
    # Not verified: all items are read, so the size of a compound adds no information.
    pattern.skip(width)
    pattern.literal(raw[begin : begin + width])
    return int.from_bytes(raw[begin : begin + width], "big"), begin + width


def slot_of(pattern: Pattern, raw: bytes, at: int, fixed_size: bool = False) -> Slot:
    """Add a value to the pattern, with its constructor as a literal; return its slot."""
    code = raw[at]
    if code in TRUTHS:
        return Slot(code, pattern.one_of(b"[AB]"))
    if code in UNREADABLE:
        raise NotRegularError
    width = width_of(code)
    if width == 0:
        pattern.literal(raw[at : at + 1])
        return Slot(code)
    if fixed_size and code in TEXTS:
        end = skip(raw, at)
        pattern.literal(raw[at : at + 1 + width])
        return Slot(code, pattern.fixed(end - at - 1 - width))
    pattern.literal(raw[at : at + 1])
    if is_sized(code):
        return Slot(code, pattern.sized(width), has_size=True)
    return Slot(code, pattern.one_of(b"[\x00\x01]") if code == 0x56 else pattern.fixed(width))


def pairs_of(pattern: Pattern, raw: bytes, part: Section) -> dict[Value, Slot]:
    """Add a section's map; return the slots of its values by key."""
    number, at = open_compound(pattern, raw, part.start)
    slots: dict[Value, Slot] = {}
    for _ in range(number // 2):
        key, end = PLAIN.decode(raw, at)
        if key in slots:
            raise NotRegularError
        pattern.literal(raw[at:end])
        slots[key] = _pair_slot(pattern, raw, end, key)
        at = skip(raw, end)
    return slots


def _pair_slot(pattern: Pattern, raw: bytes, at: int, key: Value) -> Slot:
    if key == ENQUEUED_TIME:
        # The generic decoder reads and checks later times, and those before 1970.
        if raw[at] != 0x83:
            raise NotRegularError
        pattern.literal(b"\x83")
        return Slot(0x83, pattern.one_of(rb"\x00[\x00-\x1f].{6}"))
    if key == SEQUENCE_NUMBER and (raw[at] not in INTEGERS or raw[at] == 0x80):
        raise NotRegularError
    # An offset nearly always has as many digits as the one before it.
    return slot_of(pattern, raw, at, fixed_size=isinstance(key, bytes) and key.endswith(b"offset"))


def true_slot(pattern: Pattern, raw: bytes, at: int) -> Slot:
    """Add a value that counts as set: a number other than 0, or a string that is not empty."""
    code = raw[at]
    if code not in TEXTS and code not in INTEGERS:
        raise NotRegularError
    pattern.literal(raw[at : at + 1])
    width = width_of(code)
    if not any(raw[at + 1 : at + 1 + width]):
        raise NotRegularError
    if code in TEXTS:
        return Slot(code, pattern.sized(width, least=1), has_size=True)
    return Slot(code, pattern.one_of(rb"(?!\x00{%d})%b" % (width, b"." * width)))
