"""What is stored: who owns a partition, and how far it was processed.

Units, stated once: `last_modified_time` is float seconds since the epoch (UTC),
`sequence_number` counts events of one partition from 0, `offset` is opaque text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

from eventhub_checkpoints._shared.fields import (
    checked_etag,
    checked_name,
    checked_offset,
    checked_owner_id,
    checked_row,
    checked_sequence_number,
)
from eventhub_checkpoints._shared.secrets import quoted

RELEASED = ""
"""The owner id of a partition that nobody owns."""


class Scope(NamedTuple):
    """One consumer group of one event hub: what a list is asked for.

    Event Hubs compares these names without regard to case; `folded` is how they are compared here.
    It unpacks into its three names, as in `store.list_checkpoints(*scope)`.
    """

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str

    @staticmethod
    def checked(fully_qualified_namespace: Any, eventhub_name: Any, consumer_group: Any) -> "Scope":
        """A scope whose three names can be stored.

        Raises:
            InvalidRecordError: a name is empty, no text, or holds `/` or a control character.
        """
        names = fully_qualified_namespace, eventhub_name, consumer_group
        try:
            return checked_once(*names)
        except TypeError:  # what is no text may have no hash
            return checked_once.__wrapped__(*names)

    @staticmethod
    def from_dict(row: Mapping[str, Any]) -> "Scope":
        """The scope that an SDK dict names.

        Raises:
            InvalidRecordError: it is no dict, or one of the three names is missing or unusable.
        """
        row = checked_row(row)
        return Scope.checked(
            row.get("fully_qualified_namespace"),
            row.get("eventhub_name"),
            row.get("consumer_group"),
        )

    @property
    def folded(self) -> "Scope":
        """The same scope in lower case."""
        return in_lower_case(self)

    def __repr__(self) -> str:
        # A name in the wrong place may be a connection string.
        return f"Scope({', '.join(map(quoted, self))})"

    def __str__(self) -> str:
        return f"{self.fully_qualified_namespace}/{self.eventhub_name}/{self.consumer_group}"

    def as_dict(self) -> dict[str, str]:
        """The three keys that every dict of the SDK carries."""
        return {
            "fully_qualified_namespace": self.fully_qualified_namespace,
            "eventhub_name": self.eventhub_name,
            "consumer_group": self.consumer_group,
        }


# A store is asked about few scopes, and many times about each.
@lru_cache(maxsize=1024)
def checked_once(fully_qualified_namespace: Any, eventhub_name: Any, consumer_group: Any) -> Scope:
    """A scope whose three names can be stored."""
    return Scope(
        checked_name("fully_qualified_namespace", fully_qualified_namespace),
        checked_name("eventhub_name", eventhub_name),
        checked_name("consumer_group", consumer_group),
    )


@lru_cache(maxsize=1024)
def in_lower_case(scope: Scope) -> Scope:
    """The same scope in lower case."""
    return Scope(*(name.lower() for name in scope))


@dataclass(frozen=True, slots=True)
class Ownership:
    """A row that says who owns a partition; `owner_id` is `""` when nobody does.

    `last_modified_time` is on the backend's own clock. `etag` changes with every write and is
    never used again.
    """

    scope: Scope
    partition_id: str
    owner_id: str
    etag: str
    last_modified_time: float

    def at(self, last_modified_time: float) -> "Ownership":
        """The same row, with another time."""
        return Ownership(
            self.scope, self.partition_id, self.owner_id, self.etag, last_modified_time
        )

    def as_dict(self, scope: Scope) -> dict[str, Any]:
        """A fresh dict as the SDK reads it, with the names as the caller spelled them."""
        return scope.as_dict() | {
            "partition_id": self.partition_id,
            "owner_id": self.owner_id,
            "etag": self.etag,
            "last_modified_time": self.last_modified_time,
        }


# By identity: no two proposals are alike, and the batch of a claim is kept in dicts of them.
@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """An ownership asked for.

    Attributes:
        etag: what the stored row must carry for the proposal to win; None: no row may exist.
        new_etag: what the row carries afterwards. Random, chosen once per claim, so that a claim
            whose answer was lost can be recognised. A backend that makes its own etags ignores it.
    """

    scope: Scope
    partition_id: str
    owner_id: str
    etag: str | None
    new_etag: str

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], new_etag: str) -> Self:
        """Read what the SDK hands to `claim_ownership`; an empty etag is no etag.

        Raises:
            InvalidRecordError: a name or id is missing or unusable.
        """
        return cls(
            Scope.from_dict(row),
            checked_name("partition_id", row.get("partition_id")),
            checked_owner_id(row.get("owner_id")),
            checked_etag(row.get("etag")),
            new_etag,
        )

    @property
    def is_release(self) -> bool:
        """Whether the owner gives the partition up."""
        return self.owner_id == RELEASED

    def won(self, last_modified_time: float, etag: str | None = None) -> Ownership:
        """The row as it stands after this proposal has won."""
        return Ownership(
            self.scope, self.partition_id, self.owner_id, etag or self.new_etag, last_modified_time
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a partition was processed: this event and all before it.

    Attributes:
        offset: opaque text; `""` when unknown (the sequence number alone resumes).
        sequence_number: of the last processed event; None only in rows that others wrote.
        version: on a row that was read: what a conditional write compares. On a checkpoint to
            be written: the version that it gets, random. A backend that makes its own versions
            ignores the latter.
    """

    scope: Scope
    partition_id: str
    offset: str
    sequence_number: int | None
    version: str = ""

    @classmethod
    def from_dict(cls, checkpoint: Mapping[str, Any], version: str) -> Self:
        """Read what the SDK hands to `update_checkpoint`.

        Raises:
            InvalidRecordError: a name, id or offset is unusable, or the sequence number no int64.
        """
        scope = Scope.from_dict(checkpoint)
        partition_id = checked_name("partition_id", checkpoint.get("partition_id"))
        number = checked_sequence_number(checkpoint.get("sequence_number"))
        return cls(
            scope, partition_id, checked_offset(checkpoint.get("offset"), number), number, version
        )

    def as_dict(self, scope: Scope) -> dict[str, Any]:
        """A fresh dict as the SDK reads it, with the names as the caller spelled them.

        An offset that is not known is a `SequenceOffset`, so that the client resumes exactly.
        """
        offset: str | SequenceOffset = self.offset
        if not offset and self.sequence_number is not None:
            offset = SequenceOffset(self.sequence_number)
        return scope.as_dict() | {
            "partition_id": self.partition_id,
            "sequence_number": self.sequence_number,
            "offset": offset,
        }

    @property
    def is_readable(self) -> bool:
        """Whether it tells where to go on; a stored row may have neither offset nor number."""
        return bool(self.offset) or self.sequence_number is not None


class SequenceOffset(int):
    """A sequence number in the place of an offset that is not known.

    The client turns an int in a checkpoint's `offset` into a filter on sequence numbers, but
    only when it is true: plain 0 would start at the default position and skip events.

    Source: azure-eventhub 5.15.1, `_eventprocessor/_eventprocessor_mixin.py`,
    `get_init_event_position`, and `_utils.py`, `event_position_selector`.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return True
