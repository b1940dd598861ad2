"""Which partitions a client holds, as its claims and lists have shown.

Rule 1: a partition is lost when a batch of claims of its group comes back without it, or when a
list shows another owner; it is given up by a release. Rule 2: who has never claimed a partition has
not lost it: a client may read one by name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from eventhub_checkpoints._shared.fields import checked_name
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.records import Scope

Key = tuple[Scope, str]
Row = Mapping[str, Any]


def key_of(row: Row) -> Key:
    """Which partition a record is about, however its names are spelled.

    Raises:
        InvalidRecordError: it is no dict, or a name or id is unusable.
    """
    scope = Scope.from_dict(row)
    return scope.folded, checked_name("partition_id", row.get("partition_id"))


def keyed(rows: Iterable[Row]) -> dict[Key, Row]:
    """Records by what they are about; without those that are unusable."""
    found: dict[Key, Row] = {}
    for row in rows:
        try:
            found[key_of(row)] = row
        except InvalidRecordError:
            continue
    return found


class HeldPartitions:
    """The partitions that a client holds, and those that were its own."""

    def __init__(self) -> None:
        self._owners: dict[Key, object] = {}
        self._lost: set[Key] = set()

    def has_lost(self, key: Key) -> bool:
        """Whether it is another's now, as far as is known."""
        return key in self._lost

    def released(self, keys: Iterable[Key]) -> None:
        """They were given up."""
        self._lose({*keys})

    def claimed(self, proposed: Iterable[Row], won: Iterable[Row]) -> set[Key]:
        """Learn from a batch of claims; what is lost now."""
        claims = {key for key, row in keyed(proposed).items() if row.get("owner_id")}
        owners = {key: row.get("owner_id") for key, row in keyed(won).items() if key in claims}
        scopes = {scope for scope, _ in claims}
        gone = claims | {key for key in self._owners if key[0] in scopes}
        self._owners.update(owners)
        self._lost -= owners.keys()
        return self._lose(gone - owners.keys())

    def listed(self, rows: Iterable[Row]) -> set[Key]:
        """Learn from a list of ownerships; what is lost now."""
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
