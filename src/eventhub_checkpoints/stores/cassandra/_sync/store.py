# Derived from _async/store.py by tools/unasync.py; edit that file.
"""Checkpoint store in Cassandra, written by lightweight transactions only.

`CassandraRequests` connects and sends prepared statements with a time limit, and
`CassandraCheckpointStore` is the store.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from ssl import SSLContext
from typing import Any, Self, Unpack, cast

from eventhub_checkpoints._shared._sync.compat import for_each
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints._shared.settings import StoreSettings, require_flag
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._sync.base import FullCheckpointStore
from eventhub_checkpoints.stores._sync.hooks import Answer
from eventhub_checkpoints.stores.cassandra import driver, protocol
from eventhub_checkpoints.stores.cassandra._sync.transport import answered, apart
from eventhub_checkpoints.stores.cassandra.driver import Login, Session
from eventhub_checkpoints.stores.cassandra.errors import is_absent, mapped
from eventhub_checkpoints.stores.cassandra.protocol import APPLIED, BATCH_LIMIT, scope_key
from eventhub_checkpoints.stores.cassandra.url import PORT, Address
from eventhub_checkpoints.stores.claim_batches import in_batches
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)


class CassandraRequests:
    """Requests to one keyspace, through the store's own session or the caller's.

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
        self._statements: dict[str, driver.PreparedStatement] = {}

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
        """Connect, unless there is a connection already."""
        if self._session is not None:
            return
        if isinstance(self._login, Login):
            self._session = apart(partial(self._login.connected, bound()), driver.shut_down)
            self.learn_replicas()
        elif self._process_id != os.getpid():
            raise ConfigurationError(
                "this process was forked from the one that opened the session; open a session in "
                "this one"
            )
        else:
            self._session = self._login

    def close(self) -> None:
        """Close the cluster, unless it belongs to the caller or to the parent process."""
        session, self._session = self._session, None
        self._statements.clear()
        is_own = isinstance(self._login, Login) and self._process_id == os.getpid()
        if session is not None and is_own:
            apart(partial(driver.shut_down, session))

    def learn_replicas(self) -> None:
        """Wait until all nodes agree on the schema, and learn which of them hold the rows.

        Without that, requests go to any node, which forwards them.
        """
        refresh = self._open_session.cluster.refresh_keyspace_metadata
        with suppress(driver.DriverException):
            apart(partial(refresh, self._keyspace, bound()))

    def read(self, text: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return the rows of one scope as they all were at the same moment."""
        statement = driver.read_of(self._prepared(text), values)
        return driver.tuples_of(self._send(statement))

    def scan(self, text: str) -> list[driver.Row]:
        """Return the rows of the whole table, page by page."""
        statement, rows = driver.scan_of(self._prepared(text)), []
        page = self._send(statement)
        while True:
            rows.extend(driver.rows_of(page))
            if not page.paging_state:
                return rows
            page = self._send(statement, page.paging_state)

    def write(self, *statements: tuple[str, Sequence[object]]) -> list[driver.Row]:
        """Execute all of these conditional statements or none; return the server's answer."""
        prepared = [(self._prepared(text), values) for text, values in statements]
        return driver.rows_of(self._send(driver.write_of(prepared)))

    def look(self, text: str) -> list[driver.Row]:
        """Query the system tables that describe the keyspace."""
        return driver.rows_of(self._send(driver.look_of(text)))

    def define(self, text: str) -> None:
        """Change the schema."""
        session = self._open_session
        answered(session.execute_async(text, timeout=bound(), host=driver.first_host(session)))

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """Convert a driver's error to an error of this package."""
        if is_absent(error):
            # Tables that are created again have new ids, so the statements must be prepared again.
            self._statements.clear()
        return mapped(error, self.where)

    @property
    def _open_session(self) -> Session:
        if self._session is None:
            raise StoreError(f"{self.where}: the store is closed; create another one")
        return self._session

    def _prepared(self, text: str) -> driver.PreparedStatement:
        statement = self._statements.get(text)
        if statement is None:
            # If the tables are missing, preparing would fail too, but the driver would log a
            # traceback; for an unprepared query it does not.
            self.look(self._probe)
            statement = apart(partial(self._open_session.prepare, text))
            self._statements[text] = statement
        return statement

    def _send(self, statement: driver.Statement, page: bytes | None = None) -> driver.ResultSet:
        session = self._open_session
        request = session.execute_async(statement, timeout=bound(), paging_state=page)
        return answered(request)


def create_missing(
    requests: CassandraRequests, keyspace: str, keyspace_definition: str, writer: str
) -> None:
    """Migrate the tables to the newest version; if they have it, no permission is needed."""
    statements = protocol.Statements(keyspace)
    applied = applied_version(requests, statements)
    if applied >= len(protocol.MIGRATIONS):
        return
    if not requests.look(statements.keyspace_exists):
        requests.define(keyspace_definition)
    # Another process may just have created the keyspace, through another node.
    requests.learn_replicas()
    for text in protocol.definitions(keyspace, applied):
        requests.define(text)
    requests.learn_replicas()
    for version in range(applied + 1, len(protocol.MIGRATIONS) + 1):
        requests.write((statements.note_version, (version, writer)))


def applied_version(requests: CassandraRequests, statements: protocol.Statements) -> int:
    """Return the version of the tables; 0 if there are none."""
    try:
        rows = requests.look(statements.applied_versions)
    except driver.InvalidRequest as error:
        if not is_absent(error):
            raise
        return 0
    return max((int(row["version"]) for row in rows), default=0)


class CassandraCheckpointStore(FullCheckpointStore):
    """Stores ownerships and checkpoints in two tables of one keyspace.

    All clients of a consumer group must use the same datacenter, because claims are serialised
    only among the nodes of one.

    Args:
        contact_points: some nodes, each as `host`, `host:port` or a pair of host and port.
        port: port of the contact points that do not name one.
        namespace: the keyspace.
        username: with `password`, for a cluster that requires authentication.
        datacenter: the one whose nodes are used; by default that of the contact points.
        session: a ready session instead of all of the above. It is not closed, its keyspace is
            not changed, and it must not be used in a forked process.
        create_keyspace: create the keyspace and its tables before the first use, if missing.
        replication: of a keyspace that is created here: the number of copies, or Cassandra's
            complete `replication` map.
        ssl_context: for a cluster that uses TLS.
        connect_timeout: seconds that one node may take to accept a connection.
        **settings: see `StoreSettings`.

    Raises:
        ConfigurationError: a setting or the keyspace's name is invalid.
    """

    @with_checked_arguments
    def __init__(
        self,
        contact_points: Sequence[str | tuple[str, int]] = (),
        *,
        port: int = PORT,
        namespace: str = protocol.DEFAULT_KEYSPACE,
        username: str | None = None,
        password: str | None = None,
        datacenter: str | None = None,
        session: Session | None = None,
        create_keyspace: bool = False,
        replication: int | Mapping[str, Any] = 1,
        ssl_context: SSLContext | None = None,
        connect_timeout: float = driver.CONNECT_SECONDS,
        **settings: Unpack[StoreSettings],
    ) -> None:
        super().__init__(**settings)
        require_flag("create_keyspace", create_keyspace)
        self.creates = create_keyspace
        self._keyspace = protocol.checked_keyspace(namespace)
        login = Login.checked(
            contact_points, port, username, password, datacenter, ssl_context, connect_timeout
        )
        self._replication = protocol.checked_replication(replication, datacenter)
        self._statements = protocol.Statements(self._keyspace)
        self._requests = CassandraRequests(
            driver.way_in(login, session), self._keyspace, self._statements.applied_versions
        )

    @classmethod
    def from_url(
        cls, url: str, *, credential: tuple[str, str] | None = None, **settings: Any
    ) -> Self:
        """Open `cassandra://[user:password@]host[:port][,host..]/keyspace[?datacenter=NAME]`.

        Args:
            url: of the keyspace; if it names none, `namespace` or its default is used.
            credential: user and password, instead of those in the URL.
            **settings: all other arguments of the constructor.
        """
        address = Address.parse(url)
        return cls(address.contact_points, **address.settings(credential, settings))

    def __repr__(self) -> str:
        return f"CassandraCheckpointStore({self._requests.where})"

    def open(self) -> None:
        self._requests.connect()
        if self.creates:
            definition = protocol.keyspace_definition(self._keyspace, self._replication)
            create_missing(self._requests, self._keyspace, definition, self.writer)

    def close(self) -> None:
        super().close()
        self._requests.close()

    def drop_connections(self) -> None:
        self._requests.drop()

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return self._requests.map_error(error)

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        rows = self._requests.read(self._statements.list_ownerships, scope_key(scope))
        return protocol.ownerships(scope, rows)

    def try_claim(self, proposal: Proposal) -> Won | Lost:
        answers: dict[Proposal, Answer] = {}
        self._claim_batch([proposal], answers)
        return cast("Won | Lost", answers[proposal])

    def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Answer]:
        # One transaction for all: separate ones would contend with each other, because the rows
        # of a scope are one partition of the table, which is what a transaction locks.
        answers: dict[Proposal, Answer] = {}
        scopes = in_batches(proposals, BATCH_LIMIT, lambda each: self.identity(each.scope))
        claim = partial(self._claim_scope, answers)
        for_each(claim, scopes, self.settings.max_concurrency)
        return [answers[proposal] for proposal in proposals]

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        rows = self._requests.read(self._statements.list_checkpoints, scope_key(scope))
        return protocol.checkpoints(scope, rows)

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        scope, known = checkpoint.scope, self._statements
        key = (*scope_key(scope), checkpoint.partition_id)
        row = (checkpoint.offset, checkpoint.sequence_number, checkpoint.version, self.writer)
        if isinstance(seen, str):
            # A row that another program stored without a version is listed with version "".
            values = (*row, *key, seen or None)
            if self._is_applied(known.update_checkpoint, values):
                return Written(checkpoint.version)
            rows = self._requests.read(known.read_checkpoint, key)
            return Conflict(protocol.checkpoint_of(scope, *rows[0]) if rows else None)
        if seen is FORCE and self._is_applied(known.replace_checkpoint, (*row, *key)):
            return Written(checkpoint.version)
        [answer] = self._requests.write((known.create_checkpoint, (*row, *key)))
        if answer[APPLIED]:
            return Written(checkpoint.version)
        stored = (answer[name] for name in protocol.CHECKPOINT)
        return Conflict(protocol.checkpoint_of(scope, *stored))

    def read_scopes(self) -> Sequence[Scope]:
        scopes: set[Scope] = set()
        for text in self._statements.scopes:
            rows = self._requests.scan(text)
            scopes |= {Scope._make(row[name] for name in Scope._fields) for row in rows}
        return list(scopes)

    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        removed = 0
        for table in range(len(self._statements.delete)):
            removed += self._delete_from(table, scope, partition_id)
        return removed

    def _is_applied(self, text: str, values: Sequence[object]) -> bool:
        rows = self._requests.write((text, values))
        return bool(rows[0][APPLIED])

    def _claim_scope(
        self, answers: dict[Proposal, Answer], batches: Sequence[Sequence[Proposal]]
    ) -> None:
        for batch in batches:
            try:
                self._engine.runner.call(self._claim_batch, batch, answers)
            except CheckpointStoreError as error:
                answers.update({each: error for each in batch if each not in answers})

    def _claim_batch(self, batch: Sequence[Proposal], answers: dict[Proposal, Answer]) -> None:
        """Claim what can be won in one transaction; each refused one shows what is lost."""
        proposed = {proposal.partition_id: proposal for proposal in batch}
        remaining = dict(proposed)
        while remaining:
            began = time.time()
            rows = self._requests.write(*map(self._claim, remaining.values()))
            if rows[0][APPLIED]:
                for name in remaining:
                    won = Won(proposed[name].won(0.0))
                    answers[proposed[name]] = self._engine.ownerships.remember(
                        proposed[name], won, began
                    )
                return
            lost, vanished = protocol.settled(list(remaining.values()), rows)
            if not lost and not vanished:
                raise StoreUnavailableError("a batch of claims was refused without a reason")
            answers.update({proposed[name]: Lost() for name in lost})
            remaining = {
                name: replace(each, etag=None) if name in vanished else each
                for name, each in remaining.items()
                if name not in lost
            }

    def _claim(self, proposal: Proposal) -> tuple[str, tuple[object, ...]]:
        key = (*scope_key(proposal.scope), proposal.partition_id)
        row = proposal.owner_id, proposal.new_etag
        if proposal.etag is None:
            return self._statements.claim_new, (*key, *row)
        return self._statements.claim_over, (*row, *key, proposal.etag)

    def _delete_from(self, table: int, scope: Scope, partition_id: str | None) -> int:
        removed, names = 0, self._partitions(table, scope)
        if partition_id is not None:
            names &= {partition_id}
        while names:
            batch = sorted(names)[:BATCH_LIMIT]
            delete, key = self._statements.delete[table], scope_key(scope)
            rows = self._requests.write(*((delete, (*key, name)) for name in batch))
            if rows[0][APPLIED]:
                removed += len(batch)
                names -= set(batch)
            else:  # a row has been deleted in the meantime
                names &= self._partitions(table, scope)
        return removed

    def _partitions(self, table: int, scope: Scope) -> set[str]:
        rows = self._requests.read(self._statements.partitions[table], scope_key(scope))
        return {name for (name,) in rows}
