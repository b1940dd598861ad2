"""Options that source and sink share: how they are parsed, and the hub with the way to reach it.

Spark passes strings, with names in any case.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeVar, get_args

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
from eventhub_checkpoints.receive.position import is_digits
from eventhub_checkpoints.spark.refused_options import REFUSED

Options = Mapping[str, str]
"""The options by name."""

T = TypeVar("T", bound=str)

PREFIX = "eventhubs."
FROM_ENVIRONMENT = "env:"
KAFKA = "kafka."
"""Prefix of the options that are passed on to librdkafka as its settings."""

REASONS = {name.lower(): (name, reason) for name, reason in REFUSED.items()}

HUB = ("connectionString", "fullyQualifiedNamespace", "eventHubName", "credential")
"""Options that name the hub."""


def known_options(options: Options, names: Sequence[str]) -> dict[str, str]:
    """Return the options by their names as in `names`; names with `kafka.` in lower case.

    Raises:
        ConfigurationError: a name is unknown, has another name here, belongs to `writeStream`, or
            is set twice with different values. The message suggests the nearest name, and never
            shows a value.
    """
    spelled = {name.lower(): name for name in names}
    known: dict[str, str] = {}
    for option, value in options.items():
        bare = option.lower().removeprefix(PREFIX)
        if bare == "checkpointlocation":
            raise ConfigurationError(
                "the option checkpointLocation belongs to writeStream, not to readStream"
            )
        if bare in REASONS and bare not in spelled:
            raise ConfigurationError("the option {} is refused: {}".format(*REASONS[bare]))
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


def parse_choice(options: Options, name: str, default: T, choices: tuple[T, ...]) -> T:
    """Return an option that must be one of `choices`, in upper or lower case."""
    text = options.get(name, default).strip().lower()
    for choice in choices:
        if text == choice:
            return choice
    several = ", ".join(choices[:-1])
    raise ConfigurationError(f"{name} is {quoted(text)}; expected {several} or {choices[-1]}")


UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds of a unit as Spark writes durations, such as 15m."""
WITH_UNIT = re.compile(r"(\d+) ?(ms|s|m|min|h|d)", re.IGNORECASE)
DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)


def parse_seconds(options: Options, name: str, default: float) -> float:
    """Parse a duration: seconds, `90s` as in Spark, or `PT1M30S` (ISO 8601) as in the connector."""
    if name not in options:
        return default
    text, total = options[name].strip(), 0.0
    if (parts := DURATION.fullmatch(text)) and any(parts.groups()):
        hours, minutes, seconds = (float(part or 0) for part in parts.groups())
        total = 3600 * hours + 60 * minutes + seconds
    elif with_unit := WITH_UNIT.fullmatch(text):
        total = int(with_unit[1]) * UNITS[with_unit[2].lower()]
    else:
        with suppress(ValueError):
            total = float(text)
    if not 0 < total < float("inf"):
        raise ConfigurationError(
            f"{name} is {quoted(text)}; expected seconds, or such as 90s or PT1M30S"
        )
    return total


def parse_count(options: Options, name: str, default: int, least: int = 1) -> int:
    """Parse a whole number of at least `least`."""
    text = options.get(name, str(default)).strip()
    if not (is_digits(text) and int(text) >= least):
        raise ConfigurationError(
            f"{name} is {quoted(text)}; expected a whole number of at least {least}"
        )
    return int(text)


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


def parse_group(options: Options, name: str, default: str) -> str:
    """Return the name of a consumer group."""
    return checked_group(name, options.get(name, default))
