# Derived from _async/abilities.py by tools/unasync.py; edit that file.
"""What a store can do beyond the SDK's four methods: declared by a class, never guessed.

`isinstance(store, ListsScopes)` tells whether a store has the ability. A backend adds the class
to its bases and fills in the hook.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from eventhub_checkpoints._shared._sync.compat import uninterrupted
from eventhub_checkpoints._shared.fields import checked_name
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores._sync.base import PROBE, BaseCheckpointStore
from eventhub_checkpoints.stores._sync.hooks import HookRunner

__all__ = [
    "ANY",
    "AnyNumber",
    "Deletes",
    "FullCheckpointStore",
    "ListsScopes",
    "WritesInTransaction",
]


class AnyNumber:
    """The type of `ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY = AnyNumber()
"""No sequence number is expected: a checkpoint may be written if it does not go back."""


class ListsScopes(HookRunner):
    """A store that knows which consumer groups it holds."""

    @abstractmethod
    def read_scopes(self) -> Sequence[Scope]:
        """All scopes that have a row of either kind, in any order."""

    def list_scopes(self) -> list[Scope]:
        """Every consumer group with an ownership or a checkpoint, sorted by its names.

        The names are in lower case, as they are stored (on Blob with `name_case="as-typed"`: as
        they were given). What `verify` has written is left out.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        found = uninterrupted(self.settings.operation_timeout, self._asked, self.read_scopes)
        return sorted((scope for scope in found if scope != PROBE), key=str)


class Deletes(HookRunner):
    """A store that can forget a consumer group, or one partition of it."""

    @abstractmethod
    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        """Remove the rows of both kinds, of one partition or of all; how many there were."""

    def delete_scope(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> int:
        """Remove all ownerships and checkpoints of a consumer group.

        A `Scope` stands for the three names: `delete_scope(*scope)`. A client that runs keeps its
        claims until they are renewed, and then claims anew: stop the group first.

        Returns:
            How many rows were removed; fewer where an answer was lost and it was asked again.

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return self._delete(Scope.checked(*names), None)

    def delete_partition(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        partition_id: str,
    ) -> int:
        """Remove the ownership and the checkpoint of one partition; else as `delete_scope`."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return self._delete(Scope.checked(*names), checked_name("partition_id", partition_id))

    def _delete(self, scope: Scope, partition_id: str | None) -> int:
        seconds = self.settings.operation_timeout
        removed = uninterrupted(seconds, self._asked, self.delete_rows, scope, partition_id)
        with self._guard:
            self._ledger.forget(self.identity(scope), partition_id)
        return removed


class FullCheckpointStore(ListsScopes, Deletes, BaseCheckpointStore):
    """A checkpoint store that also lists and deletes groups, as every store of this package does.

    It is the type of what `open_store` returns. A store of another package need not derive from
    it: where a URL may name one, ask `isinstance(store, Deletes)` before using that ability.
    """


class WritesInTransaction(ABC):
    """A store whose checkpoints can be part of a transaction of the caller's own.

    Results and positions that are committed together make processing exactly once: after a
    crash both are there, or neither.
    """

    @abstractmethod
    def read_in(
        self, connection: Any, scope: Scope, partition_ids: Sequence[str]
    ) -> dict[str, Checkpoint]:
        """The checkpoints of these partitions, locked until the transaction ends."""

    @abstractmethod
    def write_in(
        self,
        connection: Any,
        checkpoint: Checkpoint,
        *,
        expected_sequence_number: int | AnyNumber | None = ANY,
    ) -> None:
        """Write a checkpoint; it is stored when the transaction is committed.

        Args:
            connection: one of the backend's driver, in a transaction.
            checkpoint: what to store; its `version` is chosen here.
            expected_sequence_number: what must be stored now; None: no checkpoint at all. By
                default anything that is not higher than the new one.

        Raises:
            StaleCheckpointError: something else is stored; roll the transaction back.
        """
