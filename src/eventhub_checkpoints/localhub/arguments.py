"""Validation of arguments to the hub, before any of them takes effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeGuard

from eventhub_checkpoints._shared.partition_keys import LONGEST_KEY, excessive_length
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.amqp.types import Timestamp

MAX_PARTITIONS = 2048
MAX_NUMBER = 2**63 - 1
MAX_FAULTS = 1_000_000
MAX_IDLE_SECONDS = 1_000_000
"""The protocol counts milliseconds in 32 bits."""

_BODY_TYPES = (bytes, bytearray, memoryview)
_YEAR_10000 = 253_402_300_800
_NOT_IN_A_NAME = frozenset("/?#%;=\\ ")


def check_hubs(hubs: object) -> None:
    """Refuse anything but a non-empty map from names to numbers of partitions."""
    if not isinstance(hubs, Mapping) or not hubs:
        raise ValueError(
            f"hubs is {quoted(hubs)}: expected names with their numbers of partitions, "
            "such as {'orders': 8}"
        )


def check_hub(name: object, partitions: object) -> None:
    """Refuse an invalid name or number of partitions of a new hub."""
    if not isinstance(name, str) or not name or set(name) & _NOT_IN_A_NAME:
        raise ValueError(f"{quoted(name)} is not a valid name of an event hub")
    if not _is_whole(partitions) or not 1 <= partitions <= MAX_PARTITIONS:
        raise ValueError(f"{name}={quoted(partitions)}: expected 1 to {MAX_PARTITIONS} partitions")


def read_keys(keys: object) -> frozenset[str] | None:
    """Return the keys to accept; None: every token."""
    if keys is None:
        return None
    # A string would be a set of characters.
    if isinstance(keys, Iterable) and not isinstance(keys, str | bytes):
        listed = list(keys)
        if all(isinstance(key, str) and key for key in listed):
            return frozenset(listed)
    raise ValueError("accept_keys must be a set of non-empty strings, or None")


def check_text(what: str, value: object) -> None:
    """Refuse anything but a non-empty string."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} is {quoted(value)}: expected a non-empty string")


def check_key(key: object) -> None:
    """Refuse a partition key that is no string, or too long for the service."""
    check_text("partition_key", key)
    if isinstance(key, str) and (length := excessive_length(key)):
        raise ValueError(f"partition_key has {length} characters; expected at most {LONGEST_KEY}")


def check_flag(what: str, value: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {quoted(value)}: expected True or False")


def check_names(**names: object) -> None:
    """Refuse a name that is neither None nor a non-empty string."""
    for what, value in names.items():
        if value is not None:
            check_text(what, value)


def check_settings(host: object, port: object, namespace: object, idle_timeout: object) -> None:
    """Refuse an invalid address, namespace or timeout."""
    if not isinstance(host, str):
        raise ValueError(f"host is {quoted(host)}: expected a string, such as '127.0.0.1'")
    if not _is_whole(port) or not 0 <= port <= 65535:
        raise ValueError(f"port is {quoted(port)}: expected 1 to 65535, or 0 for any free one")
    check_text("namespace", namespace)
    if not _is_number(idle_timeout) or not 0 < idle_timeout <= MAX_IDLE_SECONDS:
        raise ValueError(
            f"idle_timeout is {quoted(idle_timeout)}: expected seconds, above 0 and at most "
            f"{MAX_IDLE_SECONDS}"
        )


def read_groups_of(groups: object) -> Callable[[str], list[str] | None]:
    """Return a function from the name of a hub to its consumer groups; None is any name."""
    if not isinstance(groups, Mapping):
        everywhere = read_groups(groups)
        return lambda hub: everywhere
    for hub in groups:
        check_text("consumer_groups has a hub whose name", hub)
    by_hub = {hub.lower(): read_groups(names) or [] for hub, names in groups.items()}
    return lambda hub: by_hub.get(hub.lower(), [])


def read_groups(groups: object) -> list[str] | None:
    """Return the names of consumer groups as a list; None stays None."""
    if groups is None:
        return None
    # A string is iterable too, but character by character.
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise ValueError(f"consumer_groups is {quoted(groups)}: expected a list of names, or None")
    names = list(groups)
    for name in names:
        check_text("a consumer group's name", name)
    return names


def check_delay(seconds: object) -> None:
    """Refuse an invalid delay."""
    if not _is_number(seconds) or not 0 <= seconds < math.inf:
        raise ValueError(
            f"cannot delay by {quoted(seconds)} seconds: expected a number of at least 0"
        )


def check_count(what: str, count: object, least: int, most: int = MAX_NUMBER) -> None:
    """Refuse anything but an integer from `least` to `most`."""
    if _is_whole(count) and count > most:
        raise ValueError(f"{what} is {quoted(count)}: expected at most {most}")
    if not _is_whole(count) or count < least:
        raise ValueError(f"{what} is {quoted(count)}: expected a whole number of at least {least}")


def read_bodies(events: object) -> list[bytes]:
    """Return the bodies of events as bytes; strings are encoded as UTF-8."""
    # A single body is iterable too, but byte by byte.
    if isinstance(events, (str, *_BODY_TYPES)) or not isinstance(events, Iterable):
        raise ValueError(f"events must be a list of bodies, not one {type(events).__name__}")
    return [_body(event) for event in events]


def read_messages(messages: object) -> list[bytes]:
    """Return encoded messages."""
    is_one = isinstance(messages, (str, *_BODY_TYPES))
    listed = list(messages) if isinstance(messages, Iterable) and not is_one else None
    if listed is None or not all(isinstance(message, _BODY_TYPES) for message in listed):
        raise ValueError(f"messages is {quoted(messages)}: expected a list of encoded messages")
    return [bytes(message) for message in listed]


def _body(event: object) -> bytes:
    if isinstance(event, str):
        return event.encode()
    if isinstance(event, _BODY_TYPES):
        return bytes(event)
    raise ValueError(f"a body must be bytes or a string, not {type(event).__name__}")


def read_time(time: object) -> Timestamp:
    """Return the timestamp for float seconds since the epoch or an aware datetime."""
    seconds = time
    if isinstance(time, datetime) and time.tzinfo is not None:
        seconds = time.timestamp()
    if not _is_number(seconds) or not 0 <= seconds < _YEAR_10000:
        raise ValueError(
            f"enqueued_time is {quoted(time)}: expected float seconds since the epoch, or a "
            "datetime with a time zone"
        )
    return Timestamp(round(seconds * 1000))


def check_properties(properties: object) -> None:
    """Refuse application properties that are not a map with strings as keys."""
    if properties is None:
        return
    if not isinstance(properties, Mapping) or not all(isinstance(key, str) for key in properties):
        raise ValueError(f"properties is {quoted(properties)}: expected a map of names to values")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return _is_whole(value) or isinstance(value, float)
