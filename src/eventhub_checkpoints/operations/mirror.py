"""Mirror of a consumer group: its checkpoints, copied from one store to another again and again."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.abilities import Replaces
from eventhub_checkpoints.errors import InvalidRecordError, StaleCheckpointError, StoreError
from eventhub_checkpoints.operations.change import write, write_listed
from eventhub_checkpoints.operations.groups import group
from eventhub_checkpoints.operations.history import keep_next_write
from eventhub_checkpoints.operations.positions import Position, positions_of
from eventhub_checkpoints.operations.transfer import Action, Step, plan
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER


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
        written: partitions whose checkpoint was stored at the target, in any pass.
    """

    source: CheckpointStore
    target: CheckpointStore
    scope: Scope
    expires_after: float = EXPIRES_AFTER
    written: set[str] = field(default_factory=set)
    _copied: dict[str, Position] = field(default_factory=dict)

    def preview(self) -> list[Step]:
        """Return what a pass would do.

        Raises:
            StoreError: a store could not be read.
        """
        source = group(self.source, self.scope, expires_after=self.expires_after)
        target = group(self.target, self.scope, expires_after=self.expires_after)
        return plan(positions_of(source), positions_of(target), target.live_owners, self._copied)

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
        scope, id_, position = self.scope, step.partition_id, step.source
        try:
            if step.action is not Action.REWIND:
                # The history has one entry a minute of these, as of a consumer's checkpoints.
                write_listed(self.target, scope, id_, position, is_kept=False)
            elif isinstance(self.target, Replaces):
                assert step.target is not None
                keep_next_write(self.target, scope, id_)
                row = position.as_dict(scope, id_)
                if not self.target.replace_checkpoint(row, step.target.as_row()):
                    return
            else:
                write(self.target, scope, id_, position)
        except StaleCheckpointError:
            return  # another writer of the target was faster; the next pass decides anew
        except InvalidRecordError as error:
            errors.append(f"partition {id_}: {error}")
            return
        self._copied[id_] = position
        copied.append(id_)
        self.written.add(id_)

    def run(self, every: float, stopping: threading.Event) -> Iterator[Pass]:
        """Make passes until `stopping` is set; yield each result.

        Args:
            every: seconds between two passes.
            stopping: set it, for example in a signal handler, to end after the current pass.
        """
        while not stopping.is_set():
            yield self.copy()
            stopping.wait(every)
