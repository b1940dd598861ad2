"""Reader for checkpoints that iothub-react stored in Cassandra."""

from typing import Any

from eventhub_checkpoints._shared.settings import require, require_text
from eventhub_checkpoints.errors import StoreNotReadyError
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.cassandra.driver import Session, look_of, rows_of
from eventhub_checkpoints.stores.cassandra.errors import is_absent, mapped
from eventhub_checkpoints.stores.legacy.iothub_react import (
    TABLE,
    StoredOffset,
    checkpoints_of,
    keyspace_of,
)

READ_SECONDS = 30.0


def read_iothub_react_table(session: Session, keyspace: str, scope: Scope) -> list[Checkpoint]:
    """Read what iothub-react saved in a keyspace; nothing is written.

    A row that holds no offset is logged and left out. A partition for which iothub-react recorded
    that nothing was saved has no checkpoint.

    Args:
        session: of cassandra-driver, with rows as tuples or dicts; it is left open.
        keyspace: its name, or the `namespace` of iothub-react's configuration, in which characters
            other than ASCII letters, digits and `_` became `_`.
        scope: the hub and consumer group that were read; the rows do not name them.

    Returns:
        Checkpoints in the order of the partitions, with `offset`, and `sequence_number` None.

    Raises:
        StoreUnavailableError: no answer within 30 s.
        StoreAccessError: the role has no permission to read the table.
        StoreNotReadyError: the keyspace or the table does not exist.
    """
    require("session", session, hasattr(session, "execute"), "a Session of cassandra-driver")
    require_text("keyspace", keyspace, "the name of a keyspace")
    name = keyspace_of(keyspace)
    rows = [
        StoredOffset(
            f"partition {row['partition']} in keyspace {name}", str(row["partition"]), row["offset"]
        )
        for row in _selected(session, name)
    ]
    return checkpoints_of(rows, scope, log.warning)


def _selected(session: Session, keyspace: str) -> list[dict[str, Any]]:
    statement = look_of(f"SELECT partition, offset FROM {keyspace}.{TABLE}")
    try:
        return rows_of(session.execute(statement, timeout=READ_SECONDS))
    except Exception as error:
        if is_absent(error):
            text = f"keyspace {keyspace!r} has no table {TABLE!r} of iothub-react ({error})"
            raise StoreNotReadyError(text) from error
        raise mapped(error, f"keyspace {keyspace!r}") from error
