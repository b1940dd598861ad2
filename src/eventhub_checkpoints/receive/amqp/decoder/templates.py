"""Frame template: the bytes that frames of one producer share, and the slots between them.

A template becomes a regular expression (see `patterns`): constructors, keys, counts and the
transfer's flags are literals, and values are groups. It has two halves. The head extends to the end
of the message annotations, which the service writes; the producer writes the tail. They are
separate because the head of a frame is often known where the tail is not.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from eventhub_checkpoints.amqp import messages
from eventhub_checkpoints.amqp.decode import PLAIN, WIDTHS, skip
from eventhub_checkpoints.receive.amqp.decoder.events import PROPERTY_NAMES, SMALL_DESCRIPTOR
from eventhub_checkpoints.receive.amqp.decoder.patterns import Pattern
from eventhub_checkpoints.receive.columns import (
    ENQUEUED_TIME,
    IN_OTHER_COLUMNS,
    SEQUENCE_NUMBER,
    as_text,
    as_texts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventhub_checkpoints.amqp.types import Value
    from eventhub_checkpoints.receive.columns import Text

Groups: TypeAlias = "Sequence[list[bytes]]"
"""Contents of the groups of a template: one list per group, with one item per row."""

INTEGERS = {
    **dict.fromkeys((0x50, 0x52, 0x53), "B"),
    **dict.fromkeys((0x51, 0x54, 0x55), "b"),
    **dict.fromkeys((0x81, 0x83), "q"),
    0x60: "H",
    0x61: "h",
    0x70: "I",
    0x71: "i",
    0x80: "Q",
}
"""Constructors of integers, with their formats for `struct`."""

BINARY = (0xA0, 0xB0)
TEXTS = frozenset({*BINARY, 0xA1, 0xA3, 0xB1, 0xB3})
"""Constructors of binary, string and symbol values, which may be UTF-8."""

UNREADABLE = frozenset({0x00, 0x73, *range(0xC0, 0x100)})
"""Constructors of values whose bytes may be invalid: described values, characters, compounds. Such
values are decoded when the frame arrives: an error when the row is taken would be too late.
"""

TRUTHS = {b"\x41": "true", b"\x42": "false"}
FALSY = (0x40, 0x42, 0x43, 0x44, 0x45)
"""Constructors of values that are null, zero, false or empty."""

_DELIVERY_ID, _TAG, _SETTLED, _STATE = 1, 2, 4, 7
_FIELD_NAMES = {*as_texts(PROPERTY_NAMES)}


class NotRegularError(Exception):
    """A frame has parts that no template can describe; it is always decoded without one."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Position of a value in the groups of a template, and its conversion for many rows at once.

    Attributes:
        code: the value's constructor.
        group: number of the value's group; None where there is only a constructor.
        has_size: whether that group holds the size, and the next one the content.
    """

    code: int
    group: int | None = None
    has_size: bool = False

    def integers(self, groups: Groups, rows: int) -> list[int]:
        """Return the values of all rows of an integer slot."""
        if self.group is None:
            return [0] * rows
        joined = b"".join(groups[self.group])
        return list(struct.unpack(f">{rows}{INTEGERS[self.code]}", joined))

    def nullable(self, groups: Groups, rows: int) -> list[Text | None]:
        """Return the values of all rows as strings, null as None."""
        return [None] * rows if self.code == 0x40 else [*self.texts(groups, rows)]

    def texts(self, groups: Groups, rows: int) -> list[Text]:
        """Return the values of all rows as strings, null as JSON's `null`."""
        begin = bytes((self.code,))
        if self.group is None:
            return as_texts([PLAIN.decode(begin)[0]]) * rows
        contents = groups[self.group + 1] if self.has_size else groups[self.group]
        if self.code in TEXTS:
            return _utf8(contents)
        if self.code in INTEGERS:
            return [*map(str, self.integers(groups, rows))]
        if begin in TRUTHS:
            return [TRUTHS[content] for content in contents]
        return as_texts(PLAIN.decode(begin + content)[0] for content in contents)


def _utf8(contents: list[bytes]) -> list[Text]:
    # Joined, all values are checked at once. The separator keeps them apart: in UTF-8 a zero byte
    # is never part of another character.
    joined = b"\x00".join(contents)
    if not joined.isascii():
        try:
            joined.decode()
        except UnicodeDecodeError:
            return [as_text(content) or "" for content in contents]
    return list(contents)


NULL = Slot(0x40)


@dataclass(slots=True)
class FrameTemplate:
    """Template of the frames of one producer, and the slots of its values.

    Attributes:
        head, tail: the two halves; their groups are numbered consecutively.
        delivery_id: slot of the transfer's delivery id.
        settled: whether the peer sends these deliveries settled.
        annotations: slots of message annotations, by key.
        others: names and slots of the annotations that are system properties.
        fields: names and slots of the fields of the properties section, also system properties.
        properties: names and slots of application properties.
    """

    head: Pattern = field(default_factory=Pattern)
    tail: Pattern = field(default_factory=Pattern)
    delivery_id: Slot = NULL
    settled: bool = False
    annotations: dict[Value, Slot] = field(default_factory=dict)
    others: list[tuple[Text, Slot]] = field(default_factory=list)
    fields: list[tuple[Text, Slot]] = field(default_factory=list)
    properties: list[tuple[Text, Slot]] = field(default_factory=list)

    @property
    def systems(self) -> list[tuple[Text, Slot]]:
        """Return names and slots of all system properties, in order."""
        return self.fields + self.others

    @property
    def has_useful_head(self) -> bool:
        """Return whether the head fits any tail: no annotation is named like a property field."""
        return _FIELD_NAMES.isdisjoint(name for name, _ in self.others)


def template_of(raw: bytes) -> FrameTemplate:
    """Return the template of a frame that has been decoded as one event.

    Raises:
        NotRegularError: the frame has none.
    """
    template = FrameTemplate()
    head, tail = template.head, template.tail
    fields = skip(raw, 4 * raw[4] + 1)
    head.skip(4)
    head.literal(raw[4:fields])
    _add_transfer(template, raw, fields)
    sections = list(messages.sections(raw, skip(raw, fields)))
    codes = [section.code for section in sections]
    is_regular = codes == sorted(set(codes)) and codes[-1:] == [messages.DATA]
    if messages.MESSAGE_ANNOTATIONS not in codes or not is_regular:
        raise NotRegularError
    behind_head = codes.index(messages.MESSAGE_ANNOTATIONS) + 1
    for section in sections[:behind_head]:
        head.literal(_descriptor(raw, section))
        if section.code == messages.HEADER:
            head.literal(raw[section.start : section.end])
        else:
            template.annotations = _add_map(head, raw, section.start)
    if SEQUENCE_NUMBER not in template.annotations:
        raise NotRegularError
    annotations = template.annotations.items()
    template.others = _named(
        {key: slot for key, slot in annotations if key not in IN_OTHER_COLUMNS}
    )
    head.literal(SMALL_DESCRIPTOR)
    tail.groups = head.groups
    for section in sections[behind_head:]:
        begin = _descriptor(raw, section)
        is_first = section is sections[behind_head]
        tail.literal(begin.removeprefix(SMALL_DESCRIPTOR) if is_first else begin)
        code = raw[section.start]
        if section.code == messages.PROPERTIES:
            template.fields = _add_fields(tail, raw, section.start)
        elif section.code == messages.APPLICATION_PROPERTIES:
            template.properties = _named(_add_map(tail, raw, section.start))
        else:
            tail.last(BINARY if code in BINARY else (code,))
    names = [name for name, _ in template.systems]
    if len(set(names)) < len(names):
        raise NotRegularError
    return template


def _named(slots: dict[Value, Slot]) -> list[tuple[Text, Slot]]:
    return [*zip(as_texts(slots), slots.values(), strict=True)]


def _descriptor(raw: bytes, section: messages.Section) -> bytes:
    begin = SMALL_DESCRIPTOR + bytes((section.code,))
    if raw[section.offset : section.start] != begin:
        raise NotRegularError
    return begin


def _add_transfer(template: FrameTemplate, raw: bytes, at: int) -> None:
    pattern = template.head
    count, at = _open_compound(pattern, raw, at)
    for index in range(count):
        end = skip(raw, at)
        value = raw[at:end]
        if index == _DELIVERY_ID:
            template.delivery_id = _add_value(pattern, raw, at)
        elif index == _TAG and value != b"\x40":
            width = _width_of(value[0])
            pattern.literal(value[: 1 + width])
            pattern.skip(len(value) - 1 - width)
        elif index == _STATE and value != b"\x40":
            raise NotRegularError
        else:
            pattern.literal(value)
        if index == _SETTLED:
            template.settled = value in (b"\x41", b"\x56\x01")
        at = end


def _add_fields(pattern: Pattern, raw: bytes, at: int) -> list[tuple[Text, Slot]]:
    """Add the properties section; a field that is 0 or empty counts as not set."""
    slots: list[tuple[Text, Slot]] = []
    count, at = _open_compound(pattern, raw, at)
    for name in PROPERTY_NAMES[:count]:
        end = skip(raw, at)
        if raw[at] in FALSY:
            pattern.literal(raw[at:end])
        else:
            slots.append((name.decode(), _add_field(pattern, raw, at)))
        at = end
    return slots


def _add_field(pattern: Pattern, raw: bytes, at: int) -> Slot:
    """Add a value that counts as set: a number other than 0, or a non-empty string."""
    code = raw[at]
    if code not in TEXTS and code not in INTEGERS:
        raise NotRegularError
    width = _width_of(code)
    if not any(raw[at + 1 : at + 1 + width]):
        raise NotRegularError
    pattern.literal(raw[at : at + 1])
    if code in TEXTS:
        return Slot(code, pattern.sized(width, least=1), has_size=True)
    return Slot(code, pattern.one_of(rb"(?!\x00{%d})%b" % (width, b"." * width)))


def _add_map(pattern: Pattern, raw: bytes, at: int) -> dict[Value, Slot]:
    """Add a map; return the slots of its values by key."""
    count, at = _open_compound(pattern, raw, at)
    slots: dict[Value, Slot] = {}
    for _ in range(count // 2):
        key, end = PLAIN.decode(raw, at)
        if key in slots:
            raise NotRegularError
        pattern.literal(raw[at:end])
        slots[key] = _add_pair_value(pattern, raw, end, key)
        at = skip(raw, end)
    return slots


def _add_pair_value(pattern: Pattern, raw: bytes, at: int, key: Value) -> Slot:
    if key == ENQUEUED_TIME:
        # Times before 1970, or beyond this pattern, are decoded and checked without a template.
        if raw[at] != 0x83:
            raise NotRegularError
        pattern.literal(b"\x83")
        return Slot(0x83, pattern.one_of(rb"\x00[\x00-\x1f].{6}"))
    if key == SEQUENCE_NUMBER and (raw[at] not in INTEGERS or raw[at] == 0x80):
        raise NotRegularError
    # An offset nearly always has as many digits as the one before it.
    is_offset = isinstance(key, bytes) and key.endswith(b"offset")
    return _add_value(pattern, raw, at, fixed_size=is_offset)


def _add_value(pattern: Pattern, raw: bytes, at: int, fixed_size: bool = False) -> Slot:
    """Add a value to the pattern, with its constructor as a literal; return its slot."""
    code, constructor = raw[at], raw[at : at + 1]
    if constructor in TRUTHS:
        return Slot(code, pattern.one_of(b"[AB]"))
    if code in UNREADABLE:
        raise NotRegularError
    width = _width_of(code)
    if fixed_size and code in TEXTS:
        pattern.literal(raw[at : at + 1 + width])
        return Slot(code, pattern.fixed(skip(raw, at) - at - 1 - width))
    pattern.literal(constructor)
    if width == 0:
        return Slot(code)
    if code >= 0xA0:
        return Slot(code, pattern.sized(width), has_size=True)
    return Slot(code, pattern.one_of(b"[\x00\x01]") if code == 0x56 else pattern.fixed(width))


def _open_compound(pattern: Pattern, raw: bytes, at: int) -> tuple[int, int]:
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


def _width_of(code: int) -> int:
    """Return the bytes of a constructor's value; from 0xa0 on, those of the value's size."""
    return WIDTHS[code >> 4] if code < 0xA0 else 4 if code & 0x10 else 1
