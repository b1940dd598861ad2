"""Journal of changed positions: what a command has stored, and what was stored before it.

A record is written before the first change, so that a command that was killed can be undone, or
repeated.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from eventhub_checkpoints.operations.fence import new_owner
from eventhub_checkpoints.operations.positions import Position, Positions
from eventhub_checkpoints.records import Scope

STARTED, DONE, UNDONE = "started", "done", "undone"


@dataclass(frozen=True, slots=True)
class Record:
    """Positions of a group before a command, and what it stored.

    Attributes:
        path: the file.
        time: when the command began, in ISO 8601.
        command: the command with its options, without store and hub.
        store: the store, as shown to people.
        state: `started`, `done`, or `undone` if its positions were restored.
        owner: beginning of the owner ids with which the command took partitions.
        former: positions before it; a partition that is missing had none.
        written: positions that it stored; the row of a partition that is missing was deleted.
        untouched: positions of the partitions that it left as they were.
    """

    path: Path
    scope: Scope
    time: str
    command: str
    store: str
    state: str = STARTED
    owner: str = ""
    former: Positions = field(default_factory=dict)
    written: Positions = field(default_factory=dict)
    untouched: Positions = field(default_factory=dict)

    @property
    def partition_ids(self) -> set[str]:
        """Return the partitions that the command changes."""
        return {*self.former, *self.written}

    @property
    def is_undo(self) -> bool:
        """Return whether the command is itself an undo."""
        return self.command.split(" ", 1)[0] == "undo"

    def with_targets(
        self,
        targets: Mapping[str, Position | None],
        present: Positions,
        left: Collection[str] = (),
    ) -> "Record":
        """Return the record of a command that is about to store positions.

        Args:
            targets: what it stores; None: it deletes the row.
            present: positions now, some of which an interrupted attempt may have stored.
            left: partitions that it leaves as they are.
        """
        before = {**present, **positions_before(self.former, self.written, present)}
        ids = self.partition_ids | {*targets}
        return replace(
            self,
            former={id_: each for id_ in ids if (each := before.get(id_)) is not None},
            written={**self.written, **{id_: each for id_, each in targets.items() if each}},
            untouched={id_: present[id_] for id_ in left if id_ in present and id_ not in ids},
            state=STARTED,
        )


class Journal(Protocol):
    """Where records are kept, and the lock that a command holds while it changes a group."""

    def path_of(self, scope: Scope, began: datetime) -> Path:
        """Return the file of the record of a command on a group that began at a time."""

    def records(self, scope: Scope | None = None) -> Iterator[Record]:
        """Yield the records of a group, or of all groups, the newest first."""

    def save(self, record: Record) -> None:
        """Write a record, all or nothing.

        Raises:
            ConfigurationError: it cannot be written.
        """

    def locked(self, scope: Scope) -> AbstractContextManager[None]:
        """Prevent other commands from changing a group during the block.

        Raises:
            CheckpointStoreError: another command changes the group.
        """


def new_record(journal: Journal, scope: Scope, command: str, store: str) -> Record:
    """Return a record that is not written yet, with an owner id of its own."""
    now = datetime.now(UTC)
    time = now.isoformat(timespec="seconds")
    return Record(journal.path_of(scope, now), scope, time, command, store, owner=new_owner())


def interrupted(journal: Journal, scope: Scope, command: str, store: str) -> Record | None:
    """Return the record of the same command, if the newest one of the group did not finish."""
    newest = next(journal.records(scope), None)
    if newest is None or newest.state != STARTED:
        return None
    return newest if (newest.command, newest.store) == (command, store) else None


def newest_change(journal: Journal, scope: Scope, store: str) -> Record | None:
    """Return the newest record that can be undone; an undo is undone by naming its file."""
    return next(
        (
            record
            for record in journal.records(scope)
            if record.store == store and record.state != UNDONE and not record.is_undo
        ),
        None,
    )


def positions_before(
    former: Positions, written: Positions, present: Positions
) -> dict[str, Position | None]:
    """Return the positions before a command that was interrupted, of the partitions it changed.

    The other partitions keep their present positions. With these, repeating the command has the
    effect of the first attempt, also if it shifts positions.
    """
    return {
        id_: former.get(id_)
        for id_ in {*former, *written}
        if present.get(id_) == written.get(id_) and present.get(id_) != former.get(id_)
    }
