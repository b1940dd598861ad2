# Derived from _async/store.py by tools/unasync.py; edit that file.
"""What a store in a storage account does whatever the service."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.base import FullCheckpointStore
from eventhub_checkpoints.stores.azure_storage import errors
from eventhub_checkpoints.stores.azure_storage._sync.parallel import ask_each
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

    def close(self) -> None:
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

    def close(self) -> None:
        """Close what this store opened: its connections, and a default credential."""
        super().close()
        self._requests.close()
        for opened in self._owned:
            opened.close()

    def drop_connections(self) -> None:
        self._requests.reset()

    def identity(self, scope: Scope) -> Scope:
        return spelled(scope, self.name_case)

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return errors.mapped(error, self._service.described(self._requests.address))

    def _ask_each(self, function: Callable[[Item], T], items: Sequence[Item]) -> list[T]:
        return ask_each(function, items, self.settings.max_concurrency)
