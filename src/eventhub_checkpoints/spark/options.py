"""The options of `format("eventhubs")`: the JVM connector's names, and a few of our own.

Names are compared without regard to case, with or without the prefix `eventhubs.`. An option
that is not known is an error: a misspelt one would be a job that reads something else.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Self

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    HubAddress,
    checked_group,
)
from eventhub_checkpoints.receive.hub import OPERATION_TIMEOUT
from eventhub_checkpoints.receive.ranges import PREFETCH, RECEIVER_TIMEOUT, ReadSettings
from eventhub_checkpoints.spark.position import EventPosition, position_of
from eventhub_checkpoints.spark.texts import read_position, read_positions, read_time

PREFIX = "eventhubs."
FROM_ENVIRONMENT = "env:"

NAMES = (
    "connectionString",
    "consumerGroup",
    "startingPosition",
    "startingPositions",
    "endingPosition",
    "endingPositions",
    "checkpointStore",
    "checkpointConsumerGroup",
    "receiverTimeout",
    "operationTimeout",
    "prefetchCount",
    "failOnDataLoss",
)

DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a job asked for, checked as far as that goes without the hub.

    Attributes:
        address: the hub.
        starting_position: where a partition begins that nothing else names.
        starting_positions: by partition id.
        ending_position: the first event that is *not* read, where nothing else says.
        ending_positions: by partition id.
        checkpoint_store: URL of the store whose checkpoints decide first; "" for none.
        checkpoint_group: whose checkpoints.
        reading: how a range is read.
    """

    address: HubAddress
    starting_position: EventPosition
    starting_positions: Mapping[str, EventPosition]
    ending_position: EventPosition
    ending_positions: Mapping[str, EventPosition]
    checkpoint_store: str = field(repr=False)
    checkpoint_group: str
    reading: ReadSettings

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Read the options as Spark hands them over: text, in any case.

        Raises:
            ConfigurationError: one is unknown, malformed, given twice or missing.
        """
        given = known(options)
        connection_string = given.get("connectionString")
        if not connection_string:
            raise ConfigurationError("the option connectionString is missing")
        group = read_group(given, "consumerGroup", DEFAULT_CONSUMER_GROUP)
        address = HubAddress.from_connection_string(
            from_environment("connectionString", connection_string), group
        )
        hub = address.eventhub_name
        store = given.get("checkpointStore", "")
        return cls(
            address=address,
            starting_position=read_word(given, "startingPosition", "earliest"),
            starting_positions=read_by_partition(given, "startingPositions", hub),
            ending_position=read_word(given, "endingPosition", "latest"),
            ending_positions=read_by_partition(given, "endingPositions", hub),
            checkpoint_store=from_environment("checkpointStore", store),
            checkpoint_group=read_group(given, "checkpointConsumerGroup", group),
            reading=read_settings(given),
        )


def known(options: Mapping[str, str]) -> dict[str, str]:
    """The options under the names of `NAMES`.

    Raises:
        ConfigurationError: a name is not known; the nearest one is named, never a value.
    """
    spelled = {name.lower(): name for name in NAMES}
    found: dict[str, str] = {}
    for given, value in options.items():
        bare = given.lower().removeprefix(PREFIX)
        if bare not in spelled:
            raise ConfigurationError(unknown(given, spelled))
        if found.setdefault(spelled[bare], value) != value:
            raise ConfigurationError(f"the option {spelled[bare]} is given twice, with two values")
    return found


def unknown(given: str, spelled: Mapping[str, str]) -> str:
    """The sentence about an option that does not exist."""
    nearest = get_close_matches(given.lower().removeprefix(PREFIX), spelled, n=1, cutoff=0.5)
    hint = f"did you mean {spelled[nearest[0]]}?" if nearest else f"known are {', '.join(NAMES)}"
    return f"the option {given} is not known to format('eventhubs'); {hint}"


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
            f"the option {name} names the environment variable {variable}, which Spark's driver "
            "does not have; set it before the session is started"
        )
    return secret


def read_group(given: Mapping[str, str], name: str, default: str) -> str:
    """The name of a consumer group."""
    return checked_group(name, given.get(name, default))


def read_word(given: Mapping[str, str], name: str, default: str) -> EventPosition:
    """One position: `earliest`, `latest`, an ISO 8601 time, or the connector's JSON."""
    text = given.get(name, default).strip()
    if text.startswith("{"):
        return read_position(text, name)
    if text in ("earliest", "latest"):
        return position_of(text)
    try:
        return read_time(text, name)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; or give earliest, latest or the connector's JSON"
        ) from error


def read_by_partition(given: Mapping[str, str], name: str, hub: str) -> dict[str, EventPosition]:
    """Positions by partition id, from the connector's JSON."""
    return read_positions(given[name], hub, name) if name in given else {}


def read_settings(given: Mapping[str, str]) -> ReadSettings:
    """How ranges are read."""
    return ReadSettings(
        prefetch=read_count(given, "prefetchCount", PREFETCH),
        receiver_timeout=read_seconds(given, "receiverTimeout", RECEIVER_TIMEOUT),
        operation_timeout=read_seconds(given, "operationTimeout", OPERATION_TIMEOUT),
        fail_on_data_loss=read_flag(given, "failOnDataLoss", True),
    )


def read_seconds(given: Mapping[str, str], name: str, default: float) -> float:
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
        raise ConfigurationError(f"{name} is {text!r}; expected seconds, or such as PT1M30S")
    return total


def read_count(given: Mapping[str, str], name: str, default: int) -> int:
    """A whole number of at least 1."""
    text = given.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigurationError(f"{name} is {text!r}; expected a whole number of at least 1")
    return int(text)


def read_flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    """`true` or `false`, in any case."""
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"{name} is {text!r}; expected true or false")
    return text == "true"
