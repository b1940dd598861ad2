"""What the service says and does not say of where a partition starts."""

import re
from collections.abc import Mapping
from typing import Any

from eventhub_checkpoints._shared.start_position import BEGINNING

SAID = re.compile(r"The supplied (?:offset|sequence number) '[^']*' is invalid.*", re.DOTALL)
DECIMAL = re.compile(r"-?\d+")
CONDITION = "com.microsoft:georeplication:invalid-offset"


def refused_position(error: BaseException) -> str | None:
    """What the service said where it has no such position; None where that is not the matter.

    Source: azure-event-hubs-dotnet #385 for the sentence, azure-sdk-for-net #48101
    for the condition of a hub with geo-replication.
    """
    seen: BaseException | None = error
    while seen is not None:
        text = str(seen)
        if found := SAID.search(text):
            return found[0].splitlines()[0]
        if CONDITION in text or CONDITION in str(getattr(seen, "condition", "")):
            return text.splitlines()[0] if text else CONDITION
        seen = seen.__cause__ or seen.__context__
    return None


def beyond(place: tuple[object, object], properties: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a position that the partition does not have; None if it has it.

    Where the sequence number is known, it alone decides: the offset of a partition whose events
    have all expired may be reported as "-1", and a hub that became geo-replicated has other ones.

    Args:
        place: its sequence number and its offset, as far as they are known.
        properties: the partition's, as the client returns them.
    """
    number, offset = place
    last = properties["last_enqueued_sequence_number"]
    if isinstance(number, int) and number >= 0:
        return f"sequence number {number} is beyond the last, {last}" if number > last else None
    return foreign(offset, properties) or behind_last_offset(str(offset), properties)


def foreign(offset: object, properties: Mapping[str, Any]) -> str | None:
    """Say that an offset is from before the hub was geo-replicated; None if it is not."""
    end = str(properties["last_enqueued_offset"])
    is_decimal = isinstance(offset, str) and offset != BEGINNING and DECIMAL.fullmatch(offset)
    if not is_decimal or DECIMAL.fullmatch(end):
        return None
    return f"offset {offset} is decimal, and those of the hub are not: it is geo-replicated now"


def behind_last_offset(offset: str, properties: Mapping[str, Any]) -> str | None:
    """Say that an offset lies behind the last one; None if it does not, or both are opaque."""
    end = str(properties["last_enqueued_offset"])
    is_forgotten = end == BEGINNING and properties["last_enqueued_sequence_number"] >= 0
    if is_forgotten or not (DECIMAL.fullmatch(offset) and DECIMAL.fullmatch(end)):
        return None
    return f"offset {offset} is beyond the last, {end}" if int(offset) > int(end) else None


def has_events_behind(start: object, properties: Mapping[str, Any]) -> bool:
    """Return whether a partition has events for who starts there, as far as that is known.

    Args:
        start: a sequence number, another start position, or None for the beginning.
        properties: what the client says of the partition.
    """
    if properties["is_empty"]:
        return False
    if isinstance(start, int):
        return bool(properties["last_enqueued_sequence_number"] > start)
    return start in (None, BEGINNING)
