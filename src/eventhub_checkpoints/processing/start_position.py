"""Choice of the position where a partition starts, and detection of positions the hub lacks."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eventhub_checkpoints._shared.client import NO_SUCH_POSITION
from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints._shared.offset_words import START_OF_STREAM, meaning_of
from eventhub_checkpoints._shared.start_position import refused_by_hub, resolve_start
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.records import DECIMAL

Stored = tuple[object, object]
"""Sequence number and offset of a stored checkpoint, as listed."""


@dataclass(slots=True, eq=False, repr=False)
class StartChoice:
    """Choice of the saved positions that the client of one processor sees.

    Attributes:
        saves: whether the processor saves positions.
        start_of: returns the start position that is set for a partition; None: the beginning.
        from_saved: whether a saved position takes precedence over a start position.
        shown: positions returned to the client last; None: it has not listed any yet.
        begun: partitions that were opened since the processor started.
        at_start: those of them that were opened at their start position.
        finished: last finished position of each partition, in this process.
        passed_over: stored position of each partition when it was not shown.
        refused: partitions whose position the hub does not have, until they are opened again.
    """

    saves: bool
    start_of: Callable[[str], Any]
    from_saved: bool
    shown: dict[str, Stored] | None = None
    begun: set[str] = field(default_factory=set)
    at_start: set[str] = field(default_factory=set)
    finished: dict[str, Position] = field(default_factory=dict)
    passed_over: dict[str, Stored | None] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def show(self, saved: Mapping[str, Stored]) -> dict[str, Stored]:
        """Return the positions to show the client, from the saved and the finished ones.

        A partition that is missing from the result starts at its start position.
        """
        positions = {key: self._position(key, saved.get(key)) for key in {*saved, *self.finished}}
        self.shown = {key: each for key, each in positions.items() if each is not None}
        return self.shown

    def last_shown(self, partition_id: str) -> Stored | None:
        """Return the position last shown of a partition; None if there is none."""
        return (self.shown or {}).get(partition_id)

    def _position(self, partition_id: str, saved: Stored | None) -> Stored | None:
        if partition_id not in self.refused:
            if partition_id in self.begun:
                return self._reopened(partition_id, saved)
            start = self.start_of(partition_id)
            if resolve_start(self.saves, start, saved, self.from_saved) is saved:
                return saved
        self.passed_over[partition_id] = saved
        return None

    def _reopened(self, partition_id: str, saved: Stored | None) -> Stored | None:
        finished = self.finished.get(partition_id)
        is_unchanged = partition_id in self.passed_over and saved == self.passed_over[partition_id]
        # A position that was passed over at first says nothing about what was processed since; and
        # a processor that does not save continues where it was.
        if finished and (is_unchanged or saved is None or not self.saves):
            return finished
        is_unused = not self.saves and not self.from_saved
        return None if is_unchanged or is_unused else saved

    def opened(self, partition_id: str) -> None:
        """Record that the client has opened a partition."""
        self.begun.add(partition_id)
        self.refused.discard(partition_id)
        self.at_start.discard(partition_id)
        if self.shown is not None and partition_id not in self.shown:
            self.at_start.add(partition_id)

    def closed(self, partition_id: str, finished: Position | None) -> None:
        """Record that the client has closed a partition, and how far it was processed."""
        # If a position was refused, those before it are of an event hub that no longer exists.
        if finished is not None and partition_id not in self.refused:
            self.finished[partition_id] = finished

    def refuse(self, partition_id: str) -> None:
        """Have a partition opened at its start position next, and forget how far it was."""
        self.refused.add(partition_id)
        self.finished.pop(partition_id, None)


REFUSAL = (
    r"(?s)The supplied (?:offset|sequence number) '[^']*' is invalid.*"
    r"|The filter '[^\n]*' is not a valid amqp filter.*"
)


def refused_position(error: BaseException) -> str | None:
    """Return the service's message if it refused a position that it does not have, else None.

    Source: azure-event-hubs-dotnet #385 and azure-sdk-for-net #49318 for the sentences,
    azure-sdk-for-net #48101 for the condition of a hub with geo-replication.
    """
    seen: BaseException | None = error
    while seen is not None:
        text = unmasked_message(seen)
        if refusal := re.search(REFUSAL, text):
            return refusal[0].splitlines()[0]
        condition = str(getattr(seen, "condition", ""))
        if any(each in text or each in condition for each in NO_SUCH_POSITION):
            return text.splitlines()[0] if text else condition
        seen = seen.__cause__ or seen.__context__
    return None


def beyond(position: Stored, properties: Mapping[str, Any]) -> str | None:
    """Explain why the partition does not have a position; None if it has it.

    If the sequence number is known, it alone decides: the offset of a partition whose events
    have all expired may be reported as "-1", and a hub that became geo-replicated has different
    offsets.

    Args:
        position: sequence number and offset, as far as they are known.
        properties: of the partition, as the client returns them.
    """
    number, offset = position
    last = properties["last_enqueued_sequence_number"]
    if isinstance(number, int) and number >= 0:
        return f"sequence number {number} is beyond the last, {last}" if number > last else None
    return refused_offset(offset, properties)


def refused_offset(offset: object, properties: Mapping[str, Any]) -> str | None:
    """Explain why the partition refuses an offset; None if it may accept it, or there is none."""
    if not isinstance(offset, str):
        return None
    last_offset = str(properties["last_enqueued_offset"])
    return refused_by_hub(offset, last_offset, properties["last_enqueued_sequence_number"])


def is_opaque(offset: object) -> bool:
    """Return whether only an attempt to begin at an offset shows if the hub accepts it."""
    is_offset = isinstance(offset, str) and meaning_of(offset) is None
    return is_offset and DECIMAL.fullmatch(str(offset)) is None


def has_events_after(start: object, properties: Mapping[str, Any]) -> bool:
    """Return whether a partition has events after a start position, as far as that is known.

    Args:
        start: a sequence number, another start position, or None for the beginning.
        properties: of the partition, as the client returns them.
    """
    if properties["is_empty"]:
        return False
    if isinstance(start, int):
        return bool(properties["last_enqueued_sequence_number"] > start)
    return start in (None, START_OF_STREAM)
