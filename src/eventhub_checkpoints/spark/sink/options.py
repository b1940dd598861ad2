"""Options of the sink, with the names of the source where the meaning is equal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, get_args

from eventhub_checkpoints._shared.partition_keys import Partitioner
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.send import settings
from eventhub_checkpoints.spark.options import (
    HUB,
    PASSED_ON,
    Options,
    known_options,
    parse_address,
    parse_choice,
    parse_count,
    parse_seconds,
)
from eventhub_checkpoints.spark.source.options import NAMES as SOURCE_NAMES

NAMES = (
    *HUB,
    "transport",
    "operationTimeout",
    "sendPath",
    "bytesPerBatch",
    "batchesInFlight",
    "partitioner",
    "keyColumn",
    "eventKeys",
    "keyScope",
)
OF_SPARK = ("checkpointlocation", "queryname")
"""Options of `writeStream` that Spark hands over to the sink."""


@dataclass(frozen=True, slots=True)
class EventKeys:
    """How each event gets a key.

    Attributes:
        column: column with the key of each row, which is not sent; "" for none.
        by_content: the key is a hash of the row's content.
        scope: part of a hash; "" for the stream's query and batch, or a random one for a batch.
    """

    column: str = ""
    by_content: bool = False
    scope: str = ""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Options of a sink, checked as far as possible without the hub.

    Attributes:
        address: the hub; its `repr` shows no secret.
        sending: how to send.
        keys: how each event gets a key.
    """

    address: Address
    sending: settings.SendSettings
    keys: EventKeys

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Parse the options as Spark passes them: strings, with names in any case.

        Raises:
            ConfigurationError: an option is unknown, for reading, malformed, set twice or missing.
        """
        own = {name: value for name, value in options.items() if name.lower() not in OF_SPARK}
        known = known_options(own, (*NAMES, *SOURCE_NAMES))
        # Jobs share the options of the hub between source and sink.
        known.pop("consumerGroup", None)
        others = [name for name in known if name not in NAMES]
        if reading := [name for name in others if not name.startswith(PASSED_ON)]:
            raise ConfigurationError(
                f"the option {reading[0]} is for reading; a sink has the options {', '.join(NAMES)}"
            )
        address = parse_address(known)
        check_transport(known)
        return cls(address, parse_settings(known), parse_keys(known))


OF_AMQP: Mapping[str, str] = {
    "sendPath": "remove it",
    "batchesInFlight": "remove it",
    "partitioner": "set kafka.partitioner, of librdkafka",
}
"""Options without an effect over Kafka, and what to do instead."""
IDEMPOTENCE = "kafka.enable.idempotence"


def check_transport(options: Options) -> None:
    """Check that each option has an effect with this transport, and that order is kept.

    Raises:
        ConfigurationError: an option is of AMQP only, or lets a repeated request overtake others.
    """
    if parse_choice(options, "transport", "amqp", ("amqp", "kafka")) == "amqp":
        return
    if unused := [name for name in OF_AMQP if name in options]:
        raise ConfigurationError(
            f"the option {unused[0]} has no effect over Kafka; {OF_AMQP[unused[0]]}, or use "
            "transport=amqp"
        )
    if options.get(IDEMPOTENCE, "true").strip().lower() not in ("true", "t", "1"):
        raise ConfigurationError(
            f"{IDEMPOTENCE} must be true, its default: without it, a request that is repeated can "
            "overtake a later one, and its events lose their order"
        )


def parse_settings(options: Options) -> settings.SendSettings:
    """Return the settings for sending."""
    paths: tuple[settings.SendPath, ...] = get_args(settings.SendPath)
    partitioners: tuple[Partitioner, ...] = get_args(Partitioner)
    return settings.SendSettings(
        send_path=parse_choice(options, "sendPath", "auto", paths),
        bytes_per_batch=parse_count(options, "bytesPerBatch", settings.BYTES_PER_BATCH),
        most_in_flight=parse_count(options, "batchesInFlight", settings.MOST_IN_FLIGHT),
        operation_timeout=parse_seconds(options, "operationTimeout", settings.OPERATION_TIMEOUT),
        partitioner=parse_choice(options, "partitioner", "service", partitioners),
    )


def parse_keys(options: Options) -> EventKeys:
    """Return how each event gets a key.

    Raises:
        ConfigurationError: two ways are set, an unknown one, or a scope without a hash.
    """
    kind = parse_choice(options, "eventKeys", "none", ("none", "content", "rownumber"))
    column, scope = options.get("keyColumn", ""), options.get("keyScope", "")
    if kind == "rownumber":
        raise ConfigurationError(
            "eventKeys=rowNumber is refused: Spark does not tell a sink whether its rows have the "
            "same order when a task is repeated, and then a number would name another event; use "
            "eventKeys=content, or keyColumn"
        )
    if column and kind != "none":
        raise ConfigurationError("use the option keyColumn or eventKeys, not both")
    if scope and kind == "none":
        raise ConfigurationError("the option keyScope needs eventKeys=content")
    return EventKeys(column, kind == "content", scope)
