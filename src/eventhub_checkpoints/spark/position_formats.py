"""JSON of positions for the JVM connector and for Spark's Kafka source."""

import json
from collections.abc import Mapping
from typing import Any

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require, require_text
from eventhub_checkpoints._shared.times import MILLISECOND, parse_time
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import EventPosition, is_partition_id

FIELDS = ("offset", "seqNo", "enqueuedTime", "isInclusive")


def compact(value: object) -> str:
    """Return JSON as the connector writes it: without spaces or ASCII escapes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def connector_fields(position: EventPosition) -> dict[str, Any]:
    """Return one position as the connector's four fields, in its order.

    The connector requests events that were enqueued *after* the time, whatever `isInclusive` is,
    and the hub's times have milliseconds: the result is the millisecond before. It has exactly
    three fraction digits, because the connector's lenient parser reads `.123456Z` as 123 *seconds*.

    Source: the connector itself, `tests/jvm/test_reading.py`.
    """
    number, time = position.sequence_number, None
    if position.enqueued_time is not None:
        moment = position.enqueued_time - MILLISECOND
        time = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    return {
        "offset": position.offset,
        "seqNo": -1 if number is None else number,
        "enqueuedTime": time,
        "isInclusive": position.inclusive,
    }


def connector_positions(hub: str, positions: Mapping[str, EventPosition]) -> str:
    """Return the connector's `startingPositions` or `endingPositions`."""
    return compact(
        {
            compact({"ehName": hub, "partitionId": int(partition)}): connector_fields(position)
            for partition, position in positions.items()
        }
    )


def parse_position(text: str | Mapping[str, Any], what: str) -> EventPosition:
    """Parse the connector's JSON of one position.

    As in the connector, a sequence number of 0 or more takes precedence over the other fields and
    is the first event to read, whatever `isInclusive` is; and an event exactly at a time is not
    read.

    Raises:
        ConfigurationError: a field is missing or has another type than the connector needs; `what`
            names the option and partition.
    """
    fields = parse_object(text, what) if isinstance(text, str) else text
    missing = [name for name in FIELDS if not isinstance(fields, Mapping) or name not in fields]
    if missing:
        raise ConfigurationError(
            f"{what}: {', '.join(missing)} missing; the connector's format needs all of "
            f"{', '.join(FIELDS)}"
        )
    offset, number, time, inclusive = (fields[name] for name in FIELDS)
    if type(number) is not int or type(inclusive) is not bool:
        raise ConfigurationError(f"{what}: seqNo must be a number and isInclusive true or false")
    if number >= 0:
        return EventPosition.from_sequence_number(number, inclusive=True)
    if offset is not None:
        return EventPosition.from_offset(offset, inclusive=inclusive)
    moment = parse_time(time, f"{what}, enqueuedTime")
    try:
        return EventPosition.from_enqueued_time(moment + MILLISECOND)
    except OverflowError:
        raise ConfigurationError(
            f"{what}, enqueuedTime is {quoted(time)}; expected a time that another can follow"
        ) from None


def parse_positions(text: str, hub: str, what: str) -> dict[str, EventPosition]:
    """Parse the connector's JSON of positions by partition.

    Args:
        text: the JSON.
        hub: the hub's name, case included.
        what: the option, which is the name of the class that makes its value.

    Raises:
        ConfigurationError: the string is malformed, of another form, or names another hub: the
            connector would silently ignore that entry.
    """
    entries = parse_object(text, what)
    made = f"{what[:1].upper()}{what[1:]}"
    for key, fields in entries.items():
        if is_partition_id(key):
            raise ConfigurationError(
                f"{what} names partition {quoted(key)} without the hub; expected the connector's "
                f"JSON, as {made}({hub!r}, positions).to_source() returns it, with an "
                "EventPosition for each partition"
            )
        if isinstance(fields, dict) and fields and all(map(is_partition_id, fields)):
            raise ConfigurationError(
                f"{what} is the JSON of Spark's Kafka source; expected the connector's, as "
                f"{made}.from_kafka(text, {quoted(key)}).to_source() returns it"
            )
    return {
        parse_key(key, hub, what): parse_position(fields, f"{what}, entry {quoted(key)}")
        for key, fields in entries.items()
    }


def parse_key(key: str, hub: str, what: str) -> str:
    """Parse the partition id in a key such as `{"ehName":"hub","partitionId":0}`."""
    try:
        named = parse_object(key, what)
    except ConfigurationError:
        expected = compact({"ehName": hub, "partitionId": 0})
        raise ConfigurationError(
            f"{what}, key {quoted(key)} does not name a hub and a partition; expected a string "
            f"such as {expected}"
        ) from None
    partition = named.get("partitionId")
    if type(partition) is not int:
        raise ConfigurationError(f"{what}, key {quoted(key)}: partitionId must be a number")
    if named.get("ehName") != hub:
        raise ConfigurationError(
            f"{what}, key {quoted(key)}: ehName must be {quoted(hub)}, case included"
        )
    return str(partition)


def parse_object(text: str, what: str) -> dict[str, Any]:
    """Parse a JSON object; the error names the option."""
    require(what, text, isinstance(text, str), "JSON, as a string")
    try:
        value = parse_json(text)
    except ValueError as error:
        # Not chained: the original error contains the whole string.
        raise ConfigurationError(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{what} is not a JSON object")
    return value


KAFKA_EARLIEST = -2
KAFKA_LATEST = -1

EARLIEST = EventPosition.from_start_of_stream()
LATEST = EventPosition.from_end_of_stream()


def kafka_offsets(
    topic: str, positions: Mapping[str, EventPosition], refused: EventPosition | None = None
) -> str:
    """Return the value of Kafka's `startingOffsets` or `endingOffsets`.

    Raises:
        ConfigurationError: Kafka has no offset for a position, or it is `refused`: the end of the
            stream that the option does not accept. The partitions are named.
    """
    require_text("topic", topic, "the name of a topic, which is the hub's")
    if unknown := unknown_to_kafka(positions, refused):
        named = ", ".join(f"{partition} ({position})" for partition, position in unknown.items())
        raise ConfigurationError(
            f"the sequence number of partition {named} is not known, and Kafka offsets are "
            "sequence numbers; pass hub= to look it up, or another position as missing="
        )
    return compact({topic: {key: kafka_number(position) for key, position in positions.items()}})


def unknown_to_kafka(
    positions: Mapping[str, EventPosition], refused: EventPosition | None = None
) -> dict[str, EventPosition]:
    """Return the positions without a Kafka offset: times, bare offsets, and the refused one."""
    return {
        partition: position
        for partition, position in positions.items()
        if position == refused or kafka_number(position) is None
    }


def kafka_number(position: EventPosition) -> int | None:
    """Return the Kafka offset of a position; None if it has none."""
    if position == EARLIEST:
        return KAFKA_EARLIEST
    if position == LATEST:
        return KAFKA_LATEST
    return position.sequence_number


def kafka_positions(text: str, topic: str, what: str) -> dict[str, EventPosition]:
    """Parse the JSON of one topic, such as `{"Orders":{"0":124,"1":-2}}`.

    Raises:
        ConfigurationError: it is malformed, or does not name the topic, case included; `what` names
            the option.
    """
    require_text("topic", topic, "the name of a topic, which is the hub's")
    topics = parse_object(text, what)
    numbers = topics.get(topic)
    if not isinstance(numbers, dict):
        raise ConfigurationError(
            f"{what} does not name topic {quoted(topic)}; it names {quoted(', '.join(topics))}"
        )
    if invalid := [partition for partition in numbers if not is_partition_id(partition)]:
        raise ConfigurationError(
            f"{what}: {quoted(invalid[0])} is not a partition; expected decimal numbers"
        )
    return {partition: kafka_position(numbers[partition], what) for partition in numbers}


def kafka_position(number: object, what: str) -> EventPosition:
    """Return the position for a Kafka offset."""
    if type(number) is not int or number < KAFKA_EARLIEST:
        raise ConfigurationError(
            f"{what}: {quoted(number)} is not an offset; expected a whole number, -2 or more"
        )
    if number < 0:
        return EARLIEST if number == KAFKA_EARLIEST else LATEST
    return EventPosition.from_sequence_number(number, inclusive=True)
