# Derived from _async/requests.py by tools/unasync.py; edit that file.
"""Requests to Cassandra: creating the tables, and prepared statements with a time limit."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError, StoreError
from eventhub_checkpoints.stores.cassandra._sync.transport import answered, apart
from eventhub_checkpoints.stores.cassandra.driver import (
    DriverException,
    InvalidRequest,
    Login,
    PreparedStatement,
    ResultSet,
    Row,
    Session,
    Statement,
    first_host,
    look_of,
    read_of,
    rows_of,
    scan_of,
    shut_down,
    write_of,
)
from eventhub_checkpoints.stores.cassandra.errors import is_absent, mapped
from eventhub_checkpoints.stores.cassandra.protocol import MIGRATIONS, Statements, definitions


class CassandraRequests:
    """Requests about one keyspace, through a cluster of the store or the caller's session.

    Args:
        login: how to connect, or the caller's session, which is never closed.
        keyspace: the keyspace whose replicas are contacted first.
        probe: a statement that fails if the keyspace or its tables do not exist.

    Attributes:
        where: cluster and keyspace, for messages.
    """

    def __init__(self, login: Login | Session, keyspace: str, probe: str) -> None:
        self._login = login
        self._keyspace = keyspace
        reached = login.address if isinstance(login, Login) else "Cassandra by a ready session"
        self.where = f"{reached}, keyspace {keyspace!r}"
        self._probe = probe
        self._inherited: list[Session] = []
        self._session: Session | None = None
        self._process_id = os.getpid()
        self._statements: dict[str, PreparedStatement] = {}

    def drop(self) -> None:
        """Abandon the parent process's connections without closing them.

        The driver runs in its own thread, so another event loop needs no new connections.
        """
        if self._process_id == os.getpid():
            return
        if self._session is not None:
            # Dropping the last reference could close connections that the parent still uses.
            self._inherited.append(self._session)
        self._session = None
        self._statements.clear()
        if isinstance(self._login, Login):
            self._process_id = os.getpid()

    def connect(self) -> None:
        """Connect, unless connected."""
        if self._session is not None:
            return
        if isinstance(self._login, Login):
            self._session = apart(partial(self._login.connected, bound()), shut_down)
            self.learn_replicas()
        elif self._process_id != os.getpid():
            raise ConfigurationError(
                "the session belongs to the process that this one was forked from; make a new one"
            )
        else:
            self._session = self._login

    def close(self) -> None:
        """Close the cluster, unless it belongs to the caller or to the parent process."""
        session, self._session = self._session, None
        self._statements.clear()
        is_own = isinstance(self._login, Login) and self._process_id == os.getpid()
        if session is not None and is_own:
            apart(partial(shut_down, session))

    def learn_replicas(self) -> None:
        """Wait until all nodes agree on the schema, and learn which of them hold the rows.

        Without that, requests go to any node, which forwards them.
        """
        refresh = self._open_session.cluster.refresh_keyspace_metadata
        with suppress(DriverException):
            apart(partial(refresh, self._keyspace, bound()))

    def read(self, text: str, values: Sequence[object]) -> list[Row]:
        """Return the rows of one scope, as of one moment."""
        return rows_of(self._ask(read_of(self._prepared(text), values)))

    def scan(self, text: str) -> list[Row]:
        """Return the rows of the whole table, page by page."""
        statement, rows = scan_of(self._prepared(text)), []
        page = self._ask(statement)
        while True:
            rows.extend(rows_of(page))
            if not page.paging_state:
                return rows
            page = self._ask(statement, page.paging_state)

    def write(self, *statements: tuple[str, Sequence[object]]) -> list[Row]:
        """Execute all of these conditional statements or none; return the server's answer."""
        found = [(self._prepared(text), values) for text, values in statements]
        return rows_of(self._ask(write_of(found)))

    def look(self, text: str) -> list[Row]:
        """Query the system tables that describe the keyspace."""
        return rows_of(self._ask(look_of(text)))

    def define(self, text: str) -> None:
        """Change the schema."""
        session = self._open_session
        answered(session.execute_async(text, timeout=bound(), host=first_host(session)))

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """Convert a driver's error to an error of this package."""
        if is_absent(error):
            # Tables that are created again have other ids.
            self._statements.clear()
        return mapped(error, self.where)

    @property
    def _open_session(self) -> Session:
        if self._session is None:
            raise StoreError(f"{self.where}: the store was closed")
        return self._session

    def _prepared(self, text: str) -> PreparedStatement:
        statement = self._statements.get(text)
        if statement is None:
            # The driver logs a traceback if preparing fails, but not for an unprepared query.
            self.look(self._probe)
            statement = apart(partial(self._open_session.prepare, text))
            self._statements[text] = statement
        return statement

    def _ask(self, statement: Statement, page: bytes | None = None) -> ResultSet:
        session = self._open_session
        request = session.execute_async(statement, timeout=bound(), paging_state=page)
        return answered(request)


def create_missing(
    requests: CassandraRequests, keyspace: str, keyspace_definition: str, writer: str
) -> None:
    """Migrate the tables to the newest version; need no permission if nothing is missing."""
    statements = Statements.of(keyspace)
    applied = applied_version(requests, statements)
    if applied >= len(MIGRATIONS):
        return
    if not requests.look(statements.keyspace_exists):
        requests.define(keyspace_definition)
    # Another process may just have created it, through another node.
    requests.learn_replicas()
    for text in definitions(keyspace, applied):
        requests.define(text)
    requests.learn_replicas()
    for version in range(applied + 1, len(MIGRATIONS) + 1):
        requests.write((statements.note_version, (version, writer)))


def applied_version(requests: CassandraRequests, statements: Statements) -> int:
    """Return the version of the tables; 0 if there are none."""
    try:
        rows = requests.look(statements.applied_versions)
    except InvalidRequest as error:
        if not is_absent(error):
            raise
        return 0
    return max((int(row["version"]) for row in rows), default=0)
