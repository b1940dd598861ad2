"""Who may read a partition in a consumer group: epochs, and five readers without one.

Rule 1: a newcomer with an epoch displaces every reader that has none, a lower or the same one.
Rule 2: a newcomer is refused while a reader with a higher epoch is there; having none is lowest.
Rule 3: without epochs, five readers share the partition and the sixth is refused.

Source: Event Hubs documentation, "Features and terminology", on epochs; public traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from eventhub_checkpoints.localhub.conditions import (
    RefusedError,
    displaced,
    higher_epoch_exists,
    too_many_readers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eventhub_checkpoints.amqp.performatives import Error

MAX_READERS = 5


class Reader(Protocol):
    """What the rules need to know of a reader; `epoch` is None for one without."""

    @property
    def name(self) -> str: ...

    @property
    def epoch(self) -> int | None: ...


R = TypeVar("R", bound=Reader)


def admit(present: Sequence[R], epoch: int | None) -> list[tuple[R, Error]]:
    """Decide on a newcomer.

    Args:
        present: the readers of the same partition and consumer group.
        epoch: the newcomer's epoch.

    Returns:
        The readers that have to go, each with what to tell it.

    Raises:
        RefusedError: the newcomer has to stay out.
    """
    highest = _highest(present)
    if epoch is None:
        if highest is not None:
            raise RefusedError(higher_epoch_exists(highest, None))
        if len(present) >= MAX_READERS:
            raise RefusedError(too_many_readers(MAX_READERS, [reader.name for reader in present]))
        return []
    if highest is not None and highest > epoch:
        raise RefusedError(higher_epoch_exists(highest, epoch))
    return [(reader, displaced(epoch, reader.epoch)) for reader in present]


def _highest(readers: Iterable[Reader]) -> int | None:
    return max((reader.epoch for reader in readers if reader.epoch is not None), default=None)
