"""Shape of a transfer: the byte template that frames of one layout share.

Constructors, keys, counts and the transfer's flags are literals; values are groups. The template
has two halves, as the head is often known where the tail is not: the head extends to the end of the
message annotations, which the service writes; the producer writes the tail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.constructors import skip
from eventhub_checkpoints.amqp.messages import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    section,
    sections,
)
from eventhub_checkpoints.receive.amqp.decoder.events import (
    IN_OTHER_COLUMNS,
    PROPERTY_NAMES,
    SEQUENCE_NUMBER,
)
from eventhub_checkpoints.receive.amqp.decoder.patterns import Pattern
from eventhub_checkpoints.receive.amqp.decoder.pieces import (
    NotRegularError,
    open_compound,
    pairs_of,
    slot_of,
    true_slot,
)
from eventhub_checkpoints.receive.amqp.decoder.slots import (
    BINARY,
    FALSY,
    NONE,
    Slot,
    width_of,
)
from eventhub_checkpoints.receive.amqp.decoder.tails import SMALL_DESCRIPTOR
from eventhub_checkpoints.receive.amqp.decoder.values import as_texts

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.messages import Section
    from eventhub_checkpoints.amqp.types import Value
    from eventhub_checkpoints.receive.amqp.decoder.columns import Text

_DELIVERY_ID, _TAG, _SETTLED, _STATE = 1, 2, 4, 7
_FIELD_NAMES = {*as_texts(PROPERTY_NAMES)}


@dataclass(slots=True)
class Shape:
    """Template of a layout and the positions of its values.

    Attributes:
        head, tail: the two halves of the regex; groups are numbered through both.
        delivery_id: position of the transfer's delivery id.
        settled: whether the peer sends these deliveries settled.
        annotations: slots of message annotations, by key.
        others: names and slots of the annotations that are system properties.
        fields: names and slots of the fields of the properties section, also system properties.
        properties: names and slots of application properties.
    """

    head: Pattern = field(default_factory=Pattern)
    tail: Pattern = field(default_factory=Pattern)
    delivery_id: Slot = NONE
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
        """Return whether the head fits any tail, that is, no annotation has the name of a field."""
        return _FIELD_NAMES.isdisjoint(name for name, _ in self.others)


def shape_of(raw: bytes) -> Shape:
    """Find the shape of a frame that was read as one event.

    Raises:
        NotRegularError: the frame has none.
    """
    fields = skip(raw, 4 * raw[4] + 1)
    payload = skip(raw, fields)
    shape = Shape()
    shape.head.skip(4)
    shape.head.literal(raw[4:fields])
    _read_transfer(shape, raw, fields)
    parts = list(sections(raw, payload))
    codes = [part.code for part in parts]
    if MESSAGE_ANNOTATIONS not in codes or codes != sorted(set(codes)) or codes[-1] != DATA:
        raise NotRegularError
    at = codes.index(MESSAGE_ANNOTATIONS) + 1
    for part in parts[:at]:
        _open_section(shape.head, raw, part)
        _HEAD_SECTIONS[part.code](shape, raw, part)
    shape.head.literal(SMALL_DESCRIPTOR)
    shape.tail.groups = shape.head.groups
    for part in parts[at:]:
        _open_section(shape.tail, raw, part, opened=part is parts[at])
        _TAIL_SECTIONS[part.code](shape, raw, part)
    names = [name for name, _ in shape.systems]
    if len(set(names)) < len(names):
        raise NotRegularError
    return shape


def _open_section(pattern: Pattern, raw: bytes, part: Section, opened: bool = False) -> None:
    begin = section(part.code, None)[:-1]
    if raw[part.offset : part.start] != begin:
        raise NotRegularError
    pattern.literal(begin[len(SMALL_DESCRIPTOR) :] if opened else begin)


def _read_transfer(shape: Shape, raw: bytes, at: int) -> None:
    pattern = shape.head
    number, at = open_compound(pattern, raw, at)
    for place in range(number):
        end = skip(raw, at)
        value = raw[at:end]
        if place == _DELIVERY_ID:
            shape.delivery_id = slot_of(pattern, raw, at)
        elif place == _TAG and value != b"\x40":
            width = width_of(value[0])
            pattern.literal(value[: 1 + width])
            pattern.skip(len(value) - 1 - width)
        elif place == _STATE and value != b"\x40":
            raise NotRegularError
        else:
            pattern.literal(value)
        if place == _SETTLED:
            shape.settled = value in (b"\x41", b"\x56\x01")
        at = end


def _ignored_list(shape: Shape, raw: bytes, part: Section) -> None:
    shape.head.literal(raw[part.start : part.end])


def _ignored_map(shape: Shape, raw: bytes, part: Section) -> None:
    pairs_of(shape.head, raw, part)


def _annotations(shape: Shape, raw: bytes, part: Section) -> None:
    shape.annotations = pairs_of(shape.head, raw, part)
    if SEQUENCE_NUMBER not in shape.annotations:
        raise NotRegularError
    others = {key: one for key, one in shape.annotations.items() if key not in IN_OTHER_COLUMNS}
    shape.others += zip(as_texts(others), others.values(), strict=True)


def _properties(shape: Shape, raw: bytes, part: Section) -> None:
    """Add the properties section; a field that is 0 or empty counts as not set."""
    number, at = open_compound(shape.tail, raw, part.start)
    for name in PROPERTY_NAMES[:number]:
        end = skip(raw, at)
        if raw[at] in FALSY:
            shape.tail.literal(raw[at:end])
        else:
            shape.fields.append((name.decode(), true_slot(shape.tail, raw, at)))
        at = end


def _application_properties(shape: Shape, raw: bytes, part: Section) -> None:
    pairs = pairs_of(shape.tail, raw, part)
    shape.properties += zip(as_texts(pairs), pairs.values(), strict=True)


def _data(shape: Shape, raw: bytes, part: Section) -> None:
    code = raw[part.start]
    shape.tail.last(BINARY if code in BINARY else (code,))


_HEAD_SECTIONS = {
    HEADER: _ignored_list,
    DELIVERY_ANNOTATIONS: _ignored_map,
    MESSAGE_ANNOTATIONS: _annotations,
}
_TAIL_SECTIONS = {
    PROPERTIES: _properties,
    APPLICATION_PROPERTIES: _application_properties,
    DATA: _data,
}
