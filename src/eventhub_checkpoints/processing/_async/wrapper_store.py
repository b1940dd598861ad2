"""Base of the stores that wrap another store."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints.errors import ConfigurationError


class WrapperStore(CheckpointStore):
    """Store that passes every call on to the store that it wraps.

    Attributes:
        store: the wrapped store.
        is_outermost: whether it cannot be wrapped itself.

    Raises:
        ConfigurationError: `store` has to be the outermost.
    """

    is_outermost: ClassVar[bool] = False

    def __init__(self, store: CheckpointStore) -> None:
        if isinstance(store, WrapperStore) and store.is_outermost:
            outer, inner = type(store).__name__, type(self).__name__
            raise ConfigurationError(
                f"a {outer} has to be the outermost store: {outer}({inner}(store)), not "
                f"{inner}({outer}(store))"
            )
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
