"""What the service says and does not say of where a partition starts."""

import re
from collections.abc import Mapping
from typing import Any

from eventhub_checkpoints._core.start import BEGINNING

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
    """What is wrong with a position that lies behind the last event; None where it does not.

    Args:
        place: its sequence number and its offset, as far as they are known.
        properties: what the client says of the partition.
    """
    number, offset = place
    last = properties["last_enqueued_sequence_number"]
    if isinstance(number, int) and number > last:
        return f"sequence number {number} is beyond the last, {last}"
    end = str(properties["last_enqueued_offset"])
    # An offset is opaque: only where both are numbers can they be of the same kind.
    are_numbers = DECIMAL.fullmatch(str(offset)) and DECIMAL.fullmatch(end)
    if are_numbers and int(str(offset)) > int(end):
        return f"offset {offset} is beyond the last, {end}"
    return None


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
