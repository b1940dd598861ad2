"""Fence: ownerships that an operation takes, so that no consumer has the partitions meanwhile.

Every partition gets an owner id of its own. A consumer that sees one owner with many partitions
would take its share from it; of owners with one partition each, none has more than its share.

Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py`, `_balance_ownership`: it
takes over a partition only while it has fewer than the number of partitions divided by the number
of owners, itself included, which is 0 here.
"""

import logging
import random
import time
import uuid
from collections.abc import Collection, Iterable
from itertools import count
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints.errors import CheckpointStoreError, StoreUnavailableError
from eventhub_checkpoints.operations.groups import (
    FENCE,
    Owner,
    Row,
    in_order,
    ownership_of,
    release,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

log = logging.getLogger(__name__)

RENEWALS = 4
"""Number of renewals within the time after which an ownership expires."""
LONGEST_RENEWAL = 10.0
"""Seconds between two renewals at most, for consumers whose ownerships expire sooner."""


def new_owner() -> str:
    """Return the beginning of the owner ids of a new fence."""
    return f"{FENCE}{uuid.uuid4().hex[:12]}"


class Fence:
    """Ownerships of partitions of a group, held by an operation.

    If the operation ends without `release`, they expire like those of any owner that is gone.

    Args:
        store: any synchronous checkpoint store.
        scope: the group.
        owner: beginning of the owner ids; default: that of a new fence.
        expires_after: seconds after which the group's consumers take an ownership that was not
            renewed.
        renew_after: age in seconds at which an ownership is renewed; default: `expires_after`
            divided by `RENEWALS`, but at most `LONGEST_RENEWAL`.

    Attributes:
        scope: the group.
        held: rows of the partitions that it owned when they were last claimed, by partition id.
        taken_at: when it took a partition from a live owner, a consumer or another fence, in
            seconds of the monotonic clock, by partition id.
    """

    def __init__(
        self,
        store: CheckpointStore,
        scope: Scope,
        owner: str = "",
        *,
        expires_after: float = EXPIRES_AFTER,
        renew_after: float | None = None,
    ) -> None:
        self._store = store
        self.scope = scope
        self._owner = owner or new_owner()
        self._expires_after = expires_after
        if renew_after is None:
            renew_after = min(expires_after / RENEWALS, LONGEST_RENEWAL)
        self._renew_after = renew_after
        self.held: dict[str, Row] = {}
        self.taken_at: dict[str, float] = {}

    def owner_id(self, partition_id: str) -> str:
        """Return the owner id of a partition."""
        return f"{self._owner}-{partition_id}"

    def read(self) -> dict[str, Owner]:
        """Return the stored ownerships by partition id."""
        rows = self._store.list_ownership(*self.scope)
        now = time.time()
        return {row["partition_id"]: ownership_of(row, now, self._expires_after) for row in rows}

    def hold(self, partition_ids: Collection[str], *, spare_live: bool = False) -> None:
        """Take the partitions that it does not own, and renew the others where that is due.

        A partition that somebody else has claimed first is not in `held` afterwards. A partition
        that it owns and that is not in `partition_ids` is neither renewed nor released.

        Args:
            partition_ids: the partitions to own.
            spare_live: leave a partition to its owner if that is alive and not another fence.

        Raises:
            StoreError: the store could not be read, or refused access.
        """
        stored = self.read()
        held = {id_: row for id_, row in self.held.items() if id_ not in partition_ids}
        claims: list[dict[str, Any]] = []
        for id_ in in_order(partition_ids):
            owner, own_id = stored.get(id_), self.owner_id(id_)
            if owner and owner.owner_id == own_id:
                if owner.age < self._renew_after:
                    held[id_] = owner.row
                    continue
            elif spare_live and owner and owner.consumer:
                continue
            names = {**self.scope.as_dict(), "partition_id": id_}
            claims.append({**names, **(owner.row if owner else {}), "owner_id": own_id})
        won: dict[str, Row] = {
            row["partition_id"]: row for row in self._store.claim_ownership(claims)
        }
        for id_ in won.keys() & stored.keys():
            if stored[id_].is_live and stored[id_].owner_id != self.owner_id(id_):
                self.taken_at[id_] = time.monotonic()
        self.held = held | won

    def take(self, partition_ids: Collection[str], timeout: float) -> None:
        """Hold all of the partitions, over whoever owns them.

        Raises:
            StoreUnavailableError: an owner renewed its claims faster, for `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        for attempt in count():
            self.hold(partition_ids)
            missing = in_order(set(partition_ids) - self.held.keys())
            if not missing:
                return
            wait = pause(attempt, deadline - time.monotonic(), random.random())
            if wait is None:
                owner = self.read().get(missing[0])
                raise StoreUnavailableError(
                    f"partition {missing[0]} of {self.scope} could not be taken from "
                    f"{owner and owner.owner_id!r} within {timeout:g} s"
                )
            time.sleep(wait)

    def is_settled(self, partition_id: str, seconds: float, changed: float = 0.0) -> bool:
        """Return whether the former owner of a partition has had time to notice the loss.

        A consumer that finds a partition released before it noticed claims it again and goes on
        where it was, without reading its checkpoint.

        Args:
            partition_id: the partition.
            seconds: time that an owner needs.
            changed: on the monotonic clock; if it is later than the take, the time counts from it.

        Returns:
            False if it does not own the partition; True if the partition had no live owner.
        """
        taken_at = self.taken_at.get(partition_id)
        if partition_id not in self.held or taken_at is None:
            return partition_id in self.held
        return time.monotonic() - max(taken_at, changed) >= seconds

    def release(self, partition_ids: Iterable[str]) -> None:
        """Release those of the partitions that it holds, for a consumer to claim.

        A partition that was taken from it meanwhile keeps its owner, as its etag has changed.
        """
        release(
            self._store,
            [self.held.pop(id_) for id_ in in_order(partition_ids) if id_ in self.held],
        )

    def release_stored(self) -> None:
        """Release all that it owns in the store, at the end of an operation that was interrupted.

        That includes claims whose answer was lost. Where the store does not answer, they expire.
        """
        try:
            own = [
                owner.row
                for id_, owner in self.read().items()
                if owner.owner_id == self.owner_id(id_)
            ]
            release(self._store, own)
        except CheckpointStoreError as error:
            log.warning(
                "ownerships of %s could not be released, and stay until they expire: %s",
                self.scope,
                error,
            )
        self.held.clear()
