"""Mirror of a consumer group: its checkpoints, copied from one store to another again and again."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventhub_checkpoints.abilities import Replaces
from eventhub_checkpoints.errors import InvalidRecordError, StaleCheckpointError, StoreError
from eventhub_checkpoints.operations.groups import EXPIRES_AFTER, Group, group, in_order
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.transfer import Action, Step, plan
from eventhub_checkpoints.records import Scope


@dataclass(frozen=True, slots=True)
class Pass:
    """Result of one pass over a group.

    Attributes:
        time: when it ended, in seconds since the epoch.
        steps: decisions, by partition in numeric order; empty if a store could not be read.
        copied: partitions whose position was written to the target.
        error: why the pass is incomplete; `""` if it is complete.
    """

    time: float
    steps: Sequence[Step] = ()
    copied: Sequence[str] = ()
    error: str = ""


@dataclass(slots=True)
class Mirror:
    """Copies the checkpoints of a group from one store to another.

    A checkpoint is copied if the source is ahead. If the source goes back, the target follows only
    where it still has what this mirror copied; a target that was ahead from the beginning, or that
    another program has written, is left alone. So is a partition with a live owner at the target.

    Attributes:
        source: any synchronous checkpoint store; only read.
        target: any synchronous checkpoint store.
        scope: the group.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
    """

    source: Any
    target: Any
    scope: Scope
    expires_after: float = EXPIRES_AFTER
    _copied: dict[str, Position] = field(default_factory=dict)

    def preview(self) -> list[Step]:
        """Return what a pass would do.

        Raises:
            StoreError: a store could not be read.
        """
        found = group(self.source, self.scope, expires_after=self.expires_after)
        here = group(self.target, self.scope, expires_after=self.expires_after)
        return plan(positions(found), positions(here), owners(here), self._copied)

    def copy(self) -> Pass:
        """Make one pass; an outage of a store is reported in the result."""
        steps: list[Step] = []
        copied: list[str] = []
        errors: list[str] = []
        try:
            steps = self.preview()
            for step in steps:
                if step.action is Action.EQUAL and step.target is not None:
                    self._copied[step.partition_id] = step.target
                elif step.action.writes:
                    self._write(step, copied, errors)
        except StoreError as error:
            errors.append(str(error))
        return Pass(time.time(), steps, copied, "; ".join(errors))

    def _write(self, step: Step, copied: list[str], errors: list[str]) -> None:
        row = step.source.as_dict(self.scope, step.partition_id)
        try:
            if step.action is Action.REWIND and isinstance(self.target, Replaces):
                assert step.target is not None
                stored = step.target.as_row()
                if not self.target.replace_checkpoint(row, stored):
                    return
            else:
                is_rewind = step.action is Action.REWIND
                self.target.update_checkpoint(row, force=is_rewind, on_stale="raise")
        except StaleCheckpointError:
            return  # another writer of the target was faster; the next pass decides anew
        except InvalidRecordError as error:
            errors.append(f"partition {step.partition_id}: {error}")
            return
        self._copied[step.partition_id] = step.source
        copied.append(step.partition_id)

    def run(self, every: float, stopping: threading.Event) -> Iterator[Pass]:
        """Make passes until `stopping` is set; yield each result.

        Args:
            every: seconds between two passes.
            stopping: set it, for example in a signal handler, to end after the current pass.
        """
        while not stopping.is_set():
            yield self.copy()
            stopping.wait(every)


def positions(found: Group) -> dict[str, Position]:
    """Return the positions of a group by partition id, in numeric order."""
    return {id_: Position.of(found.checkpoints[id_]) for id_ in in_order(found.checkpoints)}


def owners(found: Group) -> dict[str, str]:
    """Return the live owners of a group by partition id."""
    return {id_: each.owner_id for id_, each in found.ownerships.items() if each.is_live}
