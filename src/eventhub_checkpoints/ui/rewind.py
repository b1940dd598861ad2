"""Rewind on the page: the form, its preview, and a change of exactly what was previewed."""

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import GroupActiveError, Targets, refuse_active
from eventhub_checkpoints.operations.groups import Group, group
from eventhub_checkpoints.operations.monitor import Watched
from eventhub_checkpoints.operations.positions import positions_of
from eventhub_checkpoints.operations.reset import (
    PartitionReset,
    changes_of,
    goal_of,
    plan_reset,
)
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.position import checked_partitions, is_partition_id

GOALS = {
    "earliest": "the first retained event",
    "latest": "the next new event",
    "sequence_number": "an event, by its sequence number",
    "shift": "a number of events forward, or back if negative",
    "datetime": "a time (such as 2026-11-23T10:00; UTC without an offset)",
    "duration": "a duration before now (such as 2h or P1DT2H)",
}
"""Goals of the form, and their descriptions."""
WITHOUT_VALUE = ("earliest", "latest")
STOP_CONSUMERS = (
    "stop its consumers, or take their partitions on the command line: ehcp reset --force"
)
CHANGED = "the stored positions have changed since the preview; preview it again"


@dataclass(frozen=True, slots=True)
class Preview:
    """Plan of a rewind.

    Attributes:
        refusal: why it cannot be carried out now; `""` if it can.
        seen: digest of the positions from which it starts.
    """

    plan: Sequence[PartitionReset]
    refusal: str
    seen: str

    @property
    def numbers(self) -> str:
        """Return the event that each partition reads next, as JSON, for the form."""
        return json.dumps({each.partition_id: each.new for each in self.plan})

    @property
    def changes(self) -> int:
        """Return the number of partitions whose stored position changes."""
        return sum(each.before != each.after for each in self.plan)


def preview(
    watched: Watched, reader: Address, kind: str, value: str, partition_ids: str
) -> Preview:
    """Plan a rewind; changes nothing.

    Args:
        watched: the group.
        reader: the hub, as read by the group that reads single events.
        kind: key of `GOALS`.
        value: of the goal.
        partition_ids: separated by commas; `""` for all.

    Raises:
        ConfigurationError: the form is invalid; see also `plan_reset`.
        StoreError: the store could not be read.
        HubUnavailableError: the hub did not answer in time.
    """
    goal = goal_of(kind, value.strip())
    names = partition_ids.replace(" ", "")
    ids = checked_partitions(names.split(",")) if names else []
    found = read(watched)
    plan = plan_reset(goal, found, reader, ids, missing=watched.missing, timeout=watched.timeout)
    try:
        refuse_active(found, way_out=STOP_CONSUMERS)
        refusal = ""
    except GroupActiveError as error:
        refusal = str(error)
    return Preview(plan, refusal, digest(found, {each.partition_id for each in plan}))


def previewed(watched: Watched, reader: Address, numbers: str, seen: str) -> tuple[Group, Targets]:
    """Return the group, and what to store for a preview that was accepted.

    Raises:
        GroupActiveError: it has live members.
        ConfigurationError: the positions have changed since; see also `plan_reset`.
        StoreError: the store could not be read.
        HubUnavailableError: the hub did not answer in time.
    """
    goal = numbers_of(numbers)
    found = read(watched)
    refuse_active(found, way_out=STOP_CONSUMERS)
    if digest(found, goal.keys()) != seen:
        raise ConfigurationError(CHANGED)
    plan = plan_reset(goal, found, reader, missing=watched.missing, timeout=watched.timeout)
    return found, changes_of(plan, found)


def numbers_of(text: str) -> dict[str, int]:
    """Return the events of `Preview.numbers`.

    Raises:
        ConfigurationError: it is not what a preview contains.
    """
    try:
        numbers = parse_json(text)
    except ValueError:
        numbers = None
    if (
        not isinstance(numbers, dict)
        or not numbers
        or not all(is_partition_id(id_) and type(each) is int for id_, each in numbers.items())
    ):
        raise ConfigurationError("the form is not that of a preview; preview it again")
    return numbers


def read(watched: Watched) -> Group:
    """Read the rows of a group."""
    return group(watched.store, watched.scope, expires_after=watched.expires_after)


def digest(found: Group, partition_ids: Collection[str]) -> str:
    """Return a digest of the stored positions of some partitions."""
    stored = {
        id_: [position.sequence_number, position.offset]
        for id_, position in positions_of(found).items()
        if id_ in partition_ids
    }
    return hashlib.sha256(json.dumps(stored).encode()).hexdigest()
