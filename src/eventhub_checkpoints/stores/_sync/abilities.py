# Derived from _async/abilities.py by tools/unasync.py; edit that file.
"""Optional capabilities of a store beyond the SDK's four methods.

A class declares a capability by deriving from it and implementing its hook;
`isinstance(store, ListsScopes)` returns whether a store has it. It is never guessed.
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
    """Type of `ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY = AnyNumber()
"""No particular sequence number is expected: any checkpoint that does not go back is written."""


class ListsScopes(HookRunner):
    """A store that can list its consumer groups."""

    @abstractmethod
    def read_scopes(self) -> Sequence[Scope]:
        """Return all scopes that have an ownership or a checkpoint row, in any order."""

    def list_scopes(self) -> list[Scope]:
        """Return every consumer group with an ownership or a checkpoint, sorted by name.

        The names are in lower case, as they are stored (on Blob with `name_case="as-typed"`: as
        they were passed). The rows that `verify` writes are left out.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        found = uninterrupted(self.settings.operation_timeout, self._request, self.read_scopes)
        return sorted((scope for scope in found if scope != PROBE), key=str)


class Deletes(HookRunner):
    """A store that can delete a consumer group, or one partition of it."""

    @abstractmethod
    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        """Delete the rows of both kinds, of one partition or of all; return their number."""

    def delete_scope(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> int:
        """Remove all ownerships and checkpoints of a consumer group.

        A `Scope` holds the three names: `delete_scope(*scope)`. A running client keeps its claims
        until they are renewed, and then claims anew: stop the group first.

        Returns:
            Number of rows removed; too low if an answer was lost and the request was repeated.

        Raises:
            InvalidRecordError: a name is empty or holds `/` or a control character.
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
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
        """Remove the ownership and checkpoint of one partition; otherwise like `delete_scope`."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        return self._delete(Scope.checked(*names), checked_name("partition_id", partition_id))

    def _delete(self, scope: Scope, partition_id: str | None) -> int:
        seconds = self.settings.operation_timeout
        removed = uninterrupted(seconds, self._request, self.delete_rows, scope, partition_id)
        with self._state_lock:
            self._states.forget(scope, partition_id)
        return removed


class FullCheckpointStore(ListsScopes, Deletes, BaseCheckpointStore):
    """A checkpoint store that also lists and deletes groups, as every store of this package does.

    This is the return type of `open_store`. A store of another package need not derive from
    it: if a URL may name one, check `isinstance(store, Deletes)` before using that capability.
    """


class WritesInTransaction(ABC):
    """A store that can write checkpoints in a transaction of the caller.

    Results and positions that are committed together make processing exactly-once: after a
    crash, both are stored or neither.
    """

    @abstractmethod
    def read_in(
        self, connection: Any, scope: Scope, partition_ids: Sequence[str]
    ) -> dict[str, Checkpoint]:
        """Return the checkpoints of these partitions, locked until the transaction ends."""

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
            connection: a connection of the backend's driver, in a transaction.
            checkpoint: the checkpoint to store; its `version` is set here.
            expected_sequence_number: sequence number that must be stored now; None if no checkpoint
                may be stored. By default, any that is not higher than the new one.

        Raises:
            StaleCheckpointError: something else is stored; roll the transaction back.
        """
