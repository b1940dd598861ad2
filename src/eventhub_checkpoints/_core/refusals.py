"""When the service refuses to start at a position: what it says, and how it is told apart."""

import re
from collections.abc import Mapping
from typing import Any

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
