"""Choice of the position at which a partition is first read, and whether a hub can have it."""

from datetime import datetime
from typing import Any, TypeVar

from eventhub_checkpoints._shared.offset_words import START_OF_STREAM, is_taken, meaning_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.times import EPOCH, MILLISECOND
from eventhub_checkpoints.records import DECIMAL

Saved = TypeVar("Saved")
Start = TypeVar("Start")


def resolve_start(
    save: bool, start: Start | None, saved: Saved | None, from_saved: bool
) -> Saved | Start | str:
    """Return the position at which a partition starts.

    Args:
        save: whether positions are saved. If so, a saved position takes precedence over a start
            point, which then applies to the first run only.
        start: the start point that was passed, if any.
        saved: the saved position, if any.
        from_saved: use a saved position in any case.

    Returns:
        `saved`, `start` or `START_OF_STREAM`.
    """
    if saved is not None and (from_saved or (save and start is not None)):
        return saved
    return START_OF_STREAM if start is None else start


def client_position(start: Any) -> Any:
    """Return a start point as the client's `starting_position`; None is the beginning.

    In this package, a time means the first event that was enqueued at or after it; the client
    itself starts strictly after the time.

    Source: azure-eventhub 5.15.1, `_utils.py`, `event_position_selector`.
    """
    if not isinstance(start, datetime):
        return START_OF_STREAM if start is None else start
    milliseconds = (start - EPOCH) // MILLISECOND
    return EPOCH + (milliseconds - 1) * MILLISECOND if milliseconds > 0 else START_OF_STREAM


def refused_by_hub(offset: str, last_offset: str, last_number: int) -> str | None:
    """Explain why a hub refuses an offset; None if it may accept it.

    Two decimal offsets are compared. A hub with geo-replication has opaque ones, and refuses those
    from before. Nothing else is known of an opaque offset.

    Args:
        offset: of a checkpoint; none if `""`.
        last_offset: of the partition.
        last_number: sequence number of the partition's newest event, -1 if it never had one.
    """
    if not offset:
        return None
    if meaning_of(offset) is not None:
        return None if is_taken(offset) else f"offset {quoted(offset)} is a word, and no offset"
    is_forgotten = last_offset == START_OF_STREAM and last_number >= 0
    if is_forgotten or DECIMAL.fullmatch(offset) is None:
        return None
    if DECIMAL.fullmatch(last_offset) is None:
        return f"offset {offset} is decimal, and those of the hub are not: it is geo-replicated now"
    is_beyond = int(offset) > int(last_offset)
    return f"offset {offset} is beyond the last, {last_offset}" if is_beyond else None


def is_of_another_form(offset: str, last_offset: str) -> bool:
    """Return whether an offset is opaque, and those of the hub are decimal."""
    is_word = meaning_of(offset) is not None or meaning_of(last_offset) is not None
    is_decimal = DECIMAL.fullmatch(offset) is not None
    return not is_word and not is_decimal and DECIMAL.fullmatch(last_offset) is not None
