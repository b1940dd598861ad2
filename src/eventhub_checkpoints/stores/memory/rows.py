"""Rows that memory stores share, and the rules for a claim and a write."""

import threading
import time
import uuid
from collections.abc import Mapping
from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.record_format import checkpoint_of, is_row, owner_of


def claim(stored: Ownership | None, proposal: Proposal, now: float) -> Won | Lost:
    """Decide a claim: it wins if its etag is the stored one, or if nothing is stored.

    An etag whose row has vanished also wins: the partition has no owner.
    """
    if stored is not None and stored.etag != proposal.etag:
        return Lost(stored)
    return Won(proposal.won(now))


def write(
    stored: Checkpoint | None, checkpoint: Checkpoint, seen: str | Seen
) -> Written | Conflict:
    """Decide a write: it replaces the row that was seen, or any row when forced."""
    version = stored.version if stored else Seen.ABSENT
    expected = Seen.ABSENT if seen is Seen.UNKNOWN else seen
    if version != expected and seen is not Seen.FORCE:
        return Conflict(stored)
    return Written(checkpoint.version)


Kind = Literal["ownership", "checkpoint"]
KINDS: tuple[Kind, ...] = ("ownership", "checkpoint")


class RawRow(NamedTuple):
    """A stored row, unparsed."""

    fields: Mapping[str, str | None]
    etag: str
    last_modified_time: float


class MemoryRows:
    """In-memory stand-in for a server; every method is one atomic step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[Scope, Kind], dict[str, RawRow]] = {}
        self.clock_shift = 0.0

    def now(self) -> float:
        """Return the server's time, in seconds since the epoch."""
        return time.time() + self.clock_shift

    def put_raw(
        self, kind: Kind, scope: Scope, partition_id: str, fields: Mapping[str, str | None] | None
    ) -> None:
        """Store a row as another writer would; None removes it."""
        with self._lock:
            if fields is None:
                self._table(kind, scope).pop(partition_id, None)
            else:
                self._put(kind, scope, partition_id, fields, uuid.uuid4().hex)

    def ownerships(self, scope: Scope) -> Listing[Ownership]:
        """Return every ownership of the scope."""
        with self._lock:
            rows, now = dict(self._table("ownership", scope)), self.now()
        readable = {key: row for key, row in rows.items() if is_row(key, row.fields)}
        return Listing(
            [ownership(scope, key, row) for key, row in readable.items()],
            now,
            [f"{key!r} in {scope} is not an ownership" for key in rows.keys() - readable.keys()],
        )

    def claim(self, proposal: Proposal) -> Won | Lost:
        """Compare and set one ownership."""
        scope, partition_id = proposal.scope, proposal.partition_id
        with self._lock:
            row = self._table("ownership", scope).get(partition_id)
            stored = ownership(scope, partition_id, row) if row else None
            answer = claim(stored, proposal, self.now())
            if isinstance(answer, Won):
                fields = {"ownerid": proposal.owner_id}
                self._put("ownership", scope, partition_id, fields, proposal.new_etag)
            return answer

    def checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        """Return every readable checkpoint of the scope."""
        with self._lock:
            rows, now = dict(self._table("checkpoint", scope)), self.now()
        readable = {
            key: record
            for key, row in rows.items()
            if is_row(key, row.fields) and (record := checkpoint(scope, key, row)).is_readable
        }
        return Listing(
            list(readable.values()),
            now,
            [
                f"{key!r} in {scope} is not a checkpoint: it has neither offset nor number"
                for key in rows.keys() - readable.keys()
            ],
        )

    def write(self, record: Checkpoint, seen: str | Seen) -> Written | Conflict:
        """Compare and set one checkpoint."""
        scope, partition_id = record.scope, record.partition_id
        with self._lock:
            row = self._table("checkpoint", scope).get(partition_id)
            stored = checkpoint(scope, partition_id, row) if row else None
            answer = write(stored, record, seen)
            if isinstance(answer, Written):
                fields = {"offset": record.offset, "sequencenumber": str(record.sequence_number)}
                self._put("checkpoint", scope, partition_id, fields, answer.version)
            return answer

    def raw(self, kind: Kind) -> dict[str, dict[str, str | None]]:
        """Return the fields of every row of a kind, by partition; meant for a single scope."""
        with self._lock:
            tables = [table for (_, here), table in self._rows.items() if here == kind]
            return {key: dict(row.fields) for table in tables for key, row in table.items()}

    def scopes(self) -> list[Scope]:
        """Return every scope that has a row."""
        with self._lock:
            return list({scope for (scope, _), table in self._rows.items() if table})

    def delete(self, scope: Scope, partition_id: str | None) -> int:
        """Delete the rows of both kinds, of one partition or of the scope; return their number."""
        with self._lock:
            tables = [self._table(kind, scope) for kind in KINDS]
            doomed = [
                (table, key) for table in tables for key in table if partition_id in (None, key)
            ]
            for table, key in doomed:
                del table[key]
            for kind, table in zip(KINDS, tables, strict=True):
                if not table:
                    del self._rows[scope.folded, kind]
            return len(doomed)

    def _table(self, kind: Kind, scope: Scope) -> dict[str, RawRow]:
        return self._rows.setdefault((scope.folded, kind), {})

    def _put(
        self,
        kind: Kind,
        scope: Scope,
        partition_id: str,
        fields: Mapping[str, str | None],
        etag: str,
    ) -> None:
        self._table(kind, scope)[partition_id] = RawRow(dict(fields), etag, self.now())


_named: WeakValueDictionary[str, MemoryRows] = WeakValueDictionary()
_naming = threading.Lock()


def rows_named(name: str) -> MemoryRows:
    """Return the rows that every store opened as `memory:NAME` in this process shares."""
    if not name:
        return MemoryRows()
    with _naming:
        return _named.setdefault(name, MemoryRows())


def ownership(scope: Scope, partition_id: str, row: RawRow) -> Ownership:
    """Return the row as an ownership."""
    return Ownership(scope, partition_id, owner_of(row.fields), row.etag, row.last_modified_time)


def checkpoint(scope: Scope, partition_id: str, row: RawRow) -> Checkpoint:
    """Return the row as a checkpoint, without a position if it has none."""
    return checkpoint_of(scope, partition_id, row.fields, row.etag, row.last_modified_time)
