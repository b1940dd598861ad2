"""Storing of positions from a file, another group or another store in groups.

A later position is kept, unless the operator forces it; see `transfer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.groups import groups
from eventhub_checkpoints.operations.positions import (
    GroupPositions,
    positions_of,
    read_positions,
)
from eventhub_checkpoints.operations.recorded_change import Command, Outcome, changing
from eventhub_checkpoints.operations.reset import plan_change
from eventhub_checkpoints.operations.transfer import Step, plan
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.records import Scope


@dataclass(frozen=True, slots=True)
class Transfer:
    """Positions to store in a group, and what was done.

    Attributes:
        plan: decisions, by partition in numeric order.
        outcome: None if nothing was stored.
    """

    scope: Scope
    plan: Sequence[Step]
    outcome: Outcome | None = None

    @property
    def is_needed(self) -> bool:
        """Return whether a position is to be stored."""
        return any(each.action.writes for each in self.plan)


def store_positions(
    command: Command, sources: Sequence[GroupPositions], partition_ids: Sequence[str] = ()
) -> list[Transfer]:
    """Store positions in groups where they are later than what those have, or plan it.

    All groups are planned before the first one is changed, so that a refusal changes nothing.

    Args:
        command: the command; with `force`, later positions are overwritten, too.
        sources: positions, under the names of the groups that receive them.
        partition_ids: default: all of the sources.

    Raises:
        GroupActiveError: a group has live members, whose partitions may not be taken.
        ConfigurationError: a group is reserved for this package's own rows, or a partition of
            `partition_ids` has no position.
    """
    planning = replace(command, executes=False)
    transfers = [store_group(planning, source, partition_ids) for source in sources]
    if not command.executes:
        return transfers
    return [store_group(command, source, partition_ids) for source in sources]


def store_group(command: Command, source: GroupPositions, partition_ids: Sequence[str]) -> Transfer:
    """Store positions in one group; see `store_positions`."""
    scope, positions = source.scope, source.positions
    if scope.is_reserved:
        raise ConfigurationError(f"{scope} has rows of this package; name a consumer group")
    if absent := [id_ for id_ in partition_ids if id_ not in positions]:
        raise ConfigurationError(
            f"partition {absent[0]} has no position to store; leave {absent[0]} out of --partitions"
        )
    with changing(command, scope) as change:
        change.refuse_active()
        chosen = {id_: positions[id_] for id_ in partition_ids or positions}
        steps = plan(chosen, change.present, force=command.force)
        targets = {each.partition_id: each.source for each in steps if each.action.writes}
        return Transfer(scope, steps, change.store(targets, [*chosen]))


def positions_in(store: CheckpointStore, scope: Scope | None) -> list[GroupPositions]:
    """Return the positions of a group of a store, or of all its groups if None.

    Raises:
        ConfigurationError: the store cannot list its groups.
    """
    if scope is None:
        return [GroupPositions(each.scope, positions_of(each)) for each in groups(store)]
    return [GroupPositions(scope, read_positions(store, scope))]


def positions_for(store: CheckpointStore, scope: Scope, receiver: Scope) -> list[GroupPositions]:
    """Return the positions of a group, for another one.

    Raises:
        ConfigurationError: it has none.
    """
    positions = read_positions(store, scope)
    if not positions:
        raise ConfigurationError(f"{scope} has no positions to copy; name a group with checkpoints")
    return [GroupPositions(receiver, positions)]


def positions_at_numbers(
    command: Command,
    hub: HubAddress,
    numbers: Mapping[str, int],
    partition_ids: Sequence[str] = (),
    *,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> list[GroupPositions]:
    """Return the positions before the events that lines of `kafka-consumer-groups` name.

    Args:
        command: the command that will store them.
        hub: the hub and the group; the hub is read.
        numbers: sequence number of the event read next, by partition id.
        partition_ids: default: all that have a number.
        through: see `plan_through`.
        timeout: seconds for each kind of query.

    Raises:
        GroupActiveError: the group has live members, whose partitions may not be taken.
        ConfigurationError, HubUnavailableError: see `plan_change`.
    """
    chosen = {
        id_: number for id_, number in numbers.items() if id_ in partition_ids or not partition_ids
    }
    with changing(replace(command, executes=False), hub.scope()) as change:
        resets = plan_change(change, chosen, hub, through=through, timeout=timeout)
    return [GroupPositions(hub.scope(), {each.partition_id: each.after for each in resets})]


def groups_of_file(
    groups_in_file: Sequence[GroupPositions], scope: Scope | None, name: str
) -> list[GroupPositions]:
    """Return the groups of a file that are imported.

    Args:
        groups_in_file: what the file has.
        scope: the group that receives positions; None: each under its own name.
        name: name of the file, for errors.

    Raises:
        ConfigurationError: the file does not have the group.
    """
    if scope is None:
        return [each for each in groups_in_file if not each.scope.is_reserved]
    for each in groups_in_file:
        if each.scope.folded == scope.folded:
            return [GroupPositions(scope, each.positions)]
    named = ", ".join(str(each.scope) for each in groups_in_file[:3]) or "none"
    raise ConfigurationError(
        f"{name} has no positions of {scope}, but of: {named}; {as_typed('copy')} stores the "
        "positions of one group in another"
    )
