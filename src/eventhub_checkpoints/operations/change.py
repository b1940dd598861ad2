"""Changes of stored positions: refused while consumers run, or with their partitions taken.

Two things would undo a position that is written under a running consumer. Its next checkpoint
overwrites it; and even if it does not save, it goes on reading from where it is. A fence therefore
claims the partitions first. Each consumer notices at its next round of load balancing that it lost
them, and closes them. Until then its late checkpoints are overwritten again. When the partitions
are released, the consumers claim them anew and begin at the stored position.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import some
from eventhub_checkpoints.abilities import Deletes
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.operations.fence import Fence
from eventhub_checkpoints.operations.groups import Group, in_order
from eventhub_checkpoints.operations.history import keep_next_write
from eventhub_checkpoints.operations.positions import Position, read_positions
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

log = logging.getLogger(__name__)

HOLD = 45.0
"""Seconds for which partitions are held by default.

The client balances every 30 s, and adds up to a fifth; the rest is for closing a partition.
Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `_load_balancing`.
"""
LONGEST_ROUND = 5.0
"""Seconds between two renewals; any client's ownership expires later than that."""
SHOWN_MEMBERS = 3

Targets = Mapping[str, Position | None]
"""Position to store by partition id; None: no row."""


class GroupActiveError(CheckpointStoreError):
    """A group whose positions are to be changed has owners.

    Args:
        group: the group.
        way_out: what the operator can do about its consumers.
        fenced: partitions that another command holds; named if the group has no live member.
    """

    def __init__(self, group: Group, way_out: str, fenced: Sequence[str] = ()) -> None:
        members = [
            f"{member.owner_id!r} (partitions {', '.join(member.partition_ids)})"
            for member in group.members
        ]
        reason = f"{some(members, shown=SHOWN_MEMBERS)}; {way_out}"
        if not members:
            reason = (
                f"another ehcp holds partition {', '.join(fenced)}; wait until it has ended, or, "
                "if it was killed, for the time of --expires-after"
            )
        super().__init__(f"{group.scope} is active: {reason}")


STOP_OR_FORCE = "stop its consumers, or pass --force to take their partitions"


def refuse_active(group: Group, *, own: str = "", way_out: str = STOP_OR_FORCE) -> None:
    """Refuse a group with live members, or with partitions that another command holds.

    Args:
        group: the group.
        own: beginning of the owner ids of an interrupted change, which do not count.
        way_out: what the operator can do about its consumers.

    Raises:
        GroupActiveError: the group has such members or partitions.
    """
    fenced = in_order(
        id_ for id_, each in group.fences.items() if not own or not each.owner_id.startswith(own)
    )
    if group.members or fenced:
        raise GroupActiveError(group, way_out, fenced)


def write(
    store: CheckpointStore, scope: Scope, partition_id: str, position: Position | None
) -> None:
    """Store a position, or delete the row of a partition, whatever is stored.

    Raises:
        ConfigurationError: it has no sequence number, or the store cannot delete rows.
    """
    if position is None:
        that_deletes(store).delete_partition(*scope, partition_id)
        return
    check_writable(store, partition_id, position)
    # Stores of other packages pass unknown keywords to their driver.
    force = {"force": True} if isinstance(store, BaseCheckpointStore) else {}
    store.update_checkpoint(position.as_dict(scope, partition_id), **force)


def write_listed(
    store: CheckpointStore,
    scope: Scope,
    partition_id: str,
    position: Position | None,
    *,
    is_kept: bool = True,
) -> None:
    """Store a position over the one that was listed, unless another writer has moved it since.

    A list resets what a store without claims knows of a row, so that a write may go back; and it
    is conditional on the listed version. A forced write would also read all owners.

    Args:
        store: the store that has listed the checkpoints.
        scope: the group.
        partition_id: the partition.
        position: what to store; None: the row is deleted.
        is_kept: whether the write always has an entry in the history of the store.

    Raises:
        ConfigurationError: see `write`.
        StaleCheckpointError: a later checkpoint was stored since the list.
    """
    if position is None or not isinstance(store, BaseCheckpointStore):
        write(store, scope, partition_id, position)
        return
    check_writable(store, partition_id, position)
    if is_kept:
        keep_next_write(store, scope, partition_id)
    store.update_checkpoint(position.as_dict(scope, partition_id), on_stale="raise")


def that_deletes(store: CheckpointStore) -> Deletes:
    """Return a store that can delete rows.

    Raises:
        ConfigurationError: it cannot.
    """
    if not isinstance(store, Deletes):
        raise ConfigurationError(
            f"{type(store).__name__} cannot delete rows: it does not have the ability Deletes"
        )
    return store


def check_writable(store: CheckpointStore, partition_id: str, position: Position | None) -> None:
    """Check that a store can hold a position.

    Raises:
        ConfigurationError: the position has no sequence number, or it is None and the store
            cannot delete rows.
    """
    if position is None:
        that_deletes(store)
    elif position.sequence_number is None:
        raise ConfigurationError(
            f"the position of partition {partition_id} has no sequence number and cannot be stored"
        )


@dataclass(frozen=True, slots=True)
class Force:
    """How partitions are taken from running consumers.

    Attributes:
        owner: beginning of the owner ids that hold them.
        hold: seconds for which they are held.
        timeout: seconds for taking them.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
    """

    owner: str
    hold: float = HOLD
    timeout: float = 60.0
    expires_after: float = EXPIRES_AFTER


def in_order_of_change(targets: Targets) -> list[str]:
    """Return partitions in the order in which they are changed.

    Deleting a row ends the hold of its partition, so it comes last.
    """
    return sorted(in_order(targets), key=lambda id_: targets[id_] is None)


def change_positions(
    store: CheckpointStore,
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
        progress: called with each partition whose position was stored or deleted, and with `""`
            after each renewal of the claims.

    However it ends, the partitions that it holds are released; where the store does not answer,
    they expire.

    Returns:
        Number of late checkpoints of consumers that were overwritten.

    Raises:
        ConfigurationError: a position cannot be stored; nothing was changed.
        StaleCheckpointError: a consumer stored a checkpoint meanwhile; later partitions are
            unchanged.
    """
    for id_, position in targets.items():
        check_writable(store, id_, position)
    ids = in_order_of_change(targets)
    if force is None:
        keep(read_positions(store, scope))
        for id_ in ids:
            try:
                write_listed(store, scope, id_, targets[id_])
            except StaleCheckpointError as error:
                raise stale(error, scope) from None
            progress(id_)
        return 0
    stored = {id_: position for id_ in ids if (position := targets[id_]) is not None}
    pause = max(0.05, min(LONGEST_ROUND, force.hold / 10))
    fence = Fence(
        store, scope, force.owner, expires_after=force.expires_after, renew_after=pause / 2
    )
    try:
        fence.take(ids, force.timeout)
        keep(read_positions(store, scope))
        for id_ in stored:
            write(store, scope, id_, stored[id_])
            progress(id_)
        late = 0
        for overwritten in holding(store, fence, stored, force, pause):
            late += overwritten
            progress("")
        for id_ in ids[len(stored) :]:
            that_deletes(store).delete_partition(*scope, id_)
            fence.held.pop(id_)
            progress(id_)
    except BaseException:
        fence.release_stored()
        raise
    fence.release([*fence.held])
    return late


def stale(error: StaleCheckpointError, scope: Scope) -> StaleCheckpointError:
    """Return the error for a consumer that started, or has no ownership."""
    return StaleCheckpointError(
        error.partition_id,
        error.sequence_number,
        error.newest,
        f"a consumer of {scope} is running: stop it, and run the command again or "
        f"{as_typed('undo')}",
    )


def holding(
    store: CheckpointStore,
    fence: Fence,
    stored: Mapping[str, Position],
    force: Force,
    pause: float,
) -> Iterator[int]:
    """Hold partitions until their consumers have closed them.

    An outage of the store prolongs the hold: consumers cannot notice their loss in it, and nobody
    can claim a partition until the claims have expired.

    Args:
        store: the store.
        fence: holds the partitions.
        stored: positions that were stored in them.
        force: how long they are held.
        pause: seconds between two renewals.

    Yields:
        After each renewal: the number of late checkpoints that were overwritten.

    Raises:
        StoreUnavailableError: the store did not answer until the claims had expired, or consumers
            took partitions back again and again.
    """
    partition_ids = [*fence.held]
    began = answered = time.monotonic()
    until = began + force.hold
    is_away = False
    while (left := until - (turn := time.monotonic())) > 0:
        time.sleep(min(left, pause))
        try:
            fence.take(partition_ids, force.timeout)
            late = write_again(store, fence.scope, stored)
        except StoreUnavailableError as error:
            now = time.monotonic()
            if now - answered >= force.expires_after:
                raise
            if not is_away:
                log.warning(
                    "an outage of the store prolongs the hold of %s: %s", fence.scope, error
                )
            is_away = True
            began += now - turn
            until += now - turn
            continue
        is_away = False
        answered = time.monotonic()
        # A consumer that had a partition for a moment may read on from anywhere: hold again.
        until = max([until, *(taken + force.hold for taken in fence.taken_at.values())])
        if until > began + 5 * force.hold:
            raise StoreUnavailableError(
                f"consumers of {fence.scope} take partitions back all the time; stop them"
            )
        yield late


def write_again(store: CheckpointStore, scope: Scope, positions: Mapping[str, Position]) -> int:
    """Store positions again that consumers have overwritten; return the number of them."""
    present = read_positions(store, scope)
    late = [id_ for id_, position in positions.items() if present.get(id_) != position]
    for id_ in late:
        write(store, scope, id_, positions[id_])
    return len(late)
