# Derived from _async/abilities.py by tools/unasync.py; edit that file.
"""What a Blob store can do beyond the SDK's four methods."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from eventhub_checkpoints._shared._sync.compat import for_each
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.abilities import Deletes, ListsScopes
from eventhub_checkpoints.stores.blob._sync.requests import BlobRequests
from eventhub_checkpoints.stores.blob.blob_names import (
    KINDS,
    Kind,
    NameCase,
    blob_name,
    prefix,
    scope_of,
)
from eventhub_checkpoints.stores.record_format import is_row

T = TypeVar("T")
Asked = TypeVar("Asked")


class BlobAbilities(ListsScopes, Deletes):
    """Walks the levels of the blobs' names, and deletes blobs."""

    _requests: BlobRequests
    _name_case: NameCase

    def read_scopes(self) -> Sequence[Scope]:
        levels = [""]
        for _ in Scope._fields:
            below = self._ask_each(self._requests.list_below, levels)
            levels = [name for names in below for name in names]
        # What others have written in another case is not what this store reads.
        scopes = [
            scope
            for level in levels
            if (scope := scope_of(level)) and scope == self.identity(scope)
        ]
        held = self._ask_each(self._holds_rows, scopes)
        return [scope for scope, is_held in zip(scopes, held, strict=True) if is_held]

    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        names: list[str] = []
        for kind in KINDS:
            if partition_id is None:
                names += self._row_names(scope, kind)
            else:
                names.append(blob_name(scope, kind, partition_id, self._name_case))
        return sum(self._ask_each(self._requests.delete, names))

    def _holds_rows(self, scope: Scope) -> bool:
        owned = self._row_names(scope, "ownership")
        return bool(owned or self._row_names(scope, "checkpoint"))

    def _row_names(self, scope: Scope, kind: Kind) -> list[str]:
        start = prefix(scope, kind, self._name_case)
        blobs, _ = self._requests.list_blobs(start)
        return [
            str(blob.name)
            for blob in blobs
            if is_row(str(blob.name)[len(start) :], blob.metadata or {})
        ]

    def _ask_each(self, function: Callable[[Asked], T], items: Sequence[Asked]) -> list[T]:
        def asked(item: Asked) -> T | Exception:
            # Raised in there, it would come out as a group of errors, which nobody maps.
            try:
                return function(item)
            except Exception as error:
                return error

        answers = for_each(asked, items, self.settings.max_concurrency)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in answers if not isinstance(answer, Exception)]
