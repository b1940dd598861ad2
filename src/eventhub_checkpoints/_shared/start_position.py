"""Choice of the position at which a partition is first read."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

Saved = TypeVar("Saved")
Start = TypeVar("Start")

BEGINNING: Final = "-1"
"""The client's value for the position before the oldest event of a partition."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
"""Resolution of enqueued times."""


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
        `saved`, `start` or `BEGINNING`.
    """
    if saved is not None and (from_saved or (save and start is not None)):
        return saved
    return BEGINNING if start is None else start


def client_position(start: Any) -> Any:
    """Return a start point as the client's `starting_position`; None is the beginning.

    In this package, a time means the first event that was enqueued at or after it; the client
    itself starts strictly after the time.

    Source: azure-eventhub 5.15.1, `_utils.py`, `event_position_selector`.
    """
    if not isinstance(start, datetime):
        return BEGINNING if start is None else start
    milliseconds = (start - EPOCH) // MILLISECOND
    return EPOCH + (milliseconds - 1) * MILLISECOND if milliseconds > 0 else BEGINNING
