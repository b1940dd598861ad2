"""Stored records: ownership of partitions, and checkpoints.

Units: `last_modified_time` is float seconds since the epoch (UTC), `sequence_number` counts the
events of one partition from 0, `offset` is an opaque string.

Functions whose names begin with `checked` return a valid field of a record, and raise
`InvalidRecordError` for any other value.
"""

import operator
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self, SupportsIndex, TypeVar, cast

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.offset_words import is_unknown, meaning_of
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints.errors import MISSING, InvalidRecordError

Row = TypeVar("Row", bound=Mapping[str, Any])

RELEASED = ""
"""Owner id of a partition that nobody owns."""


RESERVED_NAMESPACE = "eventhub-checkpoints"
"""Namespace of rows that this package writes for itself; no hub has it, as it is no host name."""
HANDOVER_REQUESTS = "~wishes"
"""Ends the name under which a group's hand-over requests are stored.

The name of a consumer group contains no `~`.
"""


class ScopeNames(NamedTuple):
    """The three names of a scope."""

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str


class Scope(ScopeNames):
    """Consumer group of an event hub: the scope of a list of ownerships or checkpoints.

    Event Hubs compares these names without regard to case; so does this package, by `folded`.
    A scope unpacks into its three names, as in `store.list_checkpoints(*scope)`.

    Attributes:
        fully_qualified_namespace: host of the namespace, such as
            `NAMESPACE.servicebus.windows.net`, as the client is given it: with its port if it has
            one, without a scheme. A name without a dot, such as `localhost` or the host of an
            emulator in a network of containers, is a host name too.
        eventhub_name: the hub.
        consumer_group: the group, such as `$Default`.

    Raises:
        InvalidRecordError: a name is not a string, is empty, or is none that can be stored, such as
            a URL or a connection string. Rows of other writers are not checked (`_make`).
    """

    __slots__ = ()

    @with_checked_arguments
    def __new__(
        cls, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str
    ) -> Self:
        return super().__new__(
            cls,
            checked_name("fully_qualified_namespace", fully_qualified_namespace),
            checked_name("eventhub_name", eventhub_name),
            checked_name("consumer_group", consumer_group),
        )

    @staticmethod
    def checked(fully_qualified_namespace: Any, eventhub_name: Any, consumer_group: Any) -> "Scope":
        """Return a scope whose three names can be stored.

        Raises:
            InvalidRecordError: a name is not a string, is empty, or has `/` or a control character.
        """
        names = fully_qualified_namespace, eventhub_name, consumer_group
        try:
            return scope_of_names(*names)
        except TypeError:  # a value that is not a string may not be hashable
            return scope_of_names.__wrapped__(*names)

    @staticmethod
    def from_dict(row: Mapping[str, Any]) -> "Scope":
        """Return the scope that an SDK dict names.

        Raises:
            InvalidRecordError: the row is not a dict, or one of the three names is missing or
                unusable.
        """
        get = checked_row(row).get
        return Scope.checked(
            get("fully_qualified_namespace", MISSING),
            get("eventhub_name", MISSING),
            get("consumer_group", MISSING),
        )

    @property
    def folded(self) -> "Scope":
        """Return the scope in lower case."""
        return in_lower_case(self)

    @property
    def is_reserved(self) -> bool:
        """Return whether its rows are this package's own, and not those of a consumer group."""
        is_reserved = self.fully_qualified_namespace.lower() == RESERVED_NAMESPACE
        return is_reserved or self.consumer_group.lower().endswith(HANDOVER_REQUESTS)

    @property
    def handover_requests(self) -> "Scope":
        """Return the scope of the group's hand-over requests, whose rows name who asks whom."""
        return self._replace(consumer_group=f"{self.consumer_group}{HANDOVER_REQUESTS}")

    def __repr__(self) -> str:
        # A name may contain a connection string by mistake.
        return f"Scope({', '.join(map(quoted, self))})"

    def __str__(self) -> str:
        return f"{self.fully_qualified_namespace}/{self.eventhub_name}/{self.consumer_group}"

    def as_dict(self) -> dict[str, str]:
        """Return the three keys that every dict of the SDK contains."""
        return {
            "fully_qualified_namespace": self.fully_qualified_namespace,
            "eventhub_name": self.eventhub_name,
            "consumer_group": self.consumer_group,
        }


# A store is called for few scopes, and many times for each.
@lru_cache(maxsize=1024)
def scope_of_names(
    fully_qualified_namespace: Any, eventhub_name: Any, consumer_group: Any
) -> Scope:
    """Return a scope whose three names can be stored."""
    return Scope(fully_qualified_namespace, eventhub_name, consumer_group)


@lru_cache(maxsize=1024)
def in_lower_case(scope: Scope) -> Scope:
    """Return the scope in lower case."""
    return Scope._make(name.lower() for name in scope)


# Type checkers protect the fields. `frozen` would triple the time to create a record, and a list
# creates one for each row.
@dataclass(slots=True, unsafe_hash=True)
class Ownership:
    """Ownership of a partition; `owner_id` is `""` if nobody owns it.

    `last_modified_time` is on the backend's own clock. `etag` changes with every write and is never
    reused.
    """

    scope: Final[Scope]
    partition_id: Final[str]
    owner_id: Final[str]
    etag: Final[str]
    last_modified_time: Final[float]

    def at(self, last_modified_time: float) -> "Ownership":
        """Return the same row with a different time."""
        return Ownership(
            self.scope, self.partition_id, self.owner_id, self.etag, last_modified_time
        )

    def as_dict(self, scope: Scope, last_modified_time: float | None = None) -> dict[str, Any]:
        """Return a new dict as the SDK expects it, with the names in the caller's spelling.

        Its time is `last_modified_time`, or that of the row.
        """
        row: dict[str, Any] = scope.as_dict()
        row["partition_id"] = self.partition_id
        row["owner_id"] = self.owner_id
        row["etag"] = self.etag
        row["last_modified_time"] = (
            self.last_modified_time if last_modified_time is None else last_modified_time
        )
        return row


# Compared by identity: no two proposals are alike, and a batch of claims is kept in dicts of them.
@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Requested ownership.

    Attributes:
        etag: etag that the stored row must have for the claim to succeed; None: no row may exist.
        new_etag: etag of the row afterwards. Random, chosen once per claim, so that a claim whose
            response was lost can be recognised. Ignored by a backend that creates its own etags.
    """

    scope: Scope
    partition_id: str
    owner_id: str
    etag: str | None
    new_etag: str

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], new_etag: str) -> Self:
        """Read a dict passed to `claim_ownership`; an empty etag counts as none.

        Raises:
            InvalidRecordError: a name or id is missing or unusable.
        """
        return cls(
            Scope.from_dict(row),
            checked_name("partition_id", row.get("partition_id", MISSING)),
            checked_owner_id(row.get("owner_id")),
            checked_etag(row.get("etag")),
            new_etag,
        )

    @property
    def is_release(self) -> bool:
        """Return whether the owner releases the partition."""
        return self.owner_id == RELEASED

    def won(self, last_modified_time: float, etag: str | None = None) -> Ownership:
        """Return the row as stored after this claim has succeeded."""
        return Ownership(
            self.scope, self.partition_id, self.owner_id, etag or self.new_etag, last_modified_time
        )


# Not frozen: see `Ownership`.
@dataclass(slots=True, unsafe_hash=True)
class Checkpoint:
    """Position up to which a partition was processed: this event and all before it.

    Attributes:
        offset: opaque string; `""` if unknown (the sequence number alone is enough to resume).
        sequence_number: of the last processed event; None only in rows of other writers.
        version: of a row that was read: the value that a conditional write compares. Of a
            checkpoint to be written: its new version, random; ignored by a backend that creates
            its own versions.
        last_modified_time: of a row that was read, on the backend's own clock; None if the
            backend does not know it. Not compared.
    """

    scope: Final[Scope]
    partition_id: Final[str]
    offset: Final[str]
    sequence_number: Final[int | None]
    version: Final[str] = ""
    last_modified_time: Final[float | None] = field(default=None, compare=False)

    @classmethod
    def from_dict(cls, checkpoint: Mapping[str, Any], version: str) -> Self:
        """Read a dict passed to `update_checkpoint`.

        Raises:
            InvalidRecordError: a name, id or offset is unusable, or the sequence number is not an
                int64.
        """
        scope = Scope.from_dict(checkpoint)
        partition_id = checked_name("partition_id", checkpoint.get("partition_id", MISSING))
        number = checked_sequence_number(checkpoint.get("sequence_number", MISSING))
        return cls(
            scope, partition_id, checked_offset(checkpoint.get("offset"), number), number, version
        )

    def as_dict(self, scope: Scope) -> dict[str, Any]:
        """Return a new dict as the SDK expects it, with the names in the caller's spelling.

        An unknown offset becomes a `SequenceOffset`, so that the client resumes exactly.
        """
        row: dict[str, Any] = scope.as_dict()
        row["partition_id"] = self.partition_id
        row["sequence_number"] = self.sequence_number
        row["offset"] = listed_offset(self.offset, self.sequence_number)
        return row

    @property
    def is_readable(self) -> bool:
        """Return whether it has a position; a stored row may have neither offset nor number."""
        return bool(self.offset) or self.sequence_number is not None


class SequenceOffset(int):
    """Sequence number in place of an unknown offset.

    The client turns an int in a checkpoint's `offset` into a filter on sequence numbers, but only
    if it is truthy: a plain 0 would start at the default position and skip events.

    Attributes:
        stored: what is stored instead of an offset: `""`, or a word such as `"-1"`.

    Source: azure-eventhub 5.15.1, `_eventprocessor/_eventprocessor_mixin.py`,
    `get_init_event_position`, and `_utils.py`, `event_position_selector`.
    """

    stored: str

    def __new__(cls, number: int, stored: str = "") -> Self:
        if whole_number(number) is None:
            raise InvalidRecordError("sequence_number", number, "a whole number")
        offset = super().__new__(cls, number)
        offset.stored = stored
        return offset

    def __bool__(self) -> bool:
        return True


def listed_offset(offset: str, sequence_number: int | None) -> str | SequenceOffset:
    """Return the `offset` of a listed checkpoint: by number if it is unknown or a word.

    A client would take a word for an offset, and start at one end of the partition, or be refused,
    while the number says how far the group is. A negative number, as of a reset to the beginning
    of a partition without events, says nothing.
    """
    if sequence_number is None:
        return offset
    is_word = meaning_of(offset) is not None
    if not offset or (is_word and sequence_number >= 0):
        return SequenceOffset(sequence_number, offset)
    return offset


def stored_offset(listed: object) -> str:
    """Return what is stored as the offset of a listed checkpoint; `""` if it is unknown."""
    offset = listed.stored if isinstance(listed, SequenceOffset) else listed
    return offset if isinstance(offset, str) and not is_unknown(offset) else ""


LEAST_INT64, MOST_INT64 = -(2**63), 2**63 - 1
DECIMAL = re.compile("-?[0-9]{1,19}")


def checked_row(row: Any) -> Mapping[str, Any]:
    """Return a record from the SDK if it is a dict."""
    if not isinstance(row, Mapping):
        raise InvalidRecordError("record", row, "a dict, as the client makes them")
    return cast("Mapping[str, Any]", row)


def checked_rows(rows: Iterable[Row]) -> Iterable[Row]:
    """Return the ownerships that the SDK proposes."""
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping | str | bytes):
        raise InvalidRecordError("ownership_list", rows, "a list of dicts, as the client makes it")
    return rows


def checked_name(field: str, value: Any) -> str:
    """Return a name or id if it can be part of a key."""
    if not isinstance(value, str) or not value:
        is_number = field == "partition_id" and isinstance(value, int)
        example = f", such as '{value:d}'" if is_number else ""
        raise InvalidRecordError(field, value, f"a non-empty string{example}")
    if not value.isdecimal() and holds_secret(value):
        raise InvalidRecordError(field, value, "a name, not a connection string, key or token")
    if field == "fully_qualified_namespace" and (host := host_in_url(value)):
        raise InvalidRecordError(
            field, value, f"the host name alone, without scheme and slashes: '{host}'"
        )
    if not {"/", "\\"}.isdisjoint(value) or not value.isprintable():
        if any("\ud800" <= character <= "\udfff" for character in value):
            expected = "text that could be decoded; where the locale is not UTF-8, set PYTHONUTF8=1"
            raise InvalidRecordError(field, value, expected)
        raise InvalidRecordError(field, value, "a printable string without slashes")
    if value in {".", ".."}:
        raise InvalidRecordError(field, value, "a name, not a step in a path")
    return value


def host_in_url(value: str) -> str:
    """Return the host, and the port, of an endpoint; `""` if the value is not like one."""
    start = value.partition("://")[2] if "://" in value else value.removesuffix("/")
    host = start.partition("/")[0]
    return host if host != value and "/" not in start.rstrip("/") and host.isprintable() else ""


def checked_owner_id(value: Any) -> str:
    """Return an owner id; None and `""` mean no owner."""
    if value is None:
        return ""
    if not isinstance(value, str) or (value and not value.isprintable()):
        raise InvalidRecordError("owner_id", value, "a printable string, or '' to release")
    return value


def checked_etag(value: Any) -> str | None:
    """Return the etag that the stored row must carry; None and `""` mean no etag."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRecordError("etag", value, "a string, or None where no row is stored")
    return value or None


def checked_offset(value: Any, sequence_number: int) -> str:
    """Return an offset as it is stored: a string unchanged, `""` if unknown.

    An unknown offset is None, a word for it (see `offset_words`), the `SequenceOffset` of a listed
    checkpoint, or the same number as a plain int, as after a JSON round trip. Any other int is
    refused: it may be an offset that was meant as a string, and would be lost if it were dropped.
    """
    if value is None or (isinstance(value, str) and value.isprintable()):
        return stored_offset(value)
    number = whole_number(value)
    if number is None:
        raise InvalidRecordError("offset", value, "a printable string, or None where it is unknown")
    is_placeholder = isinstance(value, int) and type(value) is not int
    if is_placeholder or number == sequence_number:
        return stored_offset(value)
    raise InvalidRecordError(
        "offset", value, f"a string such as '{number}', or None where it is unknown"
    )


def checked_sequence_number(value: Any) -> int:
    """Return a sequence number that every reader of the record can parse."""
    number = whole_number(value)
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        number = int(value)
    if number is None or not LEAST_INT64 <= number <= MOST_INT64:
        raise InvalidRecordError("sequence_number", value, "a decimal int64")
    return number


def whole_number(value: object) -> int | None:
    """Return an integer, including numpy integers and subclasses of int, as a plain int; else None.

    A bool is not accepted as a number.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        return None


def fresh_etag() -> str:
    """Return an etag or version that was never used before, not even by a deleted row."""
    return os.urandom(16).hex()
