"""Conversion of AMQP values to strings: a string as it is, others as JSON like the JVM connector.

Two cases differ, because the Python client no longer knows the type: an AMQP timestamp or
enumeration becomes its number, and a binary value that happens to be UTF-8 becomes a string.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from eventhub_checkpoints.receive.amqp.decoder.columns import Text

_as_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def as_text(value: Any) -> str | None:
    """Return a value as a column's string; None stays None."""
    return None if value is None else _text(value)


def as_texts(values: Iterable[Any]) -> list[Text]:
    """Return values as strings; null becomes JSON's `null`."""
    given = list(values)
    try:
        # Nearly all values are UTF-8 bytes; a call for each would double the cost.
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
    """Return a value that JSON can hold; bytes other than UTF-8 become signed bytes, as in Java."""
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
