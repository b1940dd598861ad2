"""Statements of a SQL store, their parameters, and rows as records.

SQLAlchemy compiles a statement for the driver at its first use, and caches it.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import TextClause, bindparam, text

from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores import record_format
from eventhub_checkpoints.stores.history_entries import ENTRY_INTERVAL
from eventhub_checkpoints.stores.hook_results import HistoryEntry, Listing, Seen
from eventhub_checkpoints.stores.sql.tables import KEY, KEY_COLUMNS, NAMES, Tables

if TYPE_CHECKING:
    from eventhub_checkpoints.stores.sql.dialect import Dialect

IN_SCOPE = " AND ".join(f"{name} = :{name}" for name in NAMES)
THIS_ROW = f"{IN_SCOPE} AND partition_id = :partition_id"
KEY_VALUES = ", ".join(f":{name}" for name in KEY_COLUMNS)
Write = tuple[TextClause, ...]
"""Statements of one conditional write: executed in turn until one writes a row."""


class Statements:
    """Statements for the tables of one store.

    Attributes:
        renew: a single claim with an etag, which is compared with the stored one. If no
            row has this etag, there may be no row at all.
        create: a single claim where no row may exist; exclusive.
        renew_batch, create_batch: the same for the parameters of `Dialect.batch`.
        etags: query for the winners of a batch, if the statement itself does not return them.
        checkpoint: a single one, as it is now even in an older snapshot.
        locked_checkpoints: of some partitions; see `Dialect.hold_off`.
        forward_checkpoint: creates a row, or overwrites one that is not further.
        writes: the conditional writes of a checkpoint, by the state of the stored one, or None if
            that is known by its version.
        recorded_writes: the same with an entry of the history, each as one statement that returns
            the number of older entries; empty if the database has no such statements.
        begin, commit, rollback: those of a transaction; see `Dialect.transaction`.
        keep_checkpoint, keep_replaced, keep_rewind: copy a stored checkpoint to the history.
        prune: deletes all entries of a partition except the newest `kept`.
    """

    def __init__(self, tables: Tables, dialect: "Dialect") -> None:
        own, held, now = tables.ownership, tables.checkpoint, dialect.clock
        read = (
            f"SELECT partition_id, {tables.offset}, sequence_number, version, "
            f"last_modified_time, {now} FROM {held} WHERE {IN_SCOPE}"
        )
        update = f"{update_checkpoint(tables, now)} WHERE {THIS_ROW}"
        renew, create = text(renew_row(tables, now)), text(dialect.create_row(tables))
        self.ownerships = text(
            f"SELECT partition_id, owner_id, etag, last_modified_time, {now} FROM {own} "
            f"WHERE {IN_SCOPE}"
        )
        self.renew: Write = (renew, create)
        self.create: Write = (create,)
        self.renew_batch = text(dialect.renew_batch(tables))
        self.create_batch = text(dialect.create_batch(tables))
        self.etags = text(f"SELECT etag FROM {own} WHERE {IN_SCOPE}")
        self.checkpoints = text(read)
        self.checkpoint = text(f"{read} AND partition_id = :partition_id {dialect.current_row}")
        self.locked_checkpoints = text(
            f"{read} AND partition_id IN :partition_ids ORDER BY partition_id {dialect.row_lock}"
        ).bindparams(bindparam("partition_ids", expanding=True))
        self.create_checkpoint: Write = (text(dialect.create_checkpoint(tables)),)
        self.update_checkpoint: Write = (text(f"{update} AND version = :seen"),)
        self.expected_checkpoint: Write = (text(f"{update} AND sequence_number = :expected"),)
        self.force_checkpoint: Write = (text(dialect.force_checkpoint(tables)),)
        self.forward_checkpoint: Write = tuple(map(text, dialect.forward_checkpoint(tables)))
        self.writes: Mapping[Seen | None, Write] = {
            None: self.update_checkpoint,
            Seen.ABSENT: self.create_checkpoint,
            Seen.UNKNOWN: self.forward_checkpoint,
            Seen.FORCE: self.force_checkpoint,
        }
        self.hold_off = text(dialect.hold_off.format(tables)) if dialect.hold_off else None
        past, insert = tables.history, insert_entry(tables)
        copied, unless_kept = checkpoint_columns(tables), dialect.unless_kept.format(tables)
        self.recorded_writes = recorded_writes(tables, dialect)
        self.keep_checkpoint = text(
            f"{insert} SELECT {dialect.minute_entry.format(now)}, {now}, 'checkpoint', {copied} "
            f"FROM {held} WHERE {THIS_ROW} AND {no_recent_entry(tables, now)} {unless_kept}"
        )
        self.keep_replaced = text(
            f"{insert} SELECT :replaced_key, {now}, 'replaced', {copied} FROM {held} "
            f"WHERE {THIS_ROW} AND version <> :version {dialect.row_lock} {unless_kept}"
        )
        self.keep_rewind = text(
            f"{insert} SELECT version, {now}, 'rewind', {copied} FROM {held} "
            f"WHERE {THIS_ROW} {unless_kept}"
        )
        self.begin, self.commit, self.rollback = dialect.transaction
        self.entries = text(f"SELECT count(*) FROM {past} WHERE {THIS_ROW}")
        newest = f"ORDER BY time DESC, {dialect.tie_breaker} DESC"
        entry = (
            f"SELECT partition_id, {tables.offset}, sequence_number, version, last_modified_time, "
            f"kind, writer, {now} FROM {past} WHERE"
        )
        self.history = text(f"{entry} {IN_SCOPE} {newest} LIMIT :limit")
        self.partition_history = text(f"{entry} {THIS_ROW} {newest} LIMIT :limit")
        # MySQL reads the same table in a DELETE only from a derived table.
        self.prune = text(
            f"DELETE FROM {past} WHERE {THIS_ROW} AND time <= (SELECT time FROM (SELECT time FROM "
            f"{past} WHERE {THIS_ROW} ORDER BY time DESC LIMIT 1 OFFSET :kept) AS oldest)"
        )
        self.delete_history = text(f"DELETE FROM {past} WHERE {IN_SCOPE}")
        self.delete_partition_history = text(f"DELETE FROM {past} WHERE {THIS_ROW}")
        names = ", ".join(NAMES)
        self.scopes = text(f"SELECT {names} FROM {own} UNION SELECT {names} FROM {held}")
        self.delete = [text(f"DELETE FROM {table} WHERE {IN_SCOPE}") for table in (own, held)]
        self.delete_partition = [
            text(f"DELETE FROM {table} WHERE {THIS_ROW}") for table in (own, held)
        ]


def renew_row(tables: Tables, now: str) -> str:
    """Return a renewal that is atomic by the row lock, or by SQLite's write lock."""
    return (
        f"UPDATE {tables.ownership} SET owner_id = :owner_id, etag = :new_etag, "
        f"last_modified_time = {now} WHERE {THIS_ROW} AND etag = :etag"
    )


def insert_ownership(tables: Tables, now: str) -> str:
    """Return an INSERT of an ownership; its etag is the new one."""
    return (
        f"INSERT INTO {tables.ownership} ({KEY}, owner_id, etag, last_modified_time) "
        f"VALUES ({KEY_VALUES}, :owner_id, :new_etag, {now})"
    )


def checkpoint_columns(tables: Tables) -> str:
    """Return all columns of a checkpoint, which the history has, too."""
    return f"{KEY}, {tables.offset}, sequence_number, version, last_modified_time, writer"


def insert_checkpoint(tables: Tables, now: str, alias: str = "", source: str = "") -> str:
    """Return an INSERT of a checkpoint, up to what happens to an existing row.

    `source`: a FROM clause of one row, which is read before the row is inserted.
    """
    values = f"{KEY_VALUES}, :offset, :sequence_number, :version, {now}, :writer"
    rows = f"SELECT {values} FROM {source}" if source else f"VALUES ({values})"
    return f"INSERT INTO {tables.checkpoint}{alias} ({checkpoint_columns(tables)}) {rows}"


def update_checkpoint(tables: Tables, now: str) -> str:
    """Return an UPDATE of checkpoints, up to its condition."""
    return (
        f"UPDATE {tables.checkpoint} SET {tables.offset} = :offset, "
        f"sequence_number = :sequence_number, version = :version, last_modified_time = {now}, "
        "writer = :writer"
    )


def insert_entry(tables: Tables) -> str:
    """Return an INSERT of an entry of the history, up to its values."""
    return f"INSERT INTO {tables.history} (entry, time, kind, {checkpoint_columns(tables)})"


def no_recent_entry(tables: Tables, now: str) -> str:
    """Return the condition that a partition has no entry of the last minute.

    Two writers may find that at the same time, so the entry's key has the number of the minute.
    """
    return (
        f"NOT EXISTS (SELECT 1 FROM {tables.history} WHERE {THIS_ROW} "
        f"AND time > {now} - {ENTRY_INTERVAL:g})"
    )


def recorded_writes(tables: Tables, dialect: "Dialect") -> Mapping[Seen | None, TextClause]:
    """Return the writes of a checkpoint that also write its entry; empty if there are none."""
    update = f"{update_checkpoint(tables, dialect.clock)} WHERE {THIS_ROW} AND version = :seen"
    plain = {
        None: update,
        Seen.ABSENT: dialect.create_checkpoint(tables),
        Seen.UNKNOWN: dialect.forward_checkpoint(tables)[0],
    }
    recorded = {seen: dialect.recorded_write(tables, write) for seen, write in plain.items()}
    recorded[Seen.FORCE] = dialect.recorded_rewind(tables)
    return {seen: text(write) for seen, write in recorded.items() if write is not None}


def applied(tables: Tables, dialect: "Dialect") -> Write:
    """Return the statement that records an applied migration."""
    insert = (
        f"INSERT INTO {tables.version} (version, applied_time, writer) "
        f"VALUES (:version, {dialect.clock}, :writer)"
    )
    return (text(insert),)


def scope_values(scope: Scope) -> dict[str, Any]:
    """Return the three names as they are stored."""
    return {**scope.folded.as_dict()}


def row_values(scope: Scope, partition_id: str) -> dict[str, Any]:
    """Return the primary key of a row."""
    return {**scope_values(scope), "partition_id": partition_id}


def proposal_values(proposal: Proposal) -> dict[str, Any]:
    """Return one claim as parameters."""
    return {
        **row_values(proposal.scope, proposal.partition_id),
        "owner_id": proposal.owner_id,
        "etag": proposal.etag,
        "new_etag": proposal.new_etag,
    }


def checkpoint_values(checkpoint: Checkpoint, writer: str) -> dict[str, Any]:
    """Return a checkpoint as parameters."""
    return {
        **row_values(checkpoint.scope, checkpoint.partition_id),
        "offset": checkpoint.offset,
        "sequence_number": checkpoint.sequence_number,
        "version": checkpoint.version,
        "writer": writer,
    }


def entry_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's parameters with the keys of its entries of the history.

    The keys are the same if the write is repeated.
    """
    names = "\0".join(str(values[name]) for name in KEY_COLUMNS)
    partition = blake2b(names.encode(), digest_size=10).hexdigest()
    return {
        **values,
        "partition_key": f"{partition}-",
        "replaced_key": f"{values['version']}-replaced",
    }


Row = Sequence[Any]
Record = TypeVar("Record", Ownership, Checkpoint)


def listing(
    rows: Sequence[Row], scope: Scope, read: Callable[[Scope, Row], Record | None]
) -> Listing[Record]:
    """Return the records among the rows, whose last column is the server's time.

    Rows that cannot be read are skipped.
    """
    records, skipped = [], []
    for row in rows:
        # SQLite stores a value of any type.
        is_row = isinstance(row[0], str) and record_format.is_row(row[0], {})
        record = read(scope, row) if is_row else None
        if record is None:
            skipped.append(f"the row of {row[0]!r} in {scope} was left out: it cannot be read")
        else:
            records.append(record)
    return Listing(records, max((row[-1] for row in rows), default=None), skipped)


def ownership_of(scope: Scope, row: Row) -> Ownership | None:
    """Return the ownership in a row; None if its time is invalid."""
    partition_id, owner_id, etag, last_modified_time = row[:4]
    if not (isinstance(last_modified_time, float) and isfinite(last_modified_time)):
        return None
    owner = record_format.owner_of({"ownerid": str(owner_id)})
    return Ownership(scope, partition_id, owner, str(etag), last_modified_time)


def checkpoint_of(scope: Scope, row: Row) -> Checkpoint:
    """Return the checkpoint in a row, without a position if it has none."""
    partition_id, offset, number, version, modified, _ = row
    return record_format.checkpoint_of_columns(
        scope,
        partition_id,
        offset,
        number,
        str(version),
        modified if isinstance(modified, float) and isfinite(modified) else None,
    )


def readable_checkpoint(scope: Scope, row: Row) -> Checkpoint | None:
    """Return the checkpoint in a row; None if it has no position."""
    checkpoint = checkpoint_of(scope, row)
    return checkpoint if checkpoint.is_readable else None


def history_entry(scope: Scope, row: Row) -> HistoryEntry:
    """Return the entry in a row of the history."""
    kind, writer, now = row[5:]
    return HistoryEntry(checkpoint_of(scope, (*row[:5], now)), kind, writer)


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the rows of a batch as arrays: one statement, and one plan, for any batch size."""
    return {name: [row[name] for row in rows] for name in rows[0]}
