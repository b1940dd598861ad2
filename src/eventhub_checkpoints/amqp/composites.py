"""AMQP composites (described lists of named fields) as dataclasses.

A composite class names its fields in wire order, with the annotations at the end of this module
as their AMQP types. All fields are written, trailing nulls included, because the azure-eventhub
client reads fields by position. Any number of fields is accepted when reading, because the
specification allows peers to omit trailing nulls.

Source: OASIS AMQP 1.0, part 1, section 1.4; azure-eventhub 5.15.1, `_pyamqp/_connection.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar, get_args

from eventhub_checkpoints.amqp.encode import encode, encode_described, encode_list_of
from eventhub_checkpoints.amqp.types import (
    Array,
    CodecError,
    Described,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a field is encoded, and checked after decoding.

    Attributes:
        write: encodes a value that is not None.
        read: checks and converts a decoded value; its string names the field, for errors.
    """

    write: Callable[[Any], bytes]
    read: Callable[[str, Value], Value]


@dataclass(slots=True, kw_only=True)
class Composite:
    """Described list with named fields."""

    descriptor: ClassVar[int]
    layout: ClassVar[tuple[tuple[str, Kind], ...]]

    def encode(self) -> bytes:
        """Encode the composite with all of its fields."""
        return encode_described(self.descriptor, encode_list_of(list(self._written())))

    def _written(self) -> Iterator[bytes]:
        for name, kind in self.layout:
            value = getattr(self, name)
            yield b"\x40" if value is None else kind.write(value)

    @classmethod
    def from_fields(cls, values: Value) -> Self:
        """Build the composite from decoded fields; missing and null ones get their defaults.

        Raises:
            CodecError: there are more fields than the composite has, or one has a wrong type.
        """
        if not isinstance(values, list) or len(values) > len(cls.layout):
            raise CodecError(f"{cls.__name__} is a list of at most {len(cls.layout)} fields")
        given = {}
        for (name, kind), value in zip(cls.layout, values, strict=False):
            if value is not None:
                given[name] = kind.read(f"{cls.__name__}.{name}", value)
        return cls(**given)


_CLASSES: dict[int | str, type[Composite]] = {}
C = TypeVar("C", bound=type[Composite])


def composite(code: int, name: str) -> Callable[[C], C]:
    """Register a class under its numeric and its symbolic descriptor."""

    def register(cls: C) -> C:
        cls.descriptor = code
        cls.layout = tuple((entry.name, _kind(entry.type)) for entry in fields(cls))
        _CLASSES[code] = _CLASSES[name] = cls
        return cls

    return register


def from_described(value: Value) -> Composite:
    """Build the composite that a described list represents.

    Raises:
        CodecError: the value is not described, or its descriptor is not known.
    """
    if isinstance(value, Described) and isinstance(value.descriptor, int | str):
        cls = _CLASSES.get(value.descriptor)
        if cls is not None:
            return cls.from_fields(value.value)
    raise CodecError(f"unknown AMQP composite {getattr(value, 'descriptor', value)!r:.80}")


def _kind(annotation: Any) -> Kind:
    """Find the field's kind, also inside a union such as `uint | None`."""
    found = [part for part in get_args(annotation) if isinstance(part, Kind)]
    return found[0] if found else _kind(get_args(annotation)[0])


def _plain(expected: type, wrapper: Callable[[Any], Value]) -> Kind:
    def read(name: str, value: Value) -> Value:
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise CodecError(f"{name} is a {type(value).__name__}, not a {expected.__name__}")
        return value

    return Kind(lambda value: encode(wrapper(value)), read)


def _read_symbols(name: str, value: Value) -> tuple[str, ...]:
    several = tuple(value) if isinstance(value, Array) else (value,)
    if not all(isinstance(item, str) for item in several):
        raise CodecError(f"{name} holds something else than symbols")
    return several


def _write_symbols(value: tuple[str, ...]) -> bytes:
    return encode(Array(map(Symbol, value))) if value else b"\x40"


T = TypeVar("T")

string: TypeAlias = Annotated[str, _plain(str, str)]
symbol: TypeAlias = Annotated[str, _plain(str, Symbol)]
binary: TypeAlias = Annotated[bytes, _plain(bytes, bytes)]
boolean: TypeAlias = Annotated[bool, _plain(bool, bool)]
ubyte: TypeAlias = Annotated[int, _plain(int, UByte)]
ushort: TypeAlias = Annotated[int, _plain(int, UShort)]
uint: TypeAlias = Annotated[int, _plain(int, UInt)]
ulong: TypeAlias = Annotated[int, _plain(int, ULong)]
timestamp: TypeAlias = Annotated[int, _plain(int, Timestamp)]
mapping: TypeAlias = Annotated[dict[Any, Any], _plain(dict, dict)]
anything: TypeAlias = Annotated[Any, Kind(encode, lambda name, value: value)]
symbols: TypeAlias = Annotated[tuple[str, ...], Kind(_write_symbols, _read_symbols)]
"""No, one or several symbols; on the wire null, a symbol or an array."""
nested = Annotated[
    T, Kind(lambda value: bytes(value.encode()), lambda name, value: from_described(value))
]
"""Field that holds another composite."""
