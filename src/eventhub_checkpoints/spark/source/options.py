"""Options of `format("eventhubs")`: the JVM connector's names, and a few additional ones."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, get_args

from eventhub_checkpoints._shared.offset_words import Meaning, meaning_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.times import parse_time
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive import ranges
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.position import EventPosition, position_of
from eventhub_checkpoints.receive.read_plan import Missing, checked_missing
from eventhub_checkpoints.spark import position_formats as formats
from eventhub_checkpoints.spark.options import (
    HUB,
    Options,
    from_environment,
    known_options,
    parse_address,
    parse_choice,
    parse_count,
    parse_group,
    parse_seconds,
)

ENDINGS = ("endingPosition", "endingPositions")
STREAM_ONLY = (
    "maxEventsPerTrigger",
    "maxRatePerPartition",
    "maxRatesPerPartition",
    "maxBytesPerTrigger",
    "minEventsPerTrigger",
    "maxTriggerDelay",
    "idlePollInterval",
)

NAMES = (
    *HUB,
    "consumerGroup",
    "startingPosition",
    "startingPositions",
    *ENDINGS,
    "checkpointStore",
    "checkpointConsumerGroup",
    "missing",
    *STREAM_ONLY,
    "partitionsPerTask",
    "parallelism",
    "minPartitions",
    "ownerLevel",
    "useExclusiveReceiver",
    "receiverTimeout",
    "operationTimeout",
    "prefetchCount",
    "receivePath",
    "failOnDataLoss",
    "transport",
    "kafkaHeaders",
)

IDLE_POLL_INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of events in one batch of a stream.

    Units: events per batch; None: no limit.

    Attributes:
        total: limit for all partitions together.
        rate: limit for each partition that `rates` does not name.
        rates: limits for single partitions, by id.
        size: limit of the bodies of all partitions together, in bytes.
    """

    total: int | None = None
    rate: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)
    size: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Waiting:
    """When a stream reads a batch although few events are waiting.

    Attributes:
        events: fewer than these wait for more; 1: the stream reads whatever there is.
        delay: seconds since the last batch after which it is read nevertheless.
    """

    events: int = 1
    delay: float = 0.0


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
        idle_poll_interval: seconds between two queries to a hub that had no new events. Spark's
            default trigger would query it all the time.
        waiting: minimum size of a batch of a stream.
        ranges_per_task: number of partitions that one task reads; None for the number with which
            each core has one task.
        parallelism: number of tasks that run at once; None if not set. Spark does not expose the
            actual number to the process that plans a source, so the default is the number of cores
            of the driver's machine, which is correct only for a local session.
        min_tasks: number of tasks to aim at by splitting ranges; None: ranges are not split.
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
    idle_poll_interval: float
    waiting: Waiting
    ranges_per_task: int | None
    parallelism: int | None
    min_tasks: int | None
    reading: ranges.ReadSettings
    names: frozenset[str]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Parse the options as Spark passes them: strings, with names in any case.

        Raises:
            ConfigurationError: an option is unknown, malformed, set twice or missing.
        """
        options = known_options(options, NAMES)
        address = parse_address(options)
        hub = address.eventhub_name
        store, reading = options.get("checkpointStore", ""), parse_settings(options)
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
                parse_bytes(options, "maxBytesPerTrigger"),
            ),
            idle_poll_interval=parse_seconds(options, "idlePollInterval", IDLE_POLL_INTERVAL),
            waiting=parse_waiting(options),
            ranges_per_task=parse_ranges_per_task(options),
            parallelism=parse_limit(options, "parallelism"),
            min_tasks=parse_min_tasks(options, reading),
            reading=reading,
            names=frozenset(options),
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


def parse_min_tasks(options: Options, reading: ranges.ReadSettings) -> int | None:
    """Parse `minPartitions`.

    Raises:
        ConfigurationError: it is not a count, or contradicts another option.
    """
    if "minPartitions" not in options:
        return None
    if "partitionsPerTask" in options:
        raise ConfigurationError(
            "minPartitions divides partitions among tasks, and partitionsPerTask joins them; use "
            "one of the two options"
        )
    if reading.owner_level is not None:
        raise ConfigurationError(
            "minPartitions needs several receivers of a partition, but ownerLevel or "
            "useExclusiveReceiver allows only one; leave minPartitions or that option out"
        )
    return parse_count(options, "minPartitions", 1)


def parse_owner_level(options: Options) -> int | None:
    """Parse `ownerLevel`, or the connector's `useExclusiveReceiver`; None: not exclusive.

    Raises:
        ConfigurationError: it is malformed, both are set, or the transport has no owner levels.
    """
    names = [name for name in ("ownerLevel", "useExclusiveReceiver") if name in options]
    if not names:
        return None
    if len(names) > 1:
        raise ConfigurationError("use the option ownerLevel or useExclusiveReceiver, not both")
    level: int | None
    if "ownerLevel" in options:
        level = parse_count(options, "ownerLevel", 0, least=0)
    else:
        exclusive = parse_choice(options, "useExclusiveReceiver", "false", ("true", "false"))
        level = 0 if exclusive == "true" else None
    if level is not None and options.get("transport", "").strip().lower() == "kafka":
        raise ConfigurationError(
            f"{names[0]} is refused with transport=kafka: Kafka has no owner levels"
        )
    return level


MAX_TRIGGER_DELAY = 15 * 60.0


def parse_waiting(options: Options) -> Waiting:
    """Parse `minEventsPerTrigger` and `maxTriggerDelay`.

    Raises:
        ConfigurationError: one is malformed, or there is a delay without a minimum. A delay needs a
            unit, because a plain number is milliseconds for Spark's Kafka source.
    """
    delay = parse_seconds(options, "maxTriggerDelay", MAX_TRIGGER_DELAY, needs_unit=True)
    if "maxTriggerDelay" in options and "minEventsPerTrigger" not in options:
        raise ConfigurationError("maxTriggerDelay needs minEventsPerTrigger; set both")
    return Waiting(parse_count(options, "minEventsPerTrigger", 1), delay)


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
        owner_level=parse_owner_level(options),
    )


END_NAMES: Mapping[Meaning | None, str] = {Meaning.START: "earliest", Meaning.END: "latest"}
"""Names of the two ends of a stream; other programs have other words for them."""


def parse_one_position(options: Options, name: str, default: str) -> EventPosition:
    """Parse one position: `earliest`, `latest`, a time, or the connector's JSON."""
    text = options.get(name, default).strip()
    if text.startswith("{"):
        fields = formats.parse_object(text, name)
        if fields and not fields.keys() & set(formats.FIELDS):
            raise ConfigurationError(
                f"{name} is one position, for all partitions that {name}s does not name; use "
                f"{name}s for positions by partition"
            )
        return formats.parse_position(fields, name)
    if text in ("earliest", "latest"):
        return position_of(text)
    if end := END_NAMES.get(meaning_of(text)):
        raise ConfigurationError(f"{name} is {quoted(text)}; expected {end}, which means the same")
    try:
        return EventPosition.from_enqueued_time(parse_time(text, name))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; or use earliest, latest or the connector's JSON"
        ) from None


def parse_by_partition(options: Options, name: str, hub: str) -> dict[str, EventPosition]:
    """Parse positions by partition id, from the connector's JSON.

    Raises:
        ConfigurationError: it is malformed, or names another hub.
    """
    if options.get(name, "").startswith(("StartingPositions(", "EndingPositions(")):
        raise ConfigurationError(
            f"{name} is an object that Spark has converted to a string; pass its options by "
            ".options(**positions.to_source())"
        )
    text = options.get(name, "{}").strip()
    if not text.startswith("{"):
        raise ConfigurationError(
            f"{name} is {quoted(text)}; expected the connector's JSON, with a position for each "
            f"partition. Use {name[:-1]} for one position of all partitions"
        )
    return formats.parse_positions(text, hub, name)


def parse_limit(options: Options, name: str) -> int | None:
    """Parse a whole number of at least 1; None if the option is not set."""
    return parse_count(options, name, 1) if name in options else None


BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
WITH_BYTE_UNIT = re.compile(r"(\d{1,15}) ?(?:([kmg])b?|b)?", re.IGNORECASE)


def parse_bytes(options: Options, name: str) -> int | None:
    """Parse a number of bytes, such as `16m` or `16777216`; None if the option is not set."""
    if name not in options:
        return None
    text = options[name].strip()
    parts = WITH_BYTE_UNIT.fullmatch(text)
    size = int(parts[1]) * BYTES[(parts[2] or "").lower()] if parts else 0
    if not size:
        raise ConfigurationError(
            f"{name} is {quoted(text)}; expected bytes, such as 16777216 or 16m"
        )
    return size


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
                f"{name}, entry {quoted(key)} is {quoted(count)}; expected a whole number of at "
                "least 1"
            )
    return limits
