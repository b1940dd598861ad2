"""A value of AMQP as text: itself where it is text, else its JSON, as the JVM connector writes it.

Two things that the Python client no longer knows differ: an AMQP timestamp or enumeration is
its number, and a binary value that happens to be UTF-8 is its text.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from eventhub_checkpoints.receive.amqp.decoder.columns import Text

_as_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def as_text(value: Any) -> str | None:
    """A value as a column's text; None stays null."""
    return None if value is None else _text(value)


def as_texts(values: Iterable[Any]) -> list[Text]:
    """Values as texts; a null is JSON's `null`."""
    given = list(values)
    try:
        # Nearly all values are bytes that are text: a call for each would cost as much again.
        return [value.decode() if type(value) is bytes else _text(value) for value in given]
    except UnicodeDecodeError:
        return [_text(value) for value in given]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    kind = type(value)
    if kind is int:
        return str(value)
    return _as_json(value if kind is float or kind is bool else plain(value))


def plain(value: Any) -> Any:
    """A value that JSON can hold; bytes that are no text become signed bytes, as in Java."""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return [byte - 256 if byte > 127 else byte for byte in bytes(value)]
    if isinstance(value, Mapping):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
