"""Where a partition starts, and positions that the hub does not have."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eventhub_checkpoints._shared.start_position import BEGINNING, resolve_start
from eventhub_checkpoints.processing.watermark import Position

Place = tuple[object, object]
"""Sequence number and offset of a stored checkpoint, as they were listed."""


@dataclass(slots=True)
class StartChoice:
    """The saved positions of one processor's partitions, shown or not.

    Attributes:
        saves: whether the processor saves positions.
        has_start: whether a start point was given for a partition.
        from_saved: whether a saved position comes before a start point.
        shown: the positions that the client was shown last; None: it has not asked.
        begun: partitions that were opened since the processor started.
        at_start: those of them that were opened at their start position.
        finished: the last position that was finished of each, in this process.
        passed_over: what was stored of each when it was not shown.
        refused: partitions whose position the hub does not have, until they are opened again.
    """

    saves: bool
    has_start: Callable[[str], bool]
    from_saved: bool
    shown: dict[str, Place] | None = None
    begun: set[str] = field(default_factory=set)
    at_start: set[str] = field(default_factory=set)
    finished: dict[str, Position] = field(default_factory=dict)
    passed_over: dict[str, Place | None] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def show(self, saved: Mapping[str, Place]) -> dict[str, Place]:
        """The positions to show the client, of those that are saved and others.

        A partition that is not named is to start at its start position.
        """
        places = {key: self._place(key, saved.get(key)) for key in {*saved, *self.finished}}
        self.shown = {key: place for key, place in places.items() if place is not None}
        return self.shown

    def _place(self, partition_id: str, saved: Place | None) -> Place | None:
        if partition_id not in self.refused:
            if partition_id in self.begun:
                return self._again(partition_id, saved)
            start = BEGINNING if self.has_start(partition_id) else None
            if resolve_start(self.saves, start, saved, self.from_saved) is saved:
                return saved
        self.passed_over[partition_id] = saved
        return None

    def _again(self, partition_id: str, saved: Place | None) -> Place | None:
        finished = self.finished.get(partition_id)
        is_unchanged = partition_id in self.passed_over and saved == self.passed_over[partition_id]
        # What was passed over at first says nothing of what was processed since; and who does not
        # save goes on where it was.
        if finished and (is_unchanged or saved is None or not self.saves):
            return finished
        is_for_nobody = not self.saves and not self.from_saved
        return None if is_unchanged or is_for_nobody else saved

    def opened(self, partition_id: str) -> None:
        """The client has opened a partition."""
        self.begun.add(partition_id)
        self.refused.discard(partition_id)
        self.at_start.discard(partition_id)
        if self.shown is not None and partition_id not in self.shown:
            self.at_start.add(partition_id)

    def closed(self, partition_id: str, finished: Position | None) -> None:
        """The client has closed a partition, which was processed up to there."""
        # Where a position was refused, those before it are of a hub that is gone.
        if finished is not None and partition_id not in self.refused:
            self.finished[partition_id] = finished

    def refuse(self, partition_id: str) -> None:
        """Have a partition opened at its start position next, and forget how far it was."""
        self.refused.add(partition_id)
        self.finished.pop(partition_id, None)


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
