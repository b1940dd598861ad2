"""Options of `format("eventhubs")`: the JVM connector's names, and a few additional ones."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self, TypeVar, get_args

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import nearest
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive import ranges
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    checked_group,
    checked_name,
)
from eventhub_checkpoints.receive.amqp.address import HUB_NAME, NAMESPACE, HubAddress
from eventhub_checkpoints.receive.position import EventPosition, is_digits, position_of
from eventhub_checkpoints.receive.read_plan import Missing, checked_missing
from eventhub_checkpoints.spark import position_formats as formats

Options = Mapping[str, str]
"""The options by name."""

T = TypeVar("T", bound=str)

PREFIX = "eventhubs."
FROM_ENVIRONMENT = "env:"
KAFKA = "kafka."
"""Prefix of the options that are passed on to librdkafka as its settings."""

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
class Limits:
    """Maximum number of events in one batch of a stream.

    Units: events per batch; None: no limit.

    Attributes:
        total: limit for all partitions together.
        rate: limit for each partition that `rates` does not name.
        rates: limits for single partitions, by id.
    """

    total: int | None = None
    rate: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a job, checked as far as possible without the hub.

    Attributes:
        starting_position: for each partition that `starting_positions` does not name.
        ending_position: likewise; the first event that is *not* read.
        checkpoint_store: URL of the store whose checkpoints take precedence over the starting
            positions; "" for none.
        checkpoint_group: consumer group of the checkpoints.
        missing: treatment of a partition without a checkpoint.
        limits: maximum size of a batch of a stream.
        ranges_per_task: number of partitions that one task reads; None for the number with which
            each core has one task.
        parallelism: number of tasks that run at once; None if not set. Spark does not expose the
            actual number to the process that plans a source, so the default is the number of cores
            of the driver's machine, which is correct only for a local session.
        names: names of the options that are set.
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
    ranges_per_task: int | None
    parallelism: int | None
    reading: ranges.ReadSettings
    names: frozenset[str]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Parse the options as Spark passes them: strings, with names in any case.

        Raises:
            ConfigurationError: an option is unknown, malformed, set twice or missing.
        """
        options = known_options(options)
        address = parse_address(options)
        hub = address.eventhub_name
        store = options.get("checkpointStore", "")
        return cls(
            address=address,
            starting_position=parse_one_position(options, "startingPosition", "earliest"),
            starting_positions=parse_by_partition(options, "startingPositions", hub),
            ending_position=parse_one_position(options, "endingPosition", "latest"),
            ending_positions=parse_by_partition(options, "endingPositions", hub),
            checkpoint_store=from_environment("checkpointStore", store),
            checkpoint_group=parse_group(
                options, "checkpointConsumerGroup", address.consumer_group
            ),
            missing=parse_missing(options),
            limits=Limits(
                parse_limit(options, "maxEventsPerTrigger"),
                parse_limit(options, "maxRatePerPartition"),
                parse_limits(options, "maxRatesPerPartition", hub),
            ),
            ranges_per_task=parse_ranges_per_task(options),
            parallelism=parse_limit(options, "parallelism"),
            reading=parse_settings(options),
            names=frozenset(options),
        )


def known_options(options: Options, names: Sequence[str] = NAMES) -> dict[str, str]:
    """Return the options by their names as in `names`; names with `kafka.` in lower case.

    Raises:
        ConfigurationError: a name is unknown, belongs to `writeStream`, or is set twice with
            different values. The message suggests the nearest name, and never shows a value.
    """
    spelled = {name.lower(): name for name in names}
    known: dict[str, str] = {}
    for option, value in options.items():
        bare = option.lower().removeprefix(PREFIX)
        if bare == "checkpointlocation":
            raise ConfigurationError(
                "the option checkpointLocation belongs to writeStream, not to readStream"
            )
        if bare not in spelled and not bare.startswith(KAFKA):
            shown = quoted(option) if holds_secret(option) else option
            meant = nearest(bare, names)
            hint = f"did you mean {meant}?" if meant else f"known are {', '.join(names)}"
            raise ConfigurationError(
                f"the option {shown} is not known to format('eventhubs'); {hint}"
            )
        name = spelled.get(bare, bare)
        if known.setdefault(name, value) != value:
            raise ConfigurationError(f"the option {name} is set twice, with two values")
    return known


def parse_address(options: Options) -> Address:
    """Return the address to read from, for the configured transport.

    Raises:
        ConfigurationError: the options name none, or more than one, or one is malformed.
    """
    if parse_choice(options, "transport", "amqp", ("amqp", "kafka")) == "kafka":
        return parse_kafka_address(options)
    if unused := [name for name in options if name.lower().startswith("kafka")]:
        raise ConfigurationError(f"the option {unused[0]} needs transport=kafka")
    return parse_hub(options)


def parse_hub(options: Options) -> HubAddress:
    """Return the hub's address, from a connection string, or from its names and a credential.

    Raises:
        ConfigurationError: neither or both are set, or one is malformed.
    """
    group = parse_group(options, "consumerGroup", DEFAULT_CONSUMER_GROUP)
    for option, expected in (("fullyQualifiedNamespace", NAMESPACE), ("eventHubName", HUB_NAME)):
        if options.get(option):
            checked_name(option, options[option], expected)
    connection_string = options.get("connectionString")
    by_name = [name for name in ("fullyQualifiedNamespace", "credential") if name in options]
    if connection_string and not by_name:
        return HubAddress.from_connection_string(
            from_environment("connectionString", connection_string),
            group,
            eventhub_name=options.get("eventHubName"),
        )
    if connection_string:
        raise ConfigurationError(
            f"use the option connectionString or {' and '.join(by_name)}, not both"
        )
    required = ("fullyQualifiedNamespace", "eventHubName", "credential")
    if not by_name:
        raise ConfigurationError(
            f"the option connectionString is missing; or use {', '.join(required)}"
        )
    if missing := [name for name in required if not options.get(name)]:
        raise ConfigurationError(
            f"with {' and '.join(by_name)} the option {' and '.join(missing)} is missing"
        )
    namespace, hub, credential = (options[name] for name in required)
    secret = from_environment("credential", credential)
    return HubAddress.from_credential(namespace, hub, secret, group)


def parse_kafka_address(options: Options) -> Address:
    """Return the hub's address if a connection string or credential is set, else the topic's.

    Raises:
        ConfigurationError: the options name neither, or one is malformed or reserved.
        MissingDriverError: Kafka's client is not installed.
    """
    from eventhub_checkpoints.receive.kafka.address import KafkaAddress
    from eventhub_checkpoints.receive.kafka.records import HeaderForm

    settings = {
        name.removeprefix(KAFKA): from_environment(name, value)
        for name, value in options.items()
        if name.startswith(KAFKA)
    }
    forms: tuple[HeaderForm, ...] = get_args(HeaderForm)
    if "bootstrap.servers" not in settings or options.keys() & {"connectionString", "credential"}:
        headers = parse_choice(options, "kafkaHeaders", "auto", forms)
        return KafkaAddress.of_hub(parse_hub(options), settings, headers)
    return KafkaAddress.of_topic(
        options.get("eventHubName", ""),
        settings,
        parse_group(options, "consumerGroup", DEFAULT_CONSUMER_GROUP),
        namespace=options.get("fullyQualifiedNamespace", ""),
        headers=parse_choice(options, "kafkaHeaders", "text", forms),
    )


def parse_missing(options: Options) -> Missing:
    """Return the treatment of a partition without a checkpoint: `start` or `error`.

    Raises:
        ConfigurationError: it is neither, or no checkpoint store is set.
    """
    missing = checked_missing("missing", options.get("missing", "start").strip().lower())
    if missing == "error" and not options.get("checkpointStore"):
        raise ConfigurationError(
            "missing=error concerns partitions without a checkpoint; set checkpointStore, too"
        )
    return missing


def parse_ranges_per_task(options: Options) -> int | None:
    """Parse the number of partitions that one task reads; None for `auto`."""
    if options.get("partitionsPerTask", "").strip().lower() == "auto":
        return None
    try:
        return parse_count(options, "partitionsPerTask", 1)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}, or auto") from error


def parse_settings(options: Options) -> ranges.ReadSettings:
    """Return the settings for reading ranges."""
    paths: tuple[ranges.ReceivePath, ...] = get_args(ranges.ReceivePath)
    fail_on_data_loss = parse_choice(options, "failOnDataLoss", "true", ("true", "false"))
    return ranges.ReadSettings(
        prefetch=parse_count(options, "prefetchCount", ranges.PREFETCH),
        receiver_timeout=parse_seconds(options, "receiverTimeout", ranges.RECEIVER_TIMEOUT),
        operation_timeout=parse_seconds(options, "operationTimeout", ranges.OPERATION_TIMEOUT),
        fail_on_data_loss=fail_on_data_loss == "true",
        receive_path=parse_choice(options, "receivePath", "auto", paths),
    )


DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)

CLIENT_NAMES = {"-1": "earliest", "@latest": "latest"}
"""The official clients' names for the two ends of a stream."""


def from_environment(name: str, value: str) -> str:
    """Return the value, or for `env:NAME` the value of that environment variable.

    With `env:`, a job does not contain the secret itself.

    Raises:
        ConfigurationError: Spark's driver has no such environment variable, or it is empty.
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


def parse_group(options: Options, name: str, default: str) -> str:
    """Return the name of a consumer group."""
    return checked_group(name, options.get(name, default))


def parse_one_position(options: Options, name: str, default: str) -> EventPosition:
    """Parse one position: `earliest`, `latest`, an ISO 8601 time, or the connector's JSON."""
    text = options.get(name, default).strip()
    if text.startswith("{"):
        return formats.parse_position(text, name)
    if text in ("earliest", "latest"):
        return position_of(text)
    if text in CLIENT_NAMES:
        raise ConfigurationError(
            f"{name} is {quoted(text)}, which is called {CLIENT_NAMES[text]} here"
        )
    try:
        return formats.parse_time(text, name)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; or use earliest, latest or the connector's JSON"
        ) from None


def parse_by_partition(options: Options, name: str, hub: str) -> dict[str, EventPosition]:
    """Parse positions by partition id, from the connector's JSON."""
    return formats.parse_positions(options[name], hub, name) if name in options else {}


def parse_seconds(options: Options, name: str, default: float) -> float:
    """Parse a duration: seconds, or ISO 8601 as in the connector, such as `PT1M30S`."""
    if name not in options:
        return default
    text, total = options[name].strip(), 0.0
    if (parts := DURATION.fullmatch(text)) and any(parts.groups()):
        hours, minutes, seconds = (float(part or 0) for part in parts.groups())
        total = 3600 * hours + 60 * minutes + seconds
    else:
        with suppress(ValueError):
            total = float(text)
    if not 0 < total < float("inf"):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected seconds, or such as PT1M30S")
    return total


def parse_count(options: Options, name: str, default: int) -> int:
    """Parse a whole number of at least 1."""
    text = options.get(name, str(default)).strip()
    if not (is_digits(text) and int(text) > 0):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected a whole number of at least 1")
    return int(text)


def parse_limit(options: Options, name: str) -> int | None:
    """Parse a whole number of at least 1; None if the option is not set."""
    return parse_count(options, name, 1) if name in options else None


def parse_limits(options: Options, name: str, hub: str) -> dict[str, int]:
    """Parse counts by partition id, from the connector's JSON.

    Raises:
        ConfigurationError: the string is malformed, names another hub, or a count is invalid.
    """
    if name not in options:
        return {}
    limits = {}
    for key, count in formats.parse_object(options[name], name).items():
        limits[formats.parse_key(key, hub, name)] = count
        if type(count) is not int or count < 1:
            raise ConfigurationError(
                f"{name}, entry {quoted(key)}: {quoted(count)} is not a whole number of at least 1"
            )
    return limits


def parse_choice(options: Options, name: str, default: T, choices: tuple[T, ...]) -> T:
    """Return an option that must be one of `choices`, in upper or lower case."""
    text = options.get(name, default).strip().lower()
    for choice in choices:
        if text == choice:
            return choice
    several = ", ".join(choices[:-1])
    raise ConfigurationError(f"{name} is {quoted(text)}; expected {several} or {choices[-1]}")
