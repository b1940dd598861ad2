"""Statements of a SQL store; the claims differ by database."""

from dataclasses import dataclass

from eventhub_checkpoints.stores.sql.tables import Statement, Tables, spelled

NAMES = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
KEY = ", ".join((*NAMES, "partition_id"))
IN_SCOPE = " AND ".join(f"{name} = :{name}" for name in NAMES)
THIS_ROW = f"{IN_SCOPE} AND partition_id = :partition_id"

CLOCKS = {
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
}
"""Seconds since the epoch on the database's clock."""


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements of one store.

    Attributes:
        renew_row, create_row: `renew` and `create` for a single claim.
        renew: claims with an etag; the stored one is compared.
        create: claims where no row may exist.
        stored_etags: query for the winners; None if `renew` and `create` return them.
        forward_checkpoint: creates a row, or overwrites one that is not further.
        locked_checkpoints: of some partitions, or of all if `hold_off` locks the file.
        hold_off: blocks other writers until the transaction ends, and writes nothing. On
            SQLite, a transaction that reads first may fail at once when it writes.
    """

    ownerships: Statement
    renew_row: Statement
    create_row: Statement
    renew: Statement
    create: Statement
    stored_etags: Statement | None
    checkpoints: Statement
    checkpoint: Statement
    locked_checkpoints: Statement
    hold_off: Statement | None
    create_checkpoint: Statement
    update_checkpoint: Statement
    expected_checkpoint: Statement
    force_checkpoint: Statement
    forward_checkpoint: Statement
    scopes: Statement
    delete: tuple[Statement, Statement]
    delete_partition: tuple[Statement, Statement]


def statements(tables: Tables, dialect: str, driver: str) -> Statements:
    """Return the statements for tables of these names, in the driver's parameter style."""

    def say(text: str) -> Statement:
        return spelled(text, driver)

    own, held, now = tables.ownership, tables.checkpoint, CLOCKS[dialect]
    is_postgres = dialect == "postgresql"
    read = f'SELECT partition_id, "offset", sequence_number, version FROM {held} WHERE {IN_SCOPE}'
    one = f"{read} AND partition_id = :partition_id"
    insert, update = insert_checkpoint(held, now), update_checkpoint(held, now)
    return Statements(
        ownerships=say(
            f"SELECT partition_id, owner_id, etag, last_modified_time, {now} FROM {own} "
            f"WHERE {IN_SCOPE}"
        ),
        renew_row=say(renew_row(own, now)),
        create_row=say(create_row(own, now)),
        renew=say(renew_postgres(own, now) if is_postgres else renew_row(own, now)),
        create=say(create_postgres(own, now) if is_postgres else create_row(own, now)),
        stored_etags=None if is_postgres else say(f"SELECT etag FROM {own} WHERE {IN_SCOPE}"),
        checkpoints=say(read),
        checkpoint=say(one),
        locked_checkpoints=say(f"{read} {LOCKED}" if is_postgres else read),
        hold_off=None if is_postgres else say(f"UPDATE {held} SET version = version WHERE false"),
        create_checkpoint=say(f"{insert} DO NOTHING"),
        update_checkpoint=say(f"{update} AND version = :seen"),
        expected_checkpoint=say(f"{update} AND sequence_number = :expected"),
        force_checkpoint=say(f"{insert} {OVERWRITE}"),
        forward_checkpoint=say(
            f"{insert} {OVERWRITE} WHERE held.sequence_number IS NULL "
            "OR held.sequence_number <= excluded.sequence_number"
        ),
        scopes=say(
            f"SELECT {', '.join(NAMES)} FROM {own} UNION SELECT {', '.join(NAMES)} FROM {held}"
        ),
        delete=(
            say(f"DELETE FROM {own} WHERE {IN_SCOPE}"),
            say(f"DELETE FROM {held} WHERE {IN_SCOPE}"),
        ),
        delete_partition=(
            say(f"DELETE FROM {own} WHERE {THIS_ROW}"),
            say(f"DELETE FROM {held} WHERE {THIS_ROW}"),
        ),
    )


LOCKED = "AND partition_id = ANY(CAST(:partition_ids AS text[])) ORDER BY partition_id FOR UPDATE"
"""Locked in key order, so that two transactions never deadlock."""
OVERWRITE = (
    'DO UPDATE SET "offset" = excluded."offset", sequence_number = excluded.sequence_number, '
    "version = excluded.version, last_modified_time = excluded.last_modified_time, "
    "writer = excluded.writer"
)


def insert_checkpoint(table: str, now: str) -> str:
    """Return an INSERT of a checkpoint, up to the action for an existing row."""
    values = ", ".join(f":{name}" for name in (*NAMES, "partition_id"))
    return (
        f'INSERT INTO {table} AS held ({KEY}, "offset", sequence_number, version, '
        f"last_modified_time, writer) VALUES ({values}, :offset, :sequence_number, :version, "
        f"{now}, :writer) ON CONFLICT ({KEY})"
    )


def update_checkpoint(table: str, now: str) -> str:
    """Return an UPDATE of a checkpoint, to which a condition on the stored row is appended."""
    return (
        f'UPDATE {table} SET "offset" = :offset, sequence_number = :sequence_number, '
        f"version = :version, last_modified_time = {now}, writer = :writer WHERE {THIS_ROW}"
    )


PROPOSED = (*NAMES, "partition_id", "owner_id", "etag", "new_etag")
PROPOSALS = (
    f"unnest({', '.join(f'CAST(:{name} AS text[])' for name in PROPOSED)}) "
    f"AS proposed({', '.join(PROPOSED)})"
)
"""A batch of claims as rows."""


def renew_postgres(table: str, now: str) -> str:
    """Return the renewal of a batch, which compares each row's etag after locking the row.

    The rows are locked in key order, so that two batches never deadlock. An UPDATE alone locks
    them in the order of its plan.

    Source: PostgreSQL 18, "13.2.1. Read Committed Isolation Level" and "13.3.4. Deadlocks".
    """
    same = " AND ".join(f"own.{name} = locked.{name}" for name in (*NAMES, "partition_id"))
    return (
        f"WITH locked AS (SELECT {KEY}, proposed.owner_id, new_etag FROM {table} AS own "
        f"JOIN {PROPOSALS} USING ({KEY}) WHERE own.etag = proposed.etag "
        f"ORDER BY {KEY} FOR UPDATE OF own) "
        f"UPDATE {table} AS own SET owner_id = locked.owner_id, etag = locked.new_etag, "
        f"last_modified_time = {now} FROM locked WHERE {same} RETURNING own.etag"
    )


def create_postgres(table: str, now: str) -> str:
    """Return an insert that is atomic by the primary key; in key order, like `renew_postgres`."""
    return (
        f"INSERT INTO {table} ({KEY}, owner_id, etag, last_modified_time) "
        f"SELECT {KEY}, owner_id, new_etag, {now} FROM {PROPOSALS} ORDER BY {KEY} "
        "ON CONFLICT DO NOTHING RETURNING etag"
    )


def renew_row(table: str, now: str) -> str:
    """Return a renewal that is atomic by the row lock, or by SQLite's write lock."""
    return (
        f"UPDATE {table} SET owner_id = :owner_id, etag = :new_etag, last_modified_time = {now} "
        f"WHERE {THIS_ROW} AND etag = :etag"
    )


def create_row(table: str, now: str) -> str:
    """Return an insert that is atomic like `renew_row`; an existing row is left unchanged."""
    values = ", ".join(f":{name}" for name in (*NAMES, "partition_id"))
    return (
        f"INSERT INTO {table} ({KEY}, owner_id, etag, last_modified_time) "
        f"VALUES ({values}, :owner_id, :new_etag, {now}) ON CONFLICT DO NOTHING"
    )
