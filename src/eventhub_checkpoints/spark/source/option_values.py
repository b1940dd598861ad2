"""What the text of an option means: a count, a duration, a flag, a position, a secret's name."""

import os
import re
from collections.abc import Mapping
from typing import get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import checked_group
from eventhub_checkpoints.receive.position import EventPosition, position_of
from eventhub_checkpoints.receive.ranges import ReceivePath
from eventhub_checkpoints.spark.positions.texts import (
    read_key,
    read_object,
    read_position,
    read_positions,
    read_time,
)

FROM_ENVIRONMENT = "env:"
KAFKA = "kafka."
"""Begins the names of options that are librdkafka's settings."""

DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)

CLIENTS_WORDS = {"-1": "earliest", "@latest": "latest"}
"""What the official clients call the two ends of a stream."""

Given = Mapping[str, str]
"""The options by name."""


def from_environment(name: str, value: str) -> str:
    """The value itself, or what `env:NAME` stands for, so that no secret sits in a job.

    Raises:
        ConfigurationError: the driver has no such variable.
    """
    if not value.startswith(FROM_ENVIRONMENT):
        return value
    variable = value.removeprefix(FROM_ENVIRONMENT)
    secret = os.environ.get(variable)
    if not secret:
        raise ConfigurationError(
            f"the option {name} names the environment variable {quoted(variable)}, which Spark's "
            "driver does not have; set it before the session is started"
        )
    return secret


def read_group(given: Given, name: str, default: str) -> str:
    """The name of a consumer group."""
    return checked_group(name, given.get(name, default))


def read_word(given: Given, name: str, default: str) -> EventPosition:
    """One position: `earliest`, `latest`, an ISO 8601 time, or the connector's JSON."""
    text = given.get(name, default).strip()
    if text.startswith("{"):
        return read_position(text, name)
    if text in ("earliest", "latest"):
        return position_of(text)
    if text in CLIENTS_WORDS:
        raise ConfigurationError(
            f"{name} is {quoted(text)}, which is called {CLIENTS_WORDS[text]} here"
        )
    try:
        return read_time(text, name)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; or give earliest, latest or the connector's JSON"
        ) from None


def read_by_partition(given: Given, name: str, hub: str) -> dict[str, EventPosition]:
    """Positions by partition id, from the connector's JSON."""
    return read_positions(given[name], hub, name) if name in given else {}


def read_seconds(given: Given, name: str, default: float) -> float:
    """A duration: seconds, or ISO 8601 as the connector has it, such as `PT1M30S`."""
    if name not in given:
        return default
    text = given[name].strip()
    parts = DURATION.fullmatch(text)
    if parts and any(parts.groups()):
        hours, minutes, seconds = (float(part or 0) for part in parts.groups())
        total = 3600 * hours + 60 * minutes + seconds
    else:
        try:
            total = float(text)
        except ValueError:
            total = 0.0
    if not 0 < total < float("inf"):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected seconds, or such as PT1M30S")
    return total


def read_count(given: Given, name: str, default: int) -> int:
    """A whole number of at least 1."""
    text = given.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected a whole number of at least 1")
    return int(text)


def read_limit(given: Given, name: str) -> int | None:
    """A whole number of at least 1; None where the option is not given."""
    return read_count(given, name, 1) if name in given else None


def read_limits(given: Given, name: str, hub: str) -> dict[str, int]:
    """Counts by partition id, from the connector's JSON.

    Raises:
        ConfigurationError: the text is malformed, names another hub, or a count is none.
    """
    if name not in given:
        return {}
    limits = {
        read_key(key, hub, name): (key, count)
        for key, count in read_object(given[name], name).items()
    }
    for key, count in limits.values():
        if type(count) is not int or count < 1:
            raise ConfigurationError(
                f"{name}, entry {quoted(key)}: {quoted(count)} is no whole number of at least 1"
            )
    return {partition: count for partition, (_, count) in limits.items()}


def read_flag(given: Given, name: str, default: bool) -> bool:
    """`true` or `false`, in any case."""
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected true or false")
    return text == "true"


def read_path(given: Given, name: str) -> ReceivePath:
    """`auto`, `fast` or `public`, in any case."""
    text = given.get(name, "auto").strip().lower()
    paths: tuple[ReceivePath, ...] = get_args(ReceivePath)
    for path in paths:
        if text == path:
            return path
    raise ConfigurationError(
        f"{name} is {quoted(text)}; expected {', '.join(paths[:-1])} or {paths[-1]}"
    )
