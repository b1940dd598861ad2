"""Rows to send, in columns, and their encoding as messages of an AMQP batch."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from eventhub_checkpoints.amqp.messages import (
    APPLICATION_PROPERTIES,
    DATA,
    MESSAGE_ANNOTATIONS,
    Properties,
    section,
)
from eventhub_checkpoints.amqp.types import Symbol, Timestamp
from eventhub_checkpoints.receive.columns import PARTITION_KEY

Text = str | bytes
"""A string, or its UTF-8 encoding."""

PropertyValue = Text | Timestamp
"""Value of an application property."""


@dataclass(slots=True, kw_only=True)
class PropertyMaps:
    """Column of application properties, stored as in Arrow: flat lists and offsets.

    Attributes:
        ends: offsets as in Arrow: 0, then the end of each row's pairs.
        keys, values: the pairs of all rows; a value may be None.
    """

    ends: Sequence[int]
    keys: Sequence[Text]
    values: Sequence[PropertyValue | None]


@dataclass(slots=True, kw_only=True)
class EventRows:
    """Rows of one input batch, one list per column.

    Attributes:
        bodies: the payloads.
        partition_ids: None for the column, or for a row: the service or the key chooses.
        partition_keys: likewise; a row has at most one of both.
        content_types: likewise.
        properties: None where no row has any.
    """

    bodies: Sequence[bytes]
    partition_ids: Sequence[str | None] | None = None
    partition_keys: Sequence[str | None] | None = None
    content_types: Sequence[str | None] | None = None
    properties: PropertyMaps | None = None

    def __len__(self) -> int:
        return len(self.bodies)


def encode_rows(rows: EventRows) -> list[bytes]:
    """Encode each row as a data section that holds its message, for a batch of any partition."""
    heads = encode_heads(rows)
    if heads is None:
        return [two_heads(len(body)) + body for body in rows.bodies]
    sections: list[bytes] = []
    add = sections.append
    for head, body in zip(heads, rows.bodies, strict=True):
        inner = data_head(len(body))
        add(b"".join((data_head(len(head) + len(inner) + len(body)), head, inner, body)))
    return sections


def encode_heads(rows: EventRows) -> list[bytes] | None:
    """Encode what precedes the body of each row's message; None if nothing does in any row."""
    count = len(rows)
    keys = rows.partition_keys or [None] * count
    kinds = rows.content_types or [None] * count
    has_heads = rows.partition_keys is not None or rows.content_types is not None
    fixed = list(map(encode_fixed, keys, kinds)) if has_heads else None
    if rows.properties is None:
        return fixed
    properties = encode_properties(rows.properties)
    return properties if fixed is None else list(map(bytes.__add__, fixed, properties))


@lru_cache(maxsize=4096)
def encode_fixed(partition_key: str | None, content_type: str | None) -> bytes:
    """Encode the sections before the application properties: annotations and properties."""
    head = b""
    if partition_key is not None:
        annotations = {Symbol(PARTITION_KEY.decode()): partition_key}
        head = section(MESSAGE_ANNOTATIONS, annotations)
    if content_type is not None:
        head += Properties(content_type=content_type).encode()
    return head


def encode_properties(maps: PropertyMaps) -> list[bytes]:
    """Encode the application properties of each row; of a row without any, as nothing."""
    keys, values = encode_values(maps.keys), encode_values(maps.values)
    pairs = [*chain.from_iterable(zip(keys, values, strict=True))]
    sections: list[bytes] = []
    begin = maps.ends[0]
    for end in maps.ends[1:]:
        if begin == end:
            sections.append(b"")
            continue
        body = b"".join(pairs[2 * begin : 2 * end])
        count, size = 2 * (end - begin), len(body)
        if size < 255 and count < 256:
            sections.append(MAP8(0, 0x53, APPLICATION_PROPERTIES, 0xC1, size + 1, count) + body)
        else:
            sections.append(MAP32(0, 0x53, APPLICATION_PROPERTIES, 0xD1, size + 4, count) + body)
        begin = end
    return sections


MAP8 = struct.Struct(">6B").pack
MAP32 = struct.Struct(">4BII").pack


def encode_values(values: Sequence[PropertyValue | None]) -> list[bytes]:
    """Encode strings as AMQP strings, times as its timestamps, and None as null."""
    encoded = []
    for value in values:
        if isinstance(value, bytes):
            raw = value
        elif isinstance(value, str):
            raw = value.encode()
        else:
            encoded.append(b"\x40" if value is None else TIMESTAMP(0x83, value))
            continue
        if len(raw) < 256:
            encoded.append(STRING8[len(raw)] + raw)
        else:
            encoded.append(b"\xb1" + len(raw).to_bytes(4, "big") + raw)
    return encoded


TIMESTAMP = struct.Struct(">Bq").pack
STRING8 = [bytes((0xA1, size)) for size in range(256)]


@lru_cache(maxsize=8192)
def data_head(size: int) -> bytes:
    """Return what precedes the bytes of a data section of this size."""
    empty = section(DATA, b"")[:-2]
    return empty + (bytes((0xA0, size)) if size < 256 else b"\xb0" + size.to_bytes(4, "big"))


@lru_cache(maxsize=8192)
def two_heads(size: int) -> bytes:
    """Return what precedes a body of this size in a message of nothing else, in a batch."""
    inner = data_head(size)
    return data_head(len(inner) + size) + inner
