"""Where a stream starts: a saved position, a given start point, or the beginning."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

Saved = TypeVar("Saved")
Start = TypeVar("Start")

BEGINNING: Final = "-1"
"""Before the oldest event of a partition, as the client spells it."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
"""The resolution of enqueued times."""


def resolve_start(
    save: bool, start: Start | None, saved: Saved | None, from_saved: bool
) -> Saved | Start | str:
    """Say where a partition starts.

    Args:
        save: whether positions are saved. Then a saved one goes before a start point, which is
            for the first run.
        start: the start point that was given; None: none was.
        saved: the position that is saved; None: none is.
        from_saved: go on from a saved position in any case.

    Returns:
        `saved`, `start` or `BEGINNING`.
    """
    if saved is not None and (from_saved or (save and start is not None)):
        return saved
    return BEGINNING if start is None else start


def client_position(start: Any) -> Any:
    """Return a start point as the client's `starting_position`; None is the beginning.

    A time means the first event that was enqueued then or later, as everywhere in this package;
    the client's own rule is later than the time.

    Source: azure-eventhub 5.15.1, `_utils.py`, `event_position_selector`.
    """
    if not isinstance(start, datetime):
        return BEGINNING if start is None else start
    milliseconds = (start - EPOCH) // MILLISECOND
    return EPOCH + (milliseconds - 1) * MILLISECOND if milliseconds > 0 else BEGINNING
