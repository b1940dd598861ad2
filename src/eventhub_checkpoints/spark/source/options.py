"""Options of `format("eventhubs")`: the JVM connector's names, and a few additional ones."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, get_args

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import nearest
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    checked_group,
    checked_name,
)
from eventhub_checkpoints.receive.amqp.address import HUB_NAME, NAMESPACE, HubAddress
from eventhub_checkpoints.receive.position import EventPosition, position_of
from eventhub_checkpoints.receive.ranges import (
    OPERATION_TIMEOUT,
    PREFETCH,
    RECEIVER_TIMEOUT,
    ReadSettings,
    ReceivePath,
)
from eventhub_checkpoints.receive.read_plan import Missing, checked_missing
from eventhub_checkpoints.spark.positions.texts import (
    read_key,
    read_object,
    read_position,
    read_positions,
    read_time,
)
from eventhub_checkpoints.spark.source.limits import Limits, TaskSize

FROM_ENVIRONMENT = "env:"
KAFKA = "kafka."
"""Prefix of the options that are librdkafka's settings."""

DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)

CLIENTS_WORDS = {"-1": "earliest", "@latest": "latest"}
"""The official clients' names for the two ends of a stream."""

Given = Mapping[str, str]
"""The options by name."""


def from_environment(name: str, value: str) -> str:
    """Return the value, or that of the variable in `env:NAME`, which keeps secrets out of a job.

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
    """Return the name of a consumer group."""
    return checked_group(name, given.get(name, default))


def read_word(given: Given, name: str, default: str) -> EventPosition:
    """Parse one position: `earliest`, `latest`, an ISO 8601 time, or the connector's JSON."""
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
    """Parse positions by partition id, from the connector's JSON."""
    return read_positions(given[name], hub, name) if name in given else {}


def read_seconds(given: Given, name: str, default: float) -> float:
    """Parse a duration: seconds, or ISO 8601 as in the connector, such as `PT1M30S`."""
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
    """Parse a whole number of at least 1."""
    text = given.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected a whole number of at least 1")
    return int(text)


def read_limit(given: Given, name: str) -> int | None:
    """Parse a whole number of at least 1; None if the option is not set."""
    return read_count(given, name, 1) if name in given else None


def read_limits(given: Given, name: str, hub: str) -> dict[str, int]:
    """Parse counts by partition id, from the connector's JSON.

    Raises:
        ConfigurationError: the string is malformed, names another hub, or a count is invalid.
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
    """Parse `true` or `false`, in any case."""
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected true or false")
    return text == "true"


def read_path(given: Given, name: str) -> ReceivePath:
    """Parse `auto`, `fast` or `public`, in any case."""
    text = given.get(name, "auto").strip().lower()
    paths: tuple[ReceivePath, ...] = get_args(ReceivePath)
    for path in paths:
        if text == path:
            return path
    raise ConfigurationError(
        f"{name} is {quoted(text)}; expected {', '.join(paths[:-1])} or {paths[-1]}"
    )


PREFIX = "eventhubs."

ENDINGS = ("endingPosition", "endingPositions")
LIMITS = ("maxEventsPerTrigger", "maxRatePerPartition", "maxRatesPerPartition")

NAMES = (
    "connectionString",
    "fullyQualifiedNamespace",
    "eventHubName",
    "credential",
    "consumerGroup",
    "startingPosition",
    "startingPositions",
    *ENDINGS,
    "checkpointStore",
    "checkpointConsumerGroup",
    "missing",
    *LIMITS,
    "partitionsPerTask",
    "parallelism",
    "receiverTimeout",
    "operationTimeout",
    "prefetchCount",
    "receivePath",
    "failOnDataLoss",
    "transport",
    "kafkaHeaders",
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a job, checked as far as possible without the hub.

    Attributes:
        address: the hub.
        starting_position: default starting position of a partition.
        starting_positions: by partition id.
        ending_position: default ending position: the first event that is *not* read.
        ending_positions: by partition id.
        checkpoint_store: URL of the store whose checkpoints take precedence; "" for none.
        checkpoint_group: consumer group of the checkpoints.
        missing: treatment of a partition without a checkpoint.
        limits: maximum size of a batch of a stream.
        task_size: number of partitions that one task reads.
        reading: settings for reading a range.
        names: the options that are set.
    """

    address: Address
    starting_position: EventPosition
    starting_positions: Mapping[str, EventPosition]
    ending_position: EventPosition
    ending_positions: Mapping[str, EventPosition]
    checkpoint_store: str = field(repr=False)
    checkpoint_group: str
    missing: Missing
    limits: Limits
    task_size: TaskSize
    reading: ReadSettings
    names: frozenset[str]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Parse the options as Spark passes them: strings, with names in any case.

        Raises:
            ConfigurationError: an option is unknown, malformed, set twice or missing.
        """
        given = known(options)
        address = read_address(given)
        hub = address.eventhub_name
        store = given.get("checkpointStore", "")
        return cls(
            address=address,
            starting_position=read_word(given, "startingPosition", "earliest"),
            starting_positions=read_by_partition(given, "startingPositions", hub),
            ending_position=read_word(given, "endingPosition", "latest"),
            ending_positions=read_by_partition(given, "endingPositions", hub),
            checkpoint_store=from_environment("checkpointStore", store),
            checkpoint_group=read_group(given, "checkpointConsumerGroup", address.consumer_group),
            missing=read_missing(given),
            limits=Limits(
                read_limit(given, "maxEventsPerTrigger"),
                read_limit(given, "maxRatePerPartition"),
                read_limits(given, "maxRatesPerPartition", hub),
            ),
            task_size=read_task_size(given),
            reading=read_settings(given),
            names=frozenset(given),
        )


def known(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options under the names of `NAMES`, and `kafka.*` in lower case.

    Raises:
        ConfigurationError: a name is unknown; the message has the nearest one, never a value.
    """
    spelled = {name.lower(): name for name in NAMES}
    found: dict[str, str] = {}
    for given, value in options.items():
        bare = given.lower().removeprefix(PREFIX)
        if bare not in spelled and not bare.startswith(KAFKA):
            raise ConfigurationError(unknown(given))
        name = spelled.get(bare, bare)
        if found.setdefault(name, value) != value:
            raise ConfigurationError(f"the option {name} is given twice, with two values")
    return found


def shown_name(option: str) -> str:
    """Return the name of an option, masked if it contains a secret."""
    return quoted(option) if holds_secret(option) else option


def unknown(given: str) -> str:
    """Return the error message about an option that does not exist."""
    if given.lower() == "checkpointlocation":
        return "the option checkpointLocation belongs to writeStream, not to readStream"
    meant = nearest(given.lower().removeprefix(PREFIX), NAMES)
    hint = f"did you mean {meant}?" if meant else f"known are {', '.join(NAMES)}"
    return f"the option {shown_name(given)} is not known to format('eventhubs'); {hint}"


def read_address(given: Mapping[str, str]) -> Address:
    """Return the address to read from, for the configured transport.

    Raises:
        ConfigurationError: the options name none, or more than one, or one is malformed.
    """
    transport = given.get("transport", "amqp").strip().lower()
    if transport == "kafka":
        from eventhub_checkpoints.spark.source.kafka_options import read_kafka_address

        return read_kafka_address(given, read_hub)
    if transport != "amqp":
        raise ConfigurationError(f"transport is {quoted(transport)}; expected amqp or kafka")
    if unused := [name for name in given if name.lower().startswith("kafka")]:
        raise ConfigurationError(f"the option {unused[0]} needs transport=kafka")
    return read_hub(given)


def read_hub(given: Mapping[str, str]) -> HubAddress:
    """Return the hub: from a connection string, or from its names and a credential.

    Raises:
        ConfigurationError: neither or both are set, or one is malformed.
    """
    group = read_group(given, "consumerGroup", DEFAULT_CONSUMER_GROUP)
    for option, expected in (("fullyQualifiedNamespace", NAMESPACE), ("eventHubName", HUB_NAME)):
        if given.get(option):
            checked_name(option, given[option], expected)
    connection_string = given.get("connectionString")
    by_name = [name for name in ("fullyQualifiedNamespace", "credential") if name in given]
    if connection_string and not by_name:
        return HubAddress.from_connection_string(
            from_environment("connectionString", connection_string),
            group,
            eventhub_name=given.get("eventHubName"),
        )
    if connection_string:
        raise ConfigurationError(
            f"give the option connectionString or {' and '.join(by_name)}, not both"
        )
    wanted = ("fullyQualifiedNamespace", "eventHubName", "credential")
    if not by_name:
        raise ConfigurationError(
            f"the option connectionString is missing; or give {', '.join(wanted)}"
        )
    if missing := [name for name in wanted if not given.get(name)]:
        raise ConfigurationError(
            f"the option {' and '.join(missing)} is missing beside {' and '.join(by_name)}"
        )
    namespace, hub, credential = (given[name] for name in wanted)
    secret = from_environment("credential", credential)
    return HubAddress.from_credential(namespace, hub, secret, group)


def read_missing(given: Mapping[str, str]) -> Missing:
    """Return the treatment of a partition without a checkpoint: `start` or `error`.

    Raises:
        ConfigurationError: it is neither, or no checkpoint store is set.
    """
    missing = checked_missing("missing", given.get("missing", "start").strip().lower())
    if missing == "error" and not given.get("checkpointStore"):
        raise ConfigurationError("missing=error is about checkpoints; give checkpointStore too")
    return missing


def read_task_size(given: Mapping[str, str]) -> TaskSize:
    """Parse the number of partitions that one task reads, or `auto`."""
    parallelism = read_limit(given, "parallelism")
    if given.get("partitionsPerTask", "").strip().lower() == "auto":
        return TaskSize(None, parallelism)
    try:
        return TaskSize(read_count(given, "partitionsPerTask", 1), parallelism)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}, or auto") from error


def read_settings(given: Mapping[str, str]) -> ReadSettings:
    """Return the settings for reading ranges."""
    return ReadSettings(
        prefetch=read_count(given, "prefetchCount", PREFETCH),
        receiver_timeout=read_seconds(given, "receiverTimeout", RECEIVER_TIMEOUT),
        operation_timeout=read_seconds(given, "operationTimeout", OPERATION_TIMEOUT),
        fail_on_data_loss=read_flag(given, "failOnDataLoss", True),
        receive_path=read_path(given, "receivePath"),
    )
