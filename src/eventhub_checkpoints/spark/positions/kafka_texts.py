"""The exact texts in which Spark's Kafka source takes positions.

On the Kafka endpoint of Event Hubs an offset *is* the sequence number. Two words stand for the
ends of a partition, and each is refused in one place: a batch cannot begin at the latest event,
and nothing can end at the earliest.

Source: Spark 4.3.0, `docs/streaming/structured-streaming-kafka-integration.md`; Microsoft's
Azure/azure-event-hubs-for-kafka#130 (offsets are sequence numbers).
"""

from collections.abc import Mapping

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import EventPosition, is_partition_id
from eventhub_checkpoints.spark.positions.texts import compact, read_object

KAFKA_EARLIEST = -2
KAFKA_LATEST = -1

EARLIEST = EventPosition.from_start_of_stream()
LATEST = EventPosition.from_end_of_stream()


def kafka_offsets(
    topic: str, positions: Mapping[str, EventPosition], refused: EventPosition | None = None
) -> str:
    """The value of Kafka's `startingOffsets` or `endingOffsets`.

    Args:
        topic: as it is subscribed to.
        positions: by partition id.
        refused: the end of the stream that the option does not take.

    Raises:
        ConfigurationError: a position cannot be said to Kafka; the partitions are named.
    """
    unknown = unknown_to_kafka(positions, refused)
    if unknown:
        named = ", ".join(f"{partition} ({position})" for partition, position in unknown.items())
        raise ConfigurationError(
            f"Kafka offsets are sequence numbers, and none is known for partition {named}; pass "
            "hub=, which is asked for it, or give missing= another position"
        )
    numbers = {partition: kafka_number(position) for partition, position in positions.items()}
    return compact({topic: numbers})


def unknown_to_kafka(
    positions: Mapping[str, EventPosition], refused: EventPosition | None = None
) -> dict[str, EventPosition]:
    """The positions that Kafka has no offset for: times, bare offsets, and the refused one."""
    return {
        partition: position
        for partition, position in positions.items()
        if position == refused or kafka_number(position) is None
    }


def kafka_number(position: EventPosition) -> int | None:
    """The number that Kafka's source takes for a position; None where it has none."""
    if position == EARLIEST:
        return KAFKA_EARLIEST
    if position == LATEST:
        return KAFKA_LATEST
    return position.sequence_number


def kafka_positions(text: str, topic: str, what: str) -> dict[str, EventPosition]:
    """Read the JSON of one topic, such as `{"Orders":{"0":124,"1":-2}}`.

    Args:
        text: the JSON.
        topic: which topic; Kafka's names differ by case.
        what: the option, for errors.

    Raises:
        ConfigurationError: it is malformed, or does not name the topic.
    """
    topics = read_object(text, what)
    numbers = topics.get(topic)
    if not isinstance(numbers, dict):
        raise ConfigurationError(
            f"{what} names no topic {quoted(topic)}; it names {quoted(', '.join(topics))}"
        )
    if odd := [partition for partition in numbers if not is_partition_id(partition)]:
        raise ConfigurationError(
            f"{what}: {quoted(odd[0])} is no partition; expected decimal numbers"
        )
    return {partition: kafka_position(numbers[partition], what) for partition in numbers}


def kafka_position(number: object, what: str) -> EventPosition:
    """The position that one of Kafka's numbers stands for."""
    if type(number) is not int or number < KAFKA_EARLIEST:
        raise ConfigurationError(
            f"{what}: {quoted(number)} is no offset; expected -2, -1, 0, 1, ..."
        )
    if number < 0:
        return EARLIEST if number == KAFKA_EARLIEST else LATEST
    return EventPosition.from_sequence_number(number, inclusive=True)
