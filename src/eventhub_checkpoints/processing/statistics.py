"""What operators are told about the saving of one partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventhub_checkpoints.processing.watermark import Position


@dataclass(slots=True)
class Tally:
    """How often what happened to the writes of one partition, over all of its claims.

    Attributes:
        saved: writes that were confirmed.
        refused: writes that a checkpoint of another writer forbade; they are not tried again.
        failed: writes that failed; each is tried again.
    """

    saved: int = 0
    refused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """How the saving of one partition is doing.

    Attributes:
        saved: writes that were confirmed, since the program began.
        refused: writes that a checkpoint of another writer forbade.
        failed: writes that failed and were or will be tried again.
        pending: events that were begun and that the position has not passed.
        lag_events: events that were begun and are not saved: read again after a crash.
        lag_seconds: for how long something has been unsaved: seconds since the last save, or, where
            that had left nothing, since the next event was begun; 0 where nothing is unsaved.
        position: of the last event before which all is finished; None while there is none.
        saved_position: the last that was saved in this claim; None while there is none.
    """

    saved: int
    refused: int
    failed: int
    pending: int
    lag_events: int
    lag_seconds: float
    position: Position | None
    saved_position: Position | None


def by_partition(
    found: Iterable[tuple[Mapping[str, str], PartitionStats]],
) -> dict[str, PartitionStats]:
    """Return statistics by partition id; by all names where they are of several consumer groups.

    Args:
        found: statistics after the names of their partition.
    """
    rows = [(tuple(names.values()), stats) for names, stats in found]
    if len({names[:-1] for names, _ in rows}) > 1:
        return {"/".join(names): stats for names, stats in rows}
    return {names[-1]: stats for names, stats in rows}
