"""The store that the mutants are made of: sound, and with all that the checks can ask for."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.conformance import Accessors
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows

Made = TypeVar("Made", bound="type[Sound]")


class StallingRows(MemoryRows):
    """Rows that can be silent for a while."""

    def __init__(self) -> None:
        super().__init__()
        self._silent_until = 0.0

    def stall(self, seconds: float) -> None:
        self._silent_until = time.monotonic() + seconds

    def answer(self) -> None:
        """Wait like a driver: for the answer, or until the time that is left is over."""
        wait = self._silent_until - time.monotonic()
        time.sleep(max(0.0, min(wait, seconds_left())))
        if wait > seconds_left():
            raise TimeoutError("the rows are silent")

    def shift(self, seconds: float) -> None:
        self.clock_shift = seconds

    def accessors(self) -> Accessors:
        return Accessors(put_raw=self.put_raw, stall=self.stall, shift_clock=self.shift)

    def raw(self, kind: Any, scope: Scope) -> Iterator[tuple[str, Any]]:
        """The rows as they are."""
        yield from list(self._table(kind, scope).items())


class Sound(MemoryCheckpointStore):
    """A memory store without a fault; a mutant is a subclass with one."""

    rows: StallingRows
    rows_class: type[StallingRows] = StallingRows

    def read_ownerships(self, scope: Any) -> Any:
        self.rows.answer()
        return super().read_ownerships(scope)

    def try_claim(self, proposal: Any) -> Any:
        self.rows.answer()
        return super().try_claim(proposal)

    def read_checkpoints(self, scope: Any) -> Any:
        self.rows.answer()
        return super().read_checkpoints(scope)

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.rows.answer()
        return super().write_checkpoint(checkpoint, seen)

    def stored(self, proposal: Any) -> Any:
        """The ownership that is stored now; None if there is none."""
        return next(
            (
                row
                for row in self.rows.ownerships(proposal.scope).rows
                if row.partition_id == proposal.partition_id
            ),
            None,
        )

    def stored_checkpoint(self, record: Checkpoint) -> Checkpoint | None:
        """The checkpoint that is stored now; None if there is none."""
        return next(
            (
                row
                for row in self.rows.checkpoints(record.scope).rows
                if row.partition_id == record.partition_id
            ),
            None,
        )


MUTANTS: dict[type[Sound], tuple[str, ...]] = {}
"""Each mutant, and the checks that name its fault."""


def mutant(*caught_by: str) -> Callable[[Made], Made]:
    """A store with one fault, and the checks that must catch it."""

    def listed(made: Made) -> Made:
        MUTANTS[made] = caught_by
        return made

    return listed
