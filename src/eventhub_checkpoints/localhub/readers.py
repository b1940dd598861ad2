"""Admission of readers to a partition in a consumer group, by epoch and number of readers.

Rule 1: a new reader with an epoch displaces every reader with none, a lower or the same one.
Rule 2: a new reader is refused while one with a higher epoch is present; no epoch is lowest.
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
    """Properties of a reader that the rules need; `epoch` is None for a reader without one."""

    @property
    def name(self) -> str: ...

    @property
    def epoch(self) -> int | None: ...


R = TypeVar("R", bound=Reader)


def admit(present: Sequence[R], epoch: int | None) -> list[tuple[R, Error]]:
    """Decide whether to admit a new reader.

    Args:
        present: the readers of the same partition and consumer group.
        epoch: the new reader's epoch.

    Returns:
        The readers to disconnect, each with the error to send.

    Raises:
        RefusedError: the new reader is not admitted.
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
