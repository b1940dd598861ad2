"""Changes of stored positions: refused while consumers run, or with their partitions taken.

Two things would undo a position that is written under a running consumer. Its next checkpoint
overwrites it; and even if it does not save, it goes on reading from where it is. `Takeover`
therefore claims the partitions first. Each consumer notices at its next round of load balancing
that it lost them, and closes them. Until then its late checkpoints are overwritten again. When the
partitions are released, the consumers claim them anew and begin at the stored position.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from eventhub_checkpoints.abilities import Deletes, KeepsHistory
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.operations.groups import Group, in_order
from eventhub_checkpoints.operations.positions import Position, read_positions
from eventhub_checkpoints.records import RELEASED, Scope

HOLD = 45.0
"""Seconds for which partitions are held by default.

The client balances every 30 s, and adds up to a fifth; the rest is for closing a partition.
Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `_load_balancing`.
"""
LONGEST_PAUSE = 5.0
"""Seconds between two renewals; any client's ownership expires later than that."""
SHOWN_MEMBERS = 3

Targets = Mapping[str, Position | None]
"""Position to store by partition id; None: no row."""


class GroupActiveError(CheckpointStoreError):
    """A group whose positions are to be changed has live members."""

    def __init__(self, found: Group, way_out: str) -> None:
        members = [
            f"{member.owner_id!r} (partitions {', '.join(member.partition_ids)})"
            for member in found.members
        ]
        more = len(members) - SHOWN_MEMBERS
        names = ", ".join(members[:SHOWN_MEMBERS]) + (f" and {more} more" if more > 0 else "")
        super().__init__(f"{found.scope} is active: {names}; {way_out}")


STOP_OR_FORCE = "stop its consumers, or pass --force to take their partitions"


def refuse_active(found: Group, *, own: str = "", way_out: str = STOP_OR_FORCE) -> None:
    """Refuse a group with live members.

    Args:
        found: the group.
        own: prefix of the owner ids of an interrupted takeover, which do not count.
        way_out: what the operator can do.

    Raises:
        GroupActiveError: it has one.
    """
    others = [member for member in found.members if not own or not member.owner_id.startswith(own)]
    if others:
        raise GroupActiveError(found, way_out)


def write(store: Any, scope: Scope, partition_id: str, position: Position | None) -> None:
    """Store a position, or delete the row of a partition, whatever is stored.

    Raises:
        ConfigurationError: it has no sequence number, or the store cannot delete rows.
        StoreError: the store failed.
    """
    check_writable(store, partition_id, position)
    if position is None:
        store.delete_partition(*scope, partition_id)
        return
    # Stores of other packages pass unknown keywords to their driver.
    force = {"force": True} if isinstance(store, BaseCheckpointStore) else {}
    store.update_checkpoint(position.as_dict(scope, partition_id), **force)


def write_idle(store: Any, scope: Scope, partition_id: str, position: Position | None) -> None:
    """Store a position that was listed by this store, unless another writer has moved it since.

    A list resets what a store without claims knows of a row, so that a write may go back; and it
    is conditional on the listed version. A forced write would also read all owners.

    Raises:
        ConfigurationError: see `write`.
        StaleCheckpointError: a later checkpoint was stored since the list.
        StoreError: the store failed.
    """
    if position is None or not isinstance(store, BaseCheckpointStore):
        write(store, scope, partition_id, position)
        return
    check_writable(store, partition_id, position)
    if isinstance(store, KeepsHistory):
        store.keep_next_write(scope, partition_id)
    store.update_checkpoint(position.as_dict(scope, partition_id), on_stale="raise")


def check_writable(store: Any, partition_id: str, position: Position | None) -> None:
    """Check that a store can hold a position.

    Raises:
        ConfigurationError: the position has no sequence number, or it is None and the store
            cannot delete rows.
    """
    if position is None:
        if not isinstance(store, Deletes):
            raise ConfigurationError(
                f"{type(store).__name__} cannot delete rows: it does not have the ability Deletes"
            )
    elif position.sequence_number is None:
        raise ConfigurationError(
            f"the position of partition {partition_id} has no sequence number and cannot be stored"
        )


class Takeover:
    """Ownerships of partitions that are taken from their consumers, held, and released.

    Every partition gets an owner id of its own. A load balancer takes partitions from the member
    that has the most; from members with one partition each it takes none. A consumer that took a
    partition back before it noticed the loss would read on from its old position.

    Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`, `_balance_ownership`.

    Args:
        store: any synchronous checkpoint store.
        scope: the group.
        partition_ids: the partitions to take.
        owner: beginning of the owner ids.
        timeout: seconds for taking all of them.
    """

    def __init__(
        self, store: Any, scope: Scope, partition_ids: Sequence[str], owner: str, timeout: float
    ) -> None:
        self._store, self._scope, self._timeout = store, scope, timeout
        self._owners = {id_: f"{owner}-{id_}" for id_ in partition_ids}
        self._held: dict[str, Mapping[str, Any]] = {}

    def __enter__(self) -> Self:
        try:
            self.take()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> None:
        """Claim every partition that is not held, over whoever owns it.

        Raises:
            StoreUnavailableError: an owner renewed its claims faster, for `timeout` seconds.
            StoreError: the store failed.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            rows = {row["partition_id"]: row for row in self._store.list_ownership(*self._scope)}
            missing = [id_ for id_ in self._owners if id_ not in self._held]
            self._held |= self._claim(
                {**self._scope.as_dict(), "partition_id": id_, **rows.get(id_, {})}
                for id_ in missing
            )
            missing = [id_ for id_ in self._owners if id_ not in self._held]
            if not missing:
                return
            if time.monotonic() > deadline:
                owner = rows.get(missing[0], {}).get("owner_id")
                raise StoreUnavailableError(
                    f"partition {missing[0]} of {self._scope} could not be taken from {owner!r} "
                    f"within {self._timeout:g} s"
                )

    def renew(self) -> bool:
        """Renew the claims, and take lost ones again; return whether none was lost."""
        self._held = self._claim(self._held.values())
        if len(self._held) == len(self._owners):
            return True
        self.take()
        return False

    def release(self, delete: Iterable[str] = ()) -> None:
        """Release what is held; the rows of partitions in `delete` are deleted instead."""
        for id_ in delete:
            if self._held.pop(id_, None) is not None:
                self._store.delete_partition(*self._scope, id_)
        held, self._held = [*self._held.values()], {}
        if held:
            self._store.claim_ownership([{**row, "owner_id": RELEASED} for row in held])

    def _claim(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        proposals = [{**row, "owner_id": self._owners[row["partition_id"]]} for row in rows]
        won = self._store.claim_ownership(proposals) if proposals else ()
        return {row["partition_id"]: row for row in won}


@dataclass(frozen=True, slots=True)
class Force:
    """How partitions are taken from running consumers.

    Attributes:
        owner: beginning of the owner ids that hold them.
        hold: seconds for which they are held.
        timeout: seconds for taking them.
    """

    owner: str
    hold: float = HOLD
    timeout: float = 60.0


def change_positions(
    store: Any,
    scope: Scope,
    targets: Targets,
    *,
    keep: Callable[[Mapping[str, Position]], None],
    force: Force | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> int:
    """Store positions of a group.

    Args:
        store: any synchronous checkpoint store; with `force` None, no consumer may use the group.
        scope: the group.
        targets: what to store.
        keep: called with the present positions before the first change.
        force: take the partitions from their consumers; None: nobody owns them.
        progress: called after each step, of which there are `steps`, with its name.

    Returns:
        Number of late checkpoints of consumers that were overwritten.

    Raises:
        ConfigurationError: a position cannot be stored; nothing was changed.
        StaleCheckpointError: a consumer stored a checkpoint meanwhile; later partitions are
            unchanged.
        StoreError: the store failed.
    """
    for id_, position in targets.items():
        check_writable(store, id_, position)
    ids = in_order(targets)
    if force is None:
        keep(read_positions(store, scope))
        for id_ in ids:
            try:
                write_idle(store, scope, id_, targets[id_])
            except StaleCheckpointError as error:
                raise stale(error, scope) from None
            progress(id_)
        return 0
    deleted = [id_ for id_ in ids if targets[id_] is None]
    stored = {id_: position for id_, position in targets.items() if position is not None}
    with Takeover(store, scope, ids, force.owner, force.timeout) as takeover:
        keep(read_positions(store, scope))
        for id_ in in_order(stored):
            write(store, scope, id_, stored[id_])
            progress(id_)
        late = hold(store, scope, takeover, stored, force.hold, progress)
        # Deleting a row ends the hold of its partition, so it comes last.
        takeover.release(delete=deleted)
    for id_ in deleted:
        progress(id_)
    return late


def stale(error: StaleCheckpointError, scope: Scope) -> StaleCheckpointError:
    """Return the error for a consumer that started, or has no ownership."""
    return StaleCheckpointError(
        error.partition_id,
        error.sequence_number,
        error.newest,
        f"a consumer of {scope} is running: stop it, and run the command again or ehcp undo",
    )


def hold(
    store: Any,
    scope: Scope,
    takeover: Takeover,
    stored: Mapping[str, Position],
    seconds: float,
    progress: Callable[[str], None],
) -> int:
    """Keep partitions and their positions until their consumers have closed them.

    Returns:
        Number of late checkpoints that were overwritten.

    Raises:
        StoreUnavailableError: consumers took partitions back again and again.
        StoreError: the store failed.
    """
    pause = max(0.05, min(LONGEST_PAUSE, seconds / 10))
    began = time.monotonic()
    until, late = began + seconds, 0
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, pause))
        if not takeover.renew():
            # Whoever had it for a moment may read on from anywhere: everything begins again.
            until = time.monotonic() + seconds
        if until > began + 5 * seconds:
            raise StoreUnavailableError(
                f"consumers of {scope} take partitions back all the time; stop them"
            )
        present = read_positions(store, scope)
        for id_, position in stored.items():
            if present.get(id_) != position:
                write(store, scope, id_, position)
                late += 1
        progress("")
    return late
