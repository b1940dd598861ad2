"""Statements as the driver takes them, and its answers as rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import ResultSet
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import (
    BatchStatement,
    BatchType,
    PreparedStatement,
    SimpleStatement,
    Statement,
)

from eventhub_checkpoints.errors import ConfigurationError

Row = dict[str, Any]
NO_RETRIES = FallthroughRetryPolicy()


def read_of(prepared: PreparedStatement, values: Sequence[object]) -> Statement:
    """A read of one scope, which sees every transaction that may have been carried out."""
    bound = prepared.bind(values)
    bound.consistency_level = ConsistencyLevel.LOCAL_SERIAL
    bound.fetch_size = None  # one page is one moment; a scope has some thousand rows at most
    return retried_by_base(bound, is_idempotent=True)


def scan_of(prepared: PreparedStatement) -> Statement:
    """A read of the keys of all scopes, page by page; the server does not do that serially."""
    bound = prepared.bind(())
    bound.consistency_level = ConsistencyLevel.LOCAL_QUORUM
    return retried_by_base(bound, is_idempotent=True)


def look_of(text: str) -> Statement:
    """A read of what describes the keyspace, which is made once."""
    statement = SimpleStatement(text, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
    return retried_by_base(statement, is_idempotent=True)


def write_of(statements: Iterable[tuple[PreparedStatement, Sequence[object]]]) -> Statement:
    """Conditional statements about rows of one scope: all are carried out, or none is."""
    bound = [prepared.bind(values) for prepared, values in statements]
    whole: Statement = bound[0] if len(bound) == 1 else BatchStatement(BatchType.UNLOGGED)
    for one in bound if len(bound) > 1 else ():
        whole.add(one)
    whole.consistency_level = ConsistencyLevel.LOCAL_QUORUM
    whole.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL
    return retried_by_base(whole, is_idempotent=False)


def retried_by_base(statement: Statement, is_idempotent: bool) -> Statement:
    """The statement, without the driver's own retries: it would meet its own first attempt."""
    statement.retry_policy = NO_RETRIES
    statement.is_idempotent = is_idempotent
    return statement


def rows_of(answer: ResultSet) -> list[Row]:
    """The rows of one page as dicts, whichever of its row factories the session has.

    Raises:
        ConfigurationError: it has one of a caller's own.
    """
    names, rows = answer.column_names or (), answer.current_rows
    rows = [] if rows is None else list(rows)
    if not all(isinstance(row, Mapping | tuple) for row in rows):
        raise ConfigurationError(
            "the session's row_factory makes neither tuples nor dicts; give the store a session "
            "with one of the driver's own"
        )
    return [
        dict(row) if isinstance(row, Mapping) else dict(zip(names, row, strict=True))
        for row in rows
    ]
