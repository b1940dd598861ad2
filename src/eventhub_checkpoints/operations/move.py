"""Live move of a consumer group from one store to another.

At any time, at most one of the two stores has a position of a partition that a consumer can use.
The other one has a closed checkpoint, at a sequence number that no hub reaches. Closing and opening
are conditional writes, so the state of a move is in the two stores alone: one that was killed at
any step is continued by running it again.

For every partition:

1. The target is fenced and its checkpoint closed, so that its consumers wait.
2. The source is fenced: its consumers lose the partition, or have released it.
3. When its checkpoint has not changed for a while, it is replaced by a closed one that has a copy
   of the position. If a late checkpoint was faster, that one is copied instead.
4. The closed checkpoint at the target is replaced by the position.
5. The target's fence is released, and a consumer of the target can claim the partition.

The fence alone would not do: when the move is killed, it expires, and consumers of both stores
would claim the partition.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.compat import for_each
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.abilities import Deletes, Replaces
from eventhub_checkpoints.errors import (
    ConfigurationError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.operations.change import GroupActiveError
from eventhub_checkpoints.operations.fence import Fence
from eventhub_checkpoints.operations.groups import Group, group, in_order
from eventhub_checkpoints.operations.history import keep_next_write
from eventhub_checkpoints.operations.positions import Position, positions_of
from eventhub_checkpoints.operations.transfer import CLOSED_WAITING, closed_with, position_in
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

SETTLING = 1 / 3
"""Part of the expiration time for which a checkpoint must not have changed before it is copied.

Consumers renew six times within that time, with up to 20 % jitter, and notice a loss then.
"""


START_LATER = (
    "stop the consumers of the new store, and start them again once the move has prepared it"
)
PASSES = 20
"""Number of passes of a move within the time after which an ownership expires."""
LONGEST_INTERVAL = 1.0
"""Seconds between two of them at most."""
CONCURRENCY = 8
"""Partitions whose checkpoints are written at a time."""


MOST_OVERTAKEN = 100
"""Conditional writes of a checkpoint that may fail one after another."""


class Stage(StrEnum):
    """Progress of one partition.

    Attributes:
        OPEN: the source has the position, and the target is not prepared.
        PREPARED: the source has the position, and the target is closed.
        CLOSED: both are closed; the source's row has the position.
        DONE: the target has the position.
    """

    OPEN = "open"
    PREPARED = "prepared"
    CLOSED = "closed"
    DONE = "done"


def stage_of(source: Position | None, target: Position | None) -> Stage:
    """Return how far the move of a partition is, as its two checkpoints show it.

    Raises:
        ConfigurationError: the rows are those of a move in the other direction, or the target is
            ahead of the source.
    """
    if source and source.is_waiting:
        raise ConfigurationError(
            "a move from the target to the source has begun; finish that move first"
        )
    if source and source.is_closed:
        if target and target.is_closed and not target.is_waiting:
            raise ConfigurationError(
                "both checkpoints were closed by moves; store the right position with "
                f"{as_typed('import --force')}"
            )
        is_moved = target is not None and not target.is_closed
        is_empty = target is None and position_in(source) is None
        return Stage.DONE if is_moved or is_empty else Stage.CLOSED
    if source and source.sequence_number is None:
        raise ConfigurationError(
            f"the checkpoint has no sequence number; run {as_typed('migrate')} first"
        )
    if target and target.is_waiting:
        return Stage.PREPARED
    if target and not target.is_closed and is_ahead(target, source):
        shown = "none" if source is None else str(source)
        raise ConfigurationError(
            f"the target has {target} and the source {shown}; delete or rewind the checkpoint of "
            "the target first"
        )
    # The target may have the closed row of an earlier move, which went the other way.
    return Stage.OPEN


def is_ahead(target: Position, source: Position | None) -> bool:
    """Return whether the target is ahead of the source, or cannot be compared with it."""
    if source is None or source.sequence_number is None or target.sequence_number is None:
        return True
    return target.sequence_number > source.sequence_number


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """Progress of one partition.

    Attributes:
        position: as it is or will be at the target; None if the group has none.
        owner_id: live consumer that owns it at the source; `""` if none does.
        target_owner_id: live consumer that owns it at the target; `""` if none does.
    """

    partition_id: str
    stage: Stage
    position: Position | None
    owner_id: str
    target_owner_id: str


@dataclass(frozen=True, slots=True)
class Pass:
    """Result of one pass over a group.

    Attributes:
        time: when it ended, in seconds since the epoch.
        partitions: their progress at the beginning of the pass, in numeric order.
        error: why the pass is incomplete; `""` if it is complete.
    """

    time: float
    partitions: Sequence[PartitionMove] = ()
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Return whether every partition was moved."""
        return not self.error and all(each.stage is Stage.DONE for each in self.partitions)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a group in one store, by partition id.

    Attributes:
        owners: live consumers.
        group: everything that was read.
        fenced: partitions that a fence owns, of this move or of one that was killed.
    """

    checkpoints: Mapping[str, Position]
    owners: Mapping[str, str]
    fenced: Collection[str] = ()
    group: Group | None = None

    @classmethod
    def read(cls, store: CheckpointStore, scope: Scope, expires_after: float) -> Self:
        """Read the rows of a group."""
        stored = group(store, scope, expires_after=expires_after)
        fenced = {id_ for id_, each in stored.ownerships.items() if each.is_fence}
        return cls(positions_of(stored), stored.live_owners, fenced, stored)


def progress(partition_ids: Sequence[str], source: Rows, target: Rows) -> list[PartitionMove]:
    """Return the progress of each partition.

    Raises:
        ConfigurationError: a partition cannot be moved; the message names it.
    """
    moves: list[PartitionMove] = []
    refused: dict[str, list[str]] = {}
    for id_ in in_order(partition_ids):
        here, there = source.checkpoints.get(id_), target.checkpoints.get(id_)
        try:
            stage = stage_of(here, there)
        except ConfigurationError as error:
            refused.setdefault(str(error), []).append(id_)
            continue
        position = there if stage is Stage.DONE else here
        if position and position.is_closed:
            position = position_in(position)
        owner, target_owner = source.owners.get(id_, ""), target.owners.get(id_, "")
        moves.append(PartitionMove(id_, stage, position, owner, target_owner))
    if refused:
        reasons = "; ".join(
            f"partition {', '.join(ids)}: {reason}" for reason, ids in refused.items()
        )
        raise ConfigurationError(f"the group cannot be moved: {reasons}")
    return moves


class Move:
    """Moves a group from one store to another while its consumers run.

    Use it as a context manager, so that its fence of the source is released at the end.

    Args:
        source: the store that the group leaves.
        target: the store that the group gets; its consumers may run already and wait.
        scope: the group.
        partition_ids: all partitions of the hub, with and without a checkpoint.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
        settle: seconds for which the checkpoint of a partition that was taken from a live owner
            must not have changed before it is copied; default: `expires_after` times `SETTLING`.
        waits: whether a partition is moved only once its owner at the source has released it or is
            gone. If not, it is taken from its owner.

    Raises:
        ConfigurationError: a store lacks an ability that is needed.
    """

    def __init__(
        self,
        source: CheckpointStore,
        target: CheckpointStore,
        scope: Scope,
        partition_ids: Sequence[str],
        *,
        expires_after: float = EXPIRES_AFTER,
        settle: float | None = None,
        waits: bool = False,
    ) -> None:
        for store in (source, target):
            if not isinstance(store, Replaces):
                raise ConfigurationError(
                    f"{type(store).__name__} cannot take part in a move: it does not have the "
                    "ability Replaces"
                )
        self._source = source
        self._target = target
        self._scope = scope
        self._ids = in_order(partition_ids)
        self._expires_after = expires_after
        self._settle = expires_after * SETTLING if settle is None else settle
        self._waits = waits
        self._source_fence = Fence(source, scope, expires_after=expires_after)
        self._target_fence = Fence(target, scope, expires_after=expires_after)
        self._source_rows = self._target_rows = Rows({}, {})
        self._changed: dict[str, float] = {}
        self._unanswered_since: float | None = None
        self._done: set[str] = set()
        self._overtaken: dict[tuple[int, str], int] = {}

    @property
    def interval(self) -> float:
        """Return the seconds between two passes."""
        return min(LONGEST_INTERVAL, self._expires_after / PASSES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the partitions of the source; where the store does not answer, they expire.

        A consumer whose partition was not moved goes on where it was. The fence of the target stays
        until it expires: a consumer there would find a closed checkpoint, and a move that goes on
        within that time disturbs nobody.
        """
        self._source_fence.release_stored()

    def check(self) -> list[PartitionMove]:
        """Return the progress of each partition; nothing is written.

        Raises:
            ConfigurationError: a partition cannot be moved; the message names it.
            GroupActiveError: a live consumer of the target owns a partition that it does not have
                yet.
            StoreError: a store could not be read.
        """
        moves = self._read()
        target = self._target_rows.group
        if target and any(each.stage is Stage.OPEN and each.target_owner_id for each in moves):
            raise GroupActiveError(target, START_LATER)
        return moves

    def run(self, every: float, stopping: threading.Event) -> Iterator[Pass]:
        """Work until everything is moved or `stopping` is set; yield the result of each pass.

        A pass during an outage of a store is incomplete, and the next one continues. If the move is
        killed, its fences expire like the ownerships of any owner that is gone.

        Args:
            every: seconds between two passes.
            stopping: set it, for example in a signal handler, to end after the current pass.

        Raises:
            ConfigurationError: see `check`; also if both stores are the same one.
            GroupActiveError: see `check`.
            StoreError: a store failed for good; run the move again to continue.
        """
        moves, is_verified = self.check(), False
        while not stopping.is_set():
            try:
                if not is_verified:
                    self._refuse_same_store(moves)
                    is_verified = True
                result = Pass(time.time(), self.advance())
            except StoreUnavailableError as error:
                result = Pass(time.time(), (), str(error))
            yield result
            if result.is_done:
                return
            stopping.wait(every)

    def hold(self, every: float, seconds: float, stopping: threading.Event) -> None:
        """Keep the source fenced after the move, so that consumers left behind stay idle."""
        end = time.monotonic() + seconds
        while not stopping.is_set() and time.monotonic() < end:
            # In an outage of the source, the closed checkpoints hold its consumers back.
            with suppress(StoreUnavailableError):
                self._source_fence.hold(self._ids)
            stopping.wait(every)

    def advance(self) -> list[PartitionMove]:
        """Make one pass over all partitions; return their progress at its beginning.

        Raises:
            ConfigurationError: a partition cannot be moved; the message names it.
            StoreError: a store failed.
        """
        # Kept over passes that fail.
        self._unanswered_since = self._unanswered_since or time.monotonic()
        moves = self._read()
        waiting = [each.partition_id for each in moves if each.stage is not Stage.DONE]
        self._target_fence.hold(waiting)
        # A move that was killed may have left its fence on a partition that it had moved.
        left = set(self._target_rows.fenced).difference(waiting, self._target_fence.held)
        if left:
            self._target_fence.hold(left, spare_live=True)
        self._target_fence.release(self._target_fence.held.keys() - set(waiting))
        self._fence_source(moves)
        for_each(self._advance, moves, CONCURRENCY)
        self._leave_out_unanswered()
        self._unanswered_since = None
        return moves

    def _advance(self, partition: PartitionMove) -> None:
        """Take the next step of a partition, if it is due."""
        id_ = partition.partition_id
        if partition.stage is Stage.OPEN and id_ in self._target_fence.held:
            self._replace(self._target, id_, CLOSED_WAITING, self._target_rows)
        elif partition.stage is Stage.PREPARED and self._is_quiet(id_):
            closed = closed_with(self._source_rows.checkpoints.get(id_))
            self._replace(self._source, id_, closed, self._source_rows)
        elif partition.stage is Stage.CLOSED and self._target_fence.is_settled(id_, self._settle):
            self._open_target(id_, partition.position)

    def _read(self) -> list[PartitionMove]:
        """Read both stores, and note when a checkpoint of the source has changed."""
        # The target comes first: if a mirror runs beside the move, a newer target would look as if
        # it were ahead of the source.
        before = self._source_rows.checkpoints
        self._target_rows = Rows.read(self._target, self._scope, self._expires_after)
        self._source_rows = Rows.read(self._source, self._scope, self._expires_after)
        self._leave_out_unanswered()
        for id_ in self._ids:
            if before.get(id_) != self._source_rows.checkpoints.get(id_):
                self._changed[id_] = time.monotonic()
        self._close_again()
        moves = progress(self._ids, self._source_rows, self._target_rows)
        self._done = {each.partition_id for each in moves if each.stage is Stage.DONE}
        return moves

    def _leave_out_unanswered(self) -> None:
        """Leave the time in which a store did not answer out of the time to settle.

        In an outage a consumer cannot notice its loss. Afterwards it would go on with the event
        whose checkpoint it was writing.
        """
        now = time.monotonic()
        seconds = now - (self._unanswered_since or now)
        self._unanswered_since = now
        for times in (self._changed, self._source_fence.taken_at, self._target_fence.taken_at):
            for id_ in times:
                times[id_] += seconds

    def _close_again(self) -> None:
        """Close the source's checkpoint of a moved partition that a late consumer has opened.

        Stores of this package do not overwrite a closed checkpoint; those of official SDKs do.
        """
        checkpoints = dict(self._source_rows.checkpoints)
        for id_ in self._done:
            position = checkpoints.get(id_)
            if position is None or not position.is_closed:
                self._replace(self._source, id_, closed_with(position), self._source_rows)
                checkpoints[id_] = closed_with(position)
        self._source_rows = replace(self._source_rows, checkpoints=checkpoints)

    def _refuse_same_store(self, moves: Sequence[PartitionMove]) -> None:
        """Refuse to move a group onto itself, which would close the only checkpoints.

        Two URLs may name one place, so an ownership is written to one store and read in the other.
        """
        waiting = [each.partition_id for each in moves if each.stage is not Stage.DONE][:1]
        if not waiting:
            return
        self._target_fence.hold(waiting)
        if waiting[0] not in self._target_fence.held:
            raise StoreUnavailableError(f"partition {waiting[0]} went to another owner; try again")
        owner = self._source_fence.read().get(waiting[0])
        if owner and owner.owner_id == self._target_fence.owner_id(waiting[0]):
            self._target_fence.release(waiting)
            raise ConfigurationError("source and target are the same store; nothing was moved")

    def _fence_source(self, moves: Sequence[PartitionMove]) -> None:
        """Fence the partitions whose checkpoint at the target is closed, or open already."""
        moved = [each.partition_id for each in moves if each.stage in (Stage.CLOSED, Stage.DONE)]
        ready = [each.partition_id for each in moves if each.stage is Stage.PREPARED]
        if self._waits:
            self._source_fence.hold(ready, spare_live=True)
            self._source_fence.hold(moved)
        else:
            self._source_fence.hold([*ready, *moved])

    def _is_quiet(self, partition_id: str) -> bool:
        """Return whether the source's position of a partition can be copied."""
        changed = self._changed.get(partition_id, 0.0)
        return self._source_fence.is_settled(partition_id, self._settle, changed)

    def _open_target(self, partition_id: str, position: Position | None) -> None:
        if position is not None:
            self._replace(self._target, partition_id, position, self._target_rows)
        elif isinstance(self._target, Deletes):
            # Its consumers start where their client says, as they would have at the source.
            self._target.delete_partition(*self._scope, partition_id)
        else:
            raise ConfigurationError(
                f"partition {partition_id} has no checkpoint, and {type(self._target).__name__} "
                "cannot delete the closed one: it does not have the ability Deletes"
            )

    def _replace(
        self, store: CheckpointStore, partition_id: str, position: Position, rows: Rows
    ) -> None:
        """Replace a checkpoint if it is still the one that was read; else the next pass decides.

        Raises:
            StoreError: the stored row is never the one that was read, as when lists leave it out.
        """
        stored = rows.checkpoints.get(partition_id)
        row = position.as_dict(self._scope, partition_id)
        keep_next_write(store, self._scope, partition_id)
        assert isinstance(store, Replaces), "checked when the move was made"
        if store.replace_checkpoint(row, stored.as_row() if stored else None):
            self._overtaken.pop((id(store), partition_id), None)
            return
        overtaken = self._overtaken[id(store), partition_id] = (
            self._overtaken.get((id(store), partition_id), 0) + 1
        )
        if overtaken > MOST_OVERTAKEN:
            raise StoreError(
                f"the checkpoint of partition {partition_id} was not the one that was read, "
                f"{overtaken} times in a row: stop what writes it, or delete it if no list has it"
            )
