"""Base of the stores that wrap another store."""

from collections.abc import Iterable, Mapping
from typing import Any

from azure.eventhub.aio import CheckpointStore


class WrapperStore(CheckpointStore):
    """Store that passes every call on to the store that it wraps.

    Attributes:
        store: the wrapped store.
    """

    def __init__(self, store: CheckpointStore) -> None:
        self.store = store

    @property
    def innermost(self) -> CheckpointStore:
        """Return the store below all wrappers of this package."""
        below = self.store
        return below.innermost if isinstance(below, WrapperStore) else below

    @property
    def forward_only(self) -> bool:
        """Return whether the store below refuses a checkpoint below that of another writer."""
        return bool(getattr(self.store, "forward_only", False))

    @property
    def for_one_process(self) -> bool:
        """Return whether the rows of the store below are invisible to other processes."""
        return getattr(self.store, "for_one_process", False) is True

    async def list_ownership(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all ownerships of a consumer group."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return await self.store.list_ownership(*names, **kwargs)

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        """Claim, renew or release partitions; return those that were won."""
        return await self.store.claim_ownership(ownership_list, **kwargs)

    async def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all checkpoints of a consumer group."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return await self.store.list_checkpoints(*names, **kwargs)

    async def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        """Store how far a partition was processed."""
        await self.store.update_checkpoint(dict(checkpoint), **kwargs)
