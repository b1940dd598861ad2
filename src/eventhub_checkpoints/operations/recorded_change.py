"""Command that changes stored positions of groups, with a record for `ehcp undo`.

Every such command does the same: it locks the group, reads it, refuses it while consumers run,
continues its own interrupted attempt, and changes positions with a record. What it stores is
planned by `reset`, `preview`, `exchange`, `restore` or `delete`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.operations.change import (
    HOLD,
    STOP_OR_FORCE,
    Force,
    Targets,
    change_positions,
    in_order_of_change,
    refuse_active,
)
from eventhub_checkpoints.operations.groups import Group, group
from eventhub_checkpoints.operations.journal import (
    DONE,
    Journal,
    Record,
    interrupted,
    new_record,
    positions_before,
)
from eventhub_checkpoints.operations.positions import Position, Positions, positions_of
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

Progress = Callable[[Record, Sequence[str]], AbstractContextManager[Callable[[str], None]]]
"""Follows a change, given its record and the partitions in the order in which they are changed; the
context gives the function that is called at each step, see `change_positions`.
"""


def unseen(
    _record: Record, _partition_ids: Sequence[str]
) -> AbstractContextManager[Callable[[str], None]]:
    """Show no progress."""
    return nullcontext(lambda _partition_id: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Command that changes stored positions of groups.

    Attributes:
        name: as it is recorded, with its options, without store and hub.
        store: any synchronous checkpoint store.
        store_name: the store, as shown to people.
        journal: where the command is recorded.
        executes: whether it changes something; if not, it only plans.
        force: whether partitions are taken from running consumers.
        hold: with `force`, seconds for which they are held.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
        timeout: seconds for taking partitions.
        progress: follows the changes.
    """

    name: str
    store: CheckpointStore
    store_name: str
    journal: Journal
    executes: bool = False
    force: bool = False
    hold: float = HOLD
    expires_after: float = EXPIRES_AFTER
    timeout: float
    progress: Progress = unseen


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command has done to a group.

    Attributes:
        record: for `ehcp undo`.
        changed: number of partitions whose position was stored or deleted.
        late: number of late checkpoints of running consumers that were overwritten.
    """

    record: Record
    changed: int
    late: int


class GroupChange:
    """Group that a command changes.

    Attributes:
        command: the command.
        group: the group, as it was read under the lock.
    """

    def __init__(self, command: Command, group: Group) -> None:
        self.command = command
        self.group = group

    @cached_property
    def present(self) -> Positions:
        """Return the stored positions."""
        return positions_of(self.group)

    @cached_property
    def previous(self) -> Record | None:
        """Return the record of the same command, if that was interrupted; it is continued."""
        command = self.command
        return interrupted(command.journal, self.group.scope, command.name, command.store_name)

    @property
    def before(self) -> dict[str, Position | None]:
        """Return the positions before the interrupted attempt, where it changed them."""
        if self.previous is None:
            return {}
        return positions_before(self.previous.former, self.previous.written, self.present)

    def refuse_active(self, *, own: str = "", way_out: str = STOP_OR_FORCE) -> None:
        """Refuse a group that has owners, unless the command takes their partitions.

        Args:
            own: beginning of owner ids that do not count. Where the command continues an
                interrupted attempt, the ids of that attempt take its place.
            way_out: what the operator can do.

        Raises:
            GroupActiveError: it has live members, or another command holds partitions.
        """
        if self.group.is_owned and not self.command.force:
            own = self.previous.owner if self.previous else own
            refuse_active(self.group, own=own, way_out=way_out)

    def store(self, targets: Targets, left: Collection[str] = ()) -> Outcome | None:
        """Store positions, with a record; None if the command only plans, or has nothing to store.

        Args:
            targets: what is stored.
            left: partitions that the command leaves as they are, for its record.

        Raises:
            ConfigurationError: a position cannot be stored, or the record cannot be written;
                nothing was changed.
            StaleCheckpointError: a consumer stored a checkpoint meanwhile.
        """
        command, scope = self.command, self.group.scope
        if not command.executes or not targets:
            return None
        record = self.previous or new_record(
            command.journal, scope, command.name, command.store_name
        )
        forced = None
        if self.group.is_owned:
            # Without `force`, only claims of the interrupted attempt are left, and are released.
            hold = command.hold if command.force else 0.0
            forced = Force(record.owner, hold, command.timeout, command.expires_after)

        def keep(present: Positions) -> None:
            nonlocal record
            record = record.with_targets(targets, present, left)
            command.journal.save(record)

        with command.progress(record, in_order_of_change(targets)) as step:
            late = change_positions(
                command.store, scope, targets, keep=keep, force=forced, progress=step
            )
        record = replace(record, state=DONE)
        command.journal.save(record)
        return Outcome(record, len(targets), late)


@contextmanager
def changing(command: Command, scope: Scope) -> Iterator[GroupChange]:
    """Lock a group if the command changes something, and read it.

    Raises:
        CheckpointStoreError: another command changes the group.
    """
    with command.journal.locked(scope) if command.executes else nullcontext():
        yield GroupChange(command, group(command.store, scope, expires_after=command.expires_after))
