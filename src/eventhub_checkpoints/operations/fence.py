"""Fence: ownerships that an operation takes, so that no consumer has the partitions meanwhile.

Every partition gets an owner id of its own. A consumer that sees one owner with many partitions
would take its share from it; of owners with one partition each, none has more than its share.

Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`, `_balance_ownership`: it
takes over a partition only while it has fewer than the number of partitions divided by the number
of owners, itself included, which is 0 here.
"""

import time
import uuid
from collections.abc import Collection, Iterable
from typing import Any

from eventhub_checkpoints.operations.groups import (
    EXPIRES_AFTER,
    Ownership,
    Row,
    in_order,
    ownership_of,
)
from eventhub_checkpoints.records import RELEASED, Scope

PREFIX = "ehcp-fence-"
RENEWALS = 4
"""Number of renewals within the time after which an ownership expires."""
LONGEST_RENEWAL = 10.0
"""Seconds between two renewals at most, for consumers whose ownerships expire sooner."""


def is_fence(owner_id: str) -> bool:
    """Return whether an owner id is that of a fence, and not of a consumer."""
    return owner_id.startswith(PREFIX)


class Fence:
    """Ownerships of partitions of a group, held by an operation.

    If the operation ends without `release`, they expire like those of any owner that is gone.

    Args:
        store: any synchronous checkpoint store.
        scope: the group.
        expires_after: seconds after which the group's consumers take an ownership that was not
            renewed.

    Attributes:
        held: partitions that it owned when it was last renewed.
        taken_at: when it took a partition from a live owner, a consumer or another fence, in
            seconds of the monotonic clock, by partition id.
    """

    def __init__(self, store: Any, scope: Scope, expires_after: float = EXPIRES_AFTER) -> None:
        self._store = store
        self._scope = scope
        self._expires_after = expires_after
        self._renew_after = min(expires_after / RENEWALS, LONGEST_RENEWAL)
        self._token = uuid.uuid4().hex[:8]
        self.held: set[str] = set()
        self.taken_at: dict[str, float] = {}

    def owner_id(self, partition_id: str) -> str:
        """Return the owner id of a partition."""
        return f"{PREFIX}{self._token}-{partition_id}"

    def read(self) -> dict[str, tuple[Row, Ownership]]:
        """Return the stored ownerships by partition id, as dicts of the store and as read here.

        Raises:
            StoreError: the store could not be read.
        """
        rows = self._store.list_ownership(*self._scope)
        now = time.time()
        return {
            row["partition_id"]: (row, ownership_of(row, now, self._expires_after)) for row in rows
        }

    def hold(self, partition_ids: Collection[str], *, spare_live: bool = False) -> set[str]:
        """Take the partitions that it does not own, and renew the others where that is due.

        A partition that it owns and that is not named is neither renewed nor released.

        Args:
            partition_ids: the partitions to own.
            spare_live: leave a partition to its owner if that is alive and not another fence.

        Returns:
            The partitions that it owns now, of all that are named.

        Raises:
            StoreError: the store could not be read, or refused access.
        """
        stored = self.read()
        fresh: set[str] = set()
        claims: list[dict[str, Any]] = []
        for id_ in in_order(partition_ids):
            row, ownership = stored.get(id_, ({}, None))
            own_id = self.owner_id(id_)
            if ownership and ownership.owner_id == own_id:
                if ownership.age < self._renew_after:
                    fresh.add(id_)
                    continue
            elif spare_live and ownership and ownership.is_live and not is_fence(row["owner_id"]):
                continue
            claims.append({**self._claim(id_, own_id), "etag": row.get("etag")})
        won = {row["partition_id"] for row in self._store.claim_ownership(claims)}
        for id_ in won & stored.keys():
            ownership = stored[id_][1]
            if ownership.is_live and ownership.owner_id != self.owner_id(id_):
                self.taken_at[id_] = time.monotonic()
        self.held = (self.held - set(partition_ids)) | fresh | won
        return fresh | won

    def is_settled(self, partition_id: str, seconds: float, changed: float = 0.0) -> bool:
        """Return whether the former owner of a partition has had time to notice the loss.

        A consumer that finds a partition released before it noticed claims it again and goes on
        where it was, without reading its checkpoint.

        Args:
            partition_id: the partition.
            seconds: time that an owner needs.
            changed: when something else began, on the monotonic clock, from which that time counts.

        Returns:
            False if it does not own the partition; True if that had no live owner.
        """
        taken_at = self.taken_at.get(partition_id)
        if partition_id not in self.held or taken_at is None:
            return partition_id in self.held
        return time.monotonic() - max(taken_at, changed) >= seconds

    def release(self, partition_ids: Iterable[str]) -> None:
        """Release those of the partitions that it or another fence owns, for a consumer to claim.

        Raises:
            StoreError: the store could not be read.
        """
        stored = self.read()
        self._store.claim_ownership(
            [
                {**self._claim(id_, RELEASED), "etag": stored[id_][0]["etag"]}
                for id_ in partition_ids
                if id_ in stored and is_fence(stored[id_][1].owner_id)
            ]
        )
        self.held -= set(partition_ids)

    def _claim(self, partition_id: str, owner_id: str) -> dict[str, Any]:
        names = self._scope.as_dict()
        return {**names, "partition_id": partition_id, "owner_id": owner_id}
