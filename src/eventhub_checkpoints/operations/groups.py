"""Consumer groups of a store, and the members that own their partitions."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.abilities import ListsScopes
from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import DEFAULT_CONSUMER_GROUP
from eventhub_checkpoints.receive.position import is_partition_id
from eventhub_checkpoints.records import MOST_INT64, RELEASED, Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

FENCE = "ehcp-"
"""Beginning of the owner ids of fences: ownerships that a command takes, and no consumer."""

CLOSED_NUMBER = MOST_INT64
"""Sequence number of a closed checkpoint, whose position another store has. No hub reaches it, so a
consumer that starts there receives no event, and a store of this package refuses every checkpoint
below it.
"""

Row = Mapping[str, Any]
"""Row of a store, as azure-eventhub types it: `CheckpointStore.list_ownership`."""


class GroupState(StrEnum):
    """State of a consumer group, as its rows show it.

    Attributes:
        ACTIVE: every partition that has a row is owned by a live member.
        PARTIAL: some are, and some are not.
        IDLE: no member is alive.
        MOVED: every checkpoint is closed: another store has the positions.
    """

    ACTIVE = "active"
    PARTIAL = "partial"
    IDLE = "idle"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of a partition.

    Attributes:
        owner_id: `""` if the partition was released.
        age: seconds since the last renewal, on the store's clock.
        is_live: whether it has an owner whose last renewal is not older than the expiration time;
            the owner may be a consumer or a fence.
        row: the ownership as `list_ownership` returned it, for the next claim.
    """

    owner_id: str
    age: float
    is_live: bool
    row: Row = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_dead(self) -> bool:
        """Return whether it has an owner that no longer renews it."""
        return bool(self.owner_id) and not self.is_live

    @property
    def is_fence(self) -> bool:
        """Return whether it is held by a command that changes positions; see `fence`."""
        return self.owner_id.startswith(FENCE)

    @property
    def consumer(self) -> str:
        """Return the owner id of the live consumer that owns the partition; `""` if none does."""
        return self.owner_id if self.is_live and not self.is_fence else ""


@dataclass(frozen=True, slots=True)
class Member:
    """Live member of a group.

    Attributes:
        partition_ids: partitions that it owns, in numeric order.
        age: seconds since its most recent renewal.
    """

    owner_id: str
    partition_ids: Sequence[str]
    age: float


@dataclass(frozen=True, slots=True)
class Group:
    """Consumer group as its rows show it.

    Attributes:
        checkpoints: each stored checkpoint by partition id, as `list_checkpoints` returns it.
        ownerships: each stored ownership by partition id.
    """

    scope: Scope
    checkpoints: Mapping[str, Row]
    ownerships: Mapping[str, Owner]

    @classmethod
    def of(
        cls,
        scope: Scope,
        checkpoints: Iterable[Row],
        ownerships: Iterable[Row],
        expires_after: float,
    ) -> Self:
        """Return the group of rows that were listed just now."""
        now = time.time()
        return cls(
            scope,
            {row["partition_id"]: row for row in checkpoints},
            {row["partition_id"]: ownership_of(row, now, expires_after) for row in ownerships},
        )

    @property
    def partition_ids(self) -> list[str]:
        """Return the partitions that have a row, in numeric order."""
        return in_order({*self.checkpoints, *self.ownerships})

    @property
    def live_owners(self) -> dict[str, str]:
        """Return the owner ids of live members by partition id."""
        return {id_: owner for id_, each in self.ownerships.items() if (owner := each.consumer)}

    @property
    def fences(self) -> dict[str, Owner]:
        """Return the partitions that a command holds, or held until it was killed."""
        return {
            id_: each for id_, each in self.ownerships.items() if each.is_live and each.is_fence
        }

    @property
    def is_owned(self) -> bool:
        """Return whether a consumer or a fence has a partition; behind a fence, consumers wait."""
        return any(each.is_live for each in self.ownerships.values())

    def has_live_owner(self, partition_ids: Iterable[str]) -> bool:
        """Return whether a live member owns one of these partitions."""
        return not self.live_owners.keys().isdisjoint(partition_ids)

    @property
    def members(self) -> list[Member]:
        """Return the live members, those with the most partitions first."""
        owned: dict[str, list[str]] = {}
        for partition_id, owner_id in self.live_owners.items():
            owned.setdefault(owner_id, []).append(partition_id)
        members = [
            Member(owner_id, in_order(ids), min(self.ownerships[id_].age for id_ in ids))
            for owner_id, ids in owned.items()
        ]
        return sorted(members, key=lambda member: (-len(member.partition_ids), member.owner_id))

    @property
    def state(self) -> GroupState:
        """Return whether its partitions have live owners, or are in another store."""
        numbers = {row.get("sequence_number") for row in self.checkpoints.values()}
        if numbers == {CLOSED_NUMBER}:
            return GroupState.MOVED
        live = self.live_owners
        if not live:
            return GroupState.IDLE
        is_partial = len(live) < len(self.partition_ids)
        return GroupState.PARTIAL if is_partial else GroupState.ACTIVE


def group(store: CheckpointStore, scope: Scope, *, expires_after: float = EXPIRES_AFTER) -> Group:
    """Read the rows of a consumer group.

    Args:
        store: any synchronous checkpoint store.
        scope: the group.
        expires_after: seconds after which an ownership that was not renewed counts as expired: the
            `partition_ownership_expiration_interval` of the group's consumers.
    """
    ownerships = store.list_ownership(*scope)
    return Group.of(scope, list_checkpoints(store, scope), ownerships, expires_after)


def list_checkpoints(store: CheckpointStore, scope: Scope) -> list[Row]:
    """Return the checkpoints of a group, with the times of their writes where a store knows them.

    The official Blob store passes unknown keywords on to its HTTP session, which refuses them.
    """
    if isinstance(store, BaseCheckpointStore):
        return list(store.list_checkpoints(*scope, with_times=True))
    return list(store.list_checkpoints(*scope))


def is_live(owner_id: str, age: float, expires_after: float) -> bool:
    """Return whether an ownership of an age in seconds has an owner, and has not expired."""
    return bool(owner_id) and age <= expires_after


def ownership_of(row: Row, now: float, expires_after: float) -> Owner:
    """Return the owner in a row of `list_ownership`."""
    owner_id, age = row["owner_id"] or "", max(0.0, now - row["last_modified_time"])
    return Owner(owner_id, age, is_live(owner_id, age, expires_after), row)


def release(store: CheckpointStore, rows: Iterable[Row]) -> list[Row]:
    """Release ownerships, for a consumer to claim; return those that were released.

    One that was claimed since its row was read keeps its owner, as its etag has changed.

    Raises:
        StoreError: the store refused access, or is not ready.
    """
    claims = [{**row, "owner_id": RELEASED} for row in rows]
    return [*store.claim_ownership(claims)] if claims else []


def groups(store: CheckpointStore, *, expires_after: float = EXPIRES_AFTER) -> list[Group]:
    """Read all consumer groups of a store, sorted by name.

    Raises:
        ConfigurationError: the store cannot list its groups.
    """
    if not isinstance(store, ListsScopes):
        raise ConfigurationError(
            f"{type(store).__name__} cannot list its groups: it does not have the ability "
            "ListsScopes; name the group"
        )
    return [group(store, scope, expires_after=expires_after) for scope in listed_scopes(store)]


def listed_scopes(store: ListsScopes) -> list[Scope]:
    """Return the groups that a store has, with the built-in one as `$Default`.

    Stores keep names in lower case, and the group that is meant where none is named would have two
    spellings in one output. In a Blob store with names as they were typed, `$default` is another
    group.
    """
    scopes = store.list_scopes()
    if getattr(store, "name_case", "lower") == "as-typed":
        return scopes
    default = DEFAULT_CONSUMER_GROUP.lower()
    return [
        scope._replace(consumer_group=DEFAULT_CONSUMER_GROUP)
        if scope.consumer_group == default
        else scope
        for scope in scopes
    ]


def similar_groups(store: CheckpointStore, scope: Scope) -> list[Scope]:
    """Return the groups of a store that the user of an unknown one may have meant.

    They are those of the same hub, and those of the same name of a hub of that name.
    """
    if not isinstance(store, ListsScopes):
        return []
    namespace, hub, name = scope.folded
    return [
        each
        for each in listed_scopes(store)
        if each.folded[1:] == (hub, name) or each.folded[:2] == (namespace, hub)
    ]


def in_order(partition_ids: Iterable[str]) -> list[str]:
    """Return partition ids in numeric order; ids that are not numbers come last."""
    return sorted(
        partition_ids, key=lambda id_: (0, int(id_), id_) if is_partition_id(id_) else (1, 0, id_)
    )
