"""Member of a consumer group: claims partitions in a store, and releases them."""

import random
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints.consume import balancer
from eventhub_checkpoints.consume.settings import ConsumeSettings
from eventhub_checkpoints.records import RELEASED, Scope

JITTER = 0.2
"""Share of `load_balancing_interval` by which a round is late at most, so that members do not stay
in step.

Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `_load_balancing`.
"""


class Round(NamedTuple):
    """Result of a round of load balancing.

    Attributes:
        lost: partitions to close.
        won: partitions to open, with the checkpoint of each, if it has one.
    """

    lost: list[str]
    won: dict[str, Mapping[str, Any] | None]


class GroupMember:
    """Member of a consumer group, as the store and the other members see it.

    It calls the store as the official client's load balancer does, `HandoverStore` included: the
    first iteration over what `claim_ownership` has returned tells which partitions to read, and a
    later one which row to release.

    Args:
        store: of ownerships and checkpoints.
        scope: the group.
        settings: of load balancing.
        list_partitions: returns the ids of the hub's partitions; called once.

    Attributes:
        owner_id: names the member in the store.
        claimed: partitions that the last round has claimed, and that were not released since.
    """

    def __init__(
        self,
        store: CheckpointStore,
        scope: Scope,
        settings: ConsumeSettings,
        list_partitions: Callable[[], Awaitable[list[str]]],
    ) -> None:
        self.owner_id = str(uuid.uuid4())
        self._store, self._scope, self._settings = store, scope, settings
        self._list_partitions = list_partitions
        self._partition_ids: list[str] = []
        self._held: Iterable[dict[str, Any]] = []
        self.claimed: set[str] = set()

    @property
    def pause(self) -> float:
        """Seconds until the next round."""
        return self._settings.load_balancing_interval * (1 + JITTER * random.random())

    async def balance(self, opened: Collection[str]) -> Round:
        """Renew and claim partitions for one round.

        Args:
            opened: the partitions that the member has open, or is closing.

        Raises:
            Exception: the hub or the store has failed; what was held before still counts as held.
        """
        held = await self._claim()
        won = [each for each in held if each not in opened]
        rows = await self._store.list_checkpoints(*self._scope) if won else []
        checkpoints = {row["partition_id"]: row for row in rows}
        lost = [each for each in opened if each not in held]
        return Round(lost, {each: checkpoints.get(each) for each in won})

    async def _claim(self) -> list[str]:
        if not self._partition_ids:
            self._partition_ids = await self._list_partitions()
        rows = await self._store.list_ownership(*self._scope)
        proposals = balancer.proposals(
            rows,
            self._partition_ids,
            self._scope,
            self.owner_id,
            time.time(),
            expires_after=self._settings.expires_after,
            strategy=self._settings.load_balancing_strategy,
        )
        self._held = await self._store.claim_ownership(proposals) if proposals else []
        held = [row["partition_id"] for row in self._held]
        self.claimed = {*held}
        return held

    async def release(self, partition_id: str) -> None:
        """Release a partition, unless it was lost or its ownership has expired."""
        self.claimed.discard(partition_id)
        oldest = time.time() - self._settings.expires_after
        for row in self._held:
            is_mine = row["partition_id"] == partition_id and row["owner_id"] == self.owner_id
            if is_mine and row["last_modified_time"] > oldest:
                await self._store.claim_ownership([{**row, "owner_id": RELEASED}])
                return
