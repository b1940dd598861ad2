"""A process whose rounds of load balancing begin late, as on a machine without time for it."""

import asyncio
import random
from collections.abc import Iterable, Mapping
from typing import Any

from azure.eventhub.aio import CheckpointStore


class LateStore(CheckpointStore):
    """Holds up each round of a client by a random time, before it lists ownerships.

    Args:
        store: that the client would have.
        longest: seconds by which a round is late at most.
    """

    def __init__(self, store: CheckpointStore, longest: float) -> None:
        self._store = store
        self._longest = longest

    async def list_ownership(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        await asyncio.sleep(random.uniform(0, self._longest))
        return await self._store.list_ownership(*names, **kwargs)

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        return await self._store.claim_ownership(ownership_list, **kwargs)

    async def list_checkpoints(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        return await self._store.list_checkpoints(*names, **kwargs)

    async def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        await self._store.update_checkpoint(dict(checkpoint), **kwargs)
