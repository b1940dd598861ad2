"""Partitions that a client holds, as its claims and ownership lists have shown.

Rule 1: a partition is lost when a batch of claims of its group comes back without it, or when a
list shows another owner; it is given up by a release. Rule 2: a client that has never claimed a
partition has not lost it: it may read one by name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.records import Scope, checked_name

Key = tuple[Scope, str]
Row = Mapping[str, Any]


def key_of(row: Row) -> Key:
    """Return the key of the partition that a record is about, regardless of case.

    Raises:
        InvalidRecordError: the record is not a dict, or a name or id is unusable.
    """
    scope = Scope.from_dict(row)
    return scope.folded, checked_name("partition_id", row.get("partition_id"))


def keyed(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return records by the partition that they are about, without those that are unusable."""
    found: dict[Key, Row] = {}
    for row in rows:
        try:
            found[key_of(row)] = row
        except InvalidRecordError:
            continue
    return found


class HeldPartitions:
    """Partitions that a client holds, and those that it has held and lost."""

    def __init__(self) -> None:
        self._owners: dict[Key, object] = {}
        self._lost: set[Key] = set()

    def has_lost(self, key: Key) -> bool:
        """Return whether another client owns the partition now, as far as is known."""
        return key in self._lost

    def released(self, keys: Iterable[Key]) -> None:
        """Record that partitions were released."""
        self._lose({*keys})

    def claimed(self, proposed: Iterable[Row], won: Iterable[Row]) -> set[Key]:
        """Record the result of a batch of claims; return the partitions that are lost."""
        claims = {key for key, row in keyed(proposed).items() if row.get("owner_id")}
        owners = {key: row.get("owner_id") for key, row in keyed(won).items() if key in claims}
        scopes = {scope for scope, _ in claims}
        gone = claims | {key for key in self._owners if key[0] in scopes}
        self._owners.update(owners)
        self._lost -= owners.keys()
        return self._lose(gone - owners.keys())

    def listed(self, rows: Iterable[Row]) -> set[Key]:
        """Record a list of ownerships; return the partitions that are lost."""
        shown = keyed(rows)
        return self._lose(
            {
                key
                for key, owner in self._owners.items()
                if key in shown and shown[key].get("owner_id") not in (owner, "", None)
            }
        )

    def _lose(self, keys: set[Key]) -> set[Key]:
        for key in keys:
            self._owners.pop(key, None)
        self._lost |= keys
        return keys
