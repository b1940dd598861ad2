"""What a store in a storage account does whatever the service."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores.azure_storage import errors
from eventhub_checkpoints.stores.azure_storage._async.parallel import ask_each
from eventhub_checkpoints.stores.azure_storage.account import Service
from eventhub_checkpoints.stores.azure_storage.name_case import NameCase, spelled

T = TypeVar("T")
Item = TypeVar("Item")


class Requests(Protocol):
    """Requests to a container or a table, and their connections."""

    @property
    def address(self) -> str:
        """URL of the container or table, without a SAS."""

    def reset(self) -> None:
        """Create new connections."""

    async def close(self) -> None:
        """Close the connections that were created here."""


class StorageAccountStore(FullCheckpointStore):
    """Store in a container or a table of a storage account.

    Attributes:
        name_case: case in which the names of groups are stored.
    """

    makes_own_etags = True

    _service: ClassVar[Service]
    _requests: Requests
    name_case: NameCase
    _owned: tuple[Any, ...] = ()
    """Credentials that were opened for this store."""

    async def close(self) -> None:
        """Close what this store opened: its connections, and a default credential."""
        await super().close()
        await self._requests.close()
        for opened in self._owned:
            await opened.close()

    def drop_connections(self) -> None:
        self._requests.reset()

    def identity(self, scope: Scope) -> Scope:
        return spelled(scope, self.name_case)

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return errors.mapped(error, self._service.described(self._requests.address))

    async def _ask_each(
        self, function: Callable[[Item], Awaitable[T]], items: Sequence[Item]
    ) -> list[T]:
        return await ask_each(function, items, self.settings.max_concurrency)
