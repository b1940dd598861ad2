"""Where a stream starts: a saved position, a given start point, or the beginning."""

from typing import Final, TypeVar

Saved = TypeVar("Saved")
Start = TypeVar("Start")

BEGINNING: Final = "-1"
"""Before the oldest event of a partition, as the client spells it."""


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
