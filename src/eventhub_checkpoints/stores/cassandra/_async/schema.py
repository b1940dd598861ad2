"""Creating a keyspace and its tables, by several processes at once if need be."""

from eventhub_checkpoints.stores.cassandra._async.requests import CassandraRequests
from eventhub_checkpoints.stores.cassandra.driver import InvalidRequest
from eventhub_checkpoints.stores.cassandra.errors import is_absent
from eventhub_checkpoints.stores.cassandra.protocol import MIGRATIONS, Statements, definitions


async def create_missing(
    requests: CassandraRequests, keyspace: str, keyspace_definition: str, writer: str
) -> None:
    """Bring the tables to the newest version; ask for no right where nothing is missing."""
    statements = Statements.of(keyspace)
    applied = await applied_version(requests, statements)
    if applied >= len(MIGRATIONS):
        return
    if not await requests.look(statements.keyspace_exists):
        await requests.define(keyspace_definition)
    # Another process may have created it just now, through another node.
    await requests.learn_replicas()
    for text in definitions(keyspace, applied):
        await requests.define(text)
    await requests.learn_replicas()
    for version in range(applied + 1, len(MIGRATIONS) + 1):
        await requests.write((statements.note_version, (version, writer)))


async def applied_version(requests: CassandraRequests, statements: Statements) -> int:
    """The version of the tables; 0 if there are none."""
    try:
        rows = await requests.look(statements.applied_versions)
    except InvalidRequest as error:
        if not is_absent(error):
            raise
        return 0
    return max((int(row["version"]) for row in rows), default=0)
