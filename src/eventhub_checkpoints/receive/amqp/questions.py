"""What the official client answers about a hub."""

from collections.abc import Mapping
from datetime import UTC, datetime

from eventhub_checkpoints.receive.properties import PartitionProperties


def read_properties(partition_id: str, answer: Mapping[str, object]) -> PartitionProperties:
    """The client's answer, with an empty partition's numbers put straight.

    A partition that never held an event has -1 as its last number; one whose events have all
    expired still has a last number, and nothing before the next one can be read.
    """
    last, begin = answer["last_enqueued_sequence_number"], answer["beginning_sequence_number"]
    enqueued = answer["last_enqueued_time_utc"]
    assert isinstance(last, int)
    assert isinstance(begin, int)
    assert isinstance(enqueued, datetime)
    following = last + 1
    return PartitionProperties(
        partition_id,
        following if answer["is_empty"] else max(begin, 0),
        following,
        str(answer["last_enqueued_offset"]),
        enqueued if enqueued.tzinfo else enqueued.replace(tzinfo=UTC),
    )
