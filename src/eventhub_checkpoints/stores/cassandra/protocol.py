"""Tables, lightweight transactions, and rows as records."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores import record_format
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import is_row, owner_of

DEFAULT_KEYSPACE = "eventhub_checkpoints"
KEYSPACE = re.compile("[a-z][a-z0-9_]{0,47}")
APPLIED = "[applied]"
"""Column of the answer that shows whether a conditional statement was carried out."""
BATCH_LIMIT = 128
"""Claims in one conditional batch: a larger one would delay the clients that wait for it."""
CAS_WRITE_UNKNOWN = 0x1700
"""Protocol code of a transaction with an unknown outcome. cassandra-driver 3.30 has no
exception for it. Source: Cassandra 5.0, `doc/native_protocol_v5.spec`, section 8.
"""

SCOPE_KEY = "fully_qualified_namespace, eventhub_name, consumer_group"
OF_SCOPE = "fully_qualified_namespace = ? AND eventhub_name = ? AND consumer_group = ?"
OF_ROW = f"{OF_SCOPE} AND partition_id = ?"
CHECKPOINT = ("partition_id", "offset", "sequence_number", "version")
"""Columns of `checkpoint_of`."""
NOW = "toTimestamp(now())"
"""The coordinator's clock, in milliseconds."""

TABLE_OF_VERSIONS = """CREATE TABLE IF NOT EXISTS {keyspace}.version (
    name text, version int, applied_time timestamp, writer text, PRIMARY KEY (name, version))"""
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE IF NOT EXISTS {keyspace}.ownership (
    fully_qualified_namespace text, eventhub_name text, consumer_group text, partition_id text,
    owner_id text, etag text, last_modified_time timestamp,
    PRIMARY KEY ((fully_qualified_namespace, eventhub_name, consumer_group), partition_id))""",
        """CREATE TABLE IF NOT EXISTS {keyspace}.checkpoint (
    fully_qualified_namespace text, eventhub_name text, consumer_group text, partition_id text,
    offset text, sequence_number bigint, version text, last_modified_time timestamp, writer text,
    PRIMARY KEY ((fully_qualified_namespace, eventhub_name, consumer_group), partition_id))""",
    ),
)
"""Statements from each version of the tables to the next. Append only; each statement can be
repeated, and leaves the tables usable for the previous release.
"""


class Statements:
    """Statements about one keyspace, with its validated name in front of every table."""

    def __init__(self, keyspace: str) -> None:
        ownership, checkpoint, version = (
            f'"{keyspace}".{table}' for table in ("ownership", "checkpoint", "version")
        )
        tables = ownership, checkpoint
        position = ", ".join(CHECKPOINT)
        new_position = (
            f"UPDATE {checkpoint} SET offset = ?, sequence_number = ?, version = ?, writer = ?, "
            f"last_modified_time = {NOW} WHERE {OF_ROW}"
        )
        self.list_ownerships = (
            f"SELECT partition_id, owner_id, etag, last_modified_time, {NOW} AS server_now "
            f"FROM {ownership} WHERE {OF_SCOPE}"
        )
        # Atomic: the row is created only if none exists.
        self.claim_new = (
            f"INSERT INTO {ownership} ({SCOPE_KEY}, partition_id, owner_id, etag, "
            f"last_modified_time) VALUES (?, ?, ?, ?, ?, ?, {NOW}) IF NOT EXISTS"
        )
        # Atomic: the row is updated only if it carries the etag that was seen.
        self.claim_over = (
            f"UPDATE {ownership} SET owner_id = ?, etag = ?, last_modified_time = {NOW} "
            f"WHERE {OF_ROW} IF etag = ?"
        )
        self.list_checkpoints = (
            f"SELECT {position}, last_modified_time, {NOW} AS server_now FROM {checkpoint} "
            f"WHERE {OF_SCOPE}"
        )
        self.read_checkpoint = f"SELECT {position} FROM {checkpoint} WHERE {OF_ROW}"
        # Atomic: the row is created only if none exists; an existing row is returned.
        self.create_checkpoint = (
            f"INSERT INTO {checkpoint} (offset, sequence_number, version, writer, {SCOPE_KEY}, "
            f"partition_id, last_modified_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, {NOW}) "
            "IF NOT EXISTS"
        )
        # Atomic: the row is updated only if it has the version that was seen.
        self.update_checkpoint = f"{new_position} IF version = ?"
        # Atomic: the row is updated in any version, but only if it exists.
        self.replace_checkpoint = f"{new_position} IF EXISTS"
        self.scopes = [f"SELECT DISTINCT {SCOPE_KEY} FROM {table}" for table in tables]
        self.partitions = [f"SELECT partition_id FROM {table} WHERE {OF_SCOPE}" for table in tables]
        # Atomic: the row is counted only if it existed.
        self.delete = [f"DELETE FROM {table} WHERE {OF_ROW} IF EXISTS" for table in tables]
        self.keyspace_exists = (
            f"SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'"
        )
        self.applied_versions = f"SELECT version FROM {version} WHERE name = 'tables'"
        self.note_version = (
            f"INSERT INTO {version} (name, version, applied_time, writer) "
            f"VALUES ('tables', ?, {NOW}, ?) IF NOT EXISTS"
        )


def checked_keyspace(name: Any) -> str:
    """Return a keyspace's name if it is valid without quotes, regardless of case.

    Raises:
        ConfigurationError: the name is invalid.
    """
    if not isinstance(name, str) or not KEYSPACE.fullmatch(name):
        raise ConfigurationError(
            f"namespace is {quoted(name)}; expected a keyspace: lower-case letters, digits and _, "
            "with a letter first, at most 48"
        )
    return name


def checked_replication(replication: Any, datacenter: str | None) -> dict[str, Any]:
    """Return the replication of a new keyspace, as Cassandra's map.

    Args:
        replication: the number of copies, or the whole map.
        datacenter: where the copies are kept; None: anywhere.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(replication, Mapping) and replication.get("class"):
        return dict(replication)
    if isinstance(replication, int) and not isinstance(replication, bool) and replication > 0:
        if datacenter is None:
            return {"class": "SimpleStrategy", "replication_factor": replication}
        return {"class": "NetworkTopologyStrategy", datacenter: replication}
    raise ConfigurationError(
        f"replication is {quoted(replication)}; expected how many copies, or a map such as "
        "{'class': 'NetworkTopologyStrategy', 'dc1': 3}"
    )


def keyspace_definition(keyspace: str, replication: Mapping[str, Any]) -> str:
    """Return the statement that creates a keyspace unless it exists."""
    pairs = ", ".join(f"{cql_text(name)}: {cql_text(value)}" for name, value in replication.items())
    return f'CREATE KEYSPACE IF NOT EXISTS "{keyspace}" WITH replication = {{{pairs}}}'


def definitions(keyspace: str, applied: int) -> list[str]:
    """Return the statements from a version of the tables to the newest; 0: no tables."""
    texts = [TABLE_OF_VERSIONS, *(text for texts in MIGRATIONS[applied:] for text in texts)]
    return [text.format(keyspace=f'"{keyspace}"') for text in texts]


def cql_text(value: object) -> str:
    """Return a value as a CQL string literal."""
    return "'" + str(value).replace("'", "''") + "'"


def scope_key(scope: Scope) -> tuple[str, str, str]:
    """Return the key columns of a scope's rows: its names in lower case."""
    folded = scope.folded
    return folded.fully_qualified_namespace, folded.eventhub_name, folded.consumer_group


Row = Mapping[str, Any]


def seconds(time: datetime | None) -> float:
    """Convert the driver's naive UTC time; a row without one counts as very old."""
    return time.replace(tzinfo=UTC).timestamp() if time else 0.0


def ownerships(scope: Scope, rows: Sequence[tuple[Any, ...]]) -> Listing[Ownership]:
    """Return the ownerships of a scope; skip rows that no claim could replace."""
    records: list[Ownership] = []
    skipped: list[str] = []
    for partition_id, owner_id, etag, modified, _ in rows:
        if etag and is_row(partition_id, {}):
            owner_id = owner_of({"ownerid": owner_id})
            records.append(Ownership(scope, partition_id, owner_id, etag, seconds(modified)))
        else:
            skipped.append(left_out(scope, "ownership", partition_id))
    return Listing(records, seconds(rows[0][-1]) if rows else None, skipped)


def checkpoints(scope: Scope, rows: Sequence[tuple[Any, ...]]) -> Listing[Checkpoint]:
    """Return the checkpoints of a scope; skip rows without a position."""
    records: list[Checkpoint] = []
    skipped: list[str] = []
    for partition_id, offset, number, version, modified, _ in rows:
        changed = modified and seconds(modified)
        record = checkpoint_of(scope, partition_id, offset, number, version, changed)
        if record.is_readable and is_row(record.partition_id, {}):
            records.append(record)
        else:
            skipped.append(left_out(scope, "checkpoint", record.partition_id))
    return Listing(records, seconds(rows[0][-1]) if rows else None, skipped)


def checkpoint_of(
    scope: Scope,
    partition_id: str,
    offset: str | None,
    sequence_number: int | None,
    version: str | None,
    last_modified_time: float | None = None,
) -> Checkpoint:
    """Return the checkpoint of a row, without a position if it has none."""
    return record_format.checkpoint_of_columns(
        scope, partition_id, offset, sequence_number, version or "", last_modified_time
    )


def left_out(scope: Scope, kind: str, partition_id: str) -> str:
    """Return the sentence about a row that could not be read."""
    return f"row {partition_id!r} of {scope} was left out: it is not a valid {kind}"


def settled(proposals: Sequence[Proposal], rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Return why a batch was not applied: the lost partitions, and those without a row.

    Args:
        proposals: the batch, each partition once.
        rows: the answer, which has every stored row that a condition was checked against.
    """
    stored = {row["partition_id"]: row["etag"] for row in rows if row.get("partition_id")}
    seen = {proposal.partition_id: proposal.etag for proposal in proposals}
    lost = {name for name, etag in stored.items() if etag is None or seen.get(name) != etag}
    vanished = {name for name, etag in seen.items() if etag and name not in stored}
    return lost, vanished
