"""Connecting with cassandra-driver, and statements in its types."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from ssl import SSLContext
from threading import Thread
from typing import Any, Self, TypeVar

from cassandra import (
    ConsistencyLevel,
    DependencyException,
    DriverException,
    InvalidRequest,
    ProtocolVersion,
)
from cassandra.auth import PlainTextAuthProvider

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import (
    nearest_first,
    require,
    require_seconds,
    require_text,
)
from eventhub_checkpoints.errors import ConfigurationError, MissingDriverError
from eventhub_checkpoints.stores.cassandra.url import contact_point

try:
    from cassandra.cluster import (
        EXEC_PROFILE_DEFAULT,
        Cluster,
        ExecutionProfile,
        NoHostAvailable,
        ResponseFuture,
        ResultSet,
        Session,
    )
    from cassandra.policies import (
        DCAwareRoundRobinPolicy,
        ExponentialReconnectionPolicy,
        FallthroughRetryPolicy,
        TokenAwarePolicy,
    )
    from cassandra.pool import Host
    from cassandra.query import (
        BatchStatement,
        BatchType,
        PreparedStatement,
        SimpleStatement,
        Statement,
        tuple_factory,
    )
except DependencyException as error:
    raise MissingDriverError(
        "cassandra-driver finds no event loop in this Python: from 3.12 on it needs its libev "
        "extension, which its wheels have: python -m pip install --force-reinstall "
        "--only-binary :all: cassandra-driver"
    ) from error

__all__ = [
    "DriverException",
    "InvalidRequest",
    "PreparedStatement",
    "ResponseFuture",
    "ResultSet",
    "Session",
    "Statement",
]

T = TypeVar("T")
CONNECT_SECONDS = 5.0
RECONNECT_SECONDS = (0.2, 2.0)


@dataclass(frozen=True, slots=True)
class Login:
    """Connection parameters of the store's own cluster; the repr has no password.

    Attributes:
        contact_points: hosts and ports of some nodes.
        datacenter: the one whose nodes are used; None: that of the contact points.
    """

    contact_points: tuple[tuple[str, int], ...]
    username: str | None
    password: str | None
    datacenter: str | None
    ssl_context: SSLContext | None
    connect_timeout: float

    @classmethod
    def checked(
        cls,
        contact_points: Sequence[str | tuple[str, int]],
        port: int,
        username: str | None,
        password: str | None,
        datacenter: str | None,
        ssl_context: SSLContext | None,
        connect_timeout: float,
    ) -> Self:
        """Validate the arguments of a store's constructor.

        Raises:
            ConfigurationError: an argument is invalid.
        """
        if isinstance(contact_points, str):
            contact_points = contact_points.split(",")
        is_several = isinstance(contact_points, Sequence) and not isinstance(contact_points, bytes)
        require("contact_points", contact_points, is_several, "hosts, such as ['host:9042']")
        require_seconds("connect_timeout", connect_timeout)
        if datacenter is not None:
            require_text("datacenter", datacenter, "the name of a datacenter of the cluster")
        is_context = ssl_context is None or isinstance(ssl_context, SSLContext)
        require("ssl_context", ssl_context, is_context, "an SSLContext")
        if (username is None) != (password is None):
            raise ConfigurationError("username and password must be passed together")
        points = tuple(contact_point(each, port) for each in contact_points)
        return cls(points, username, password, datacenter, ssl_context, connect_timeout)

    def __repr__(self) -> str:
        return f"Login({self.contact_points})"

    @property
    def address(self) -> str:
        """Return the contact points, for messages."""
        hosts = [(f"[{host}]" if ":" in host else host, port) for host, port in self.contact_points]
        points = [f"{host}:{port}" for host, port in hosts]
        datacenter = f" (datacenter {quoted(self.datacenter)})" if self.datacenter else ""
        return f"Cassandra at {shortened(points)}{datacenter}"

    def connected(self, seconds: float) -> Session:
        """Connect to a new cluster and return its session; blocks.

        Args:
            seconds: the time that is left, which no unresponsive node may use up alone.

        Raises:
            ConfigurationError: the cluster has no such datacenter.
        """
        each = min(self.connect_timeout, max(seconds / len(self.contact_points), 0.1))
        cluster = self._cluster(each)
        try:
            return cluster.connect()
        except BaseException as error:
            cluster.shutdown()
            if isinstance(error, NoHostAvailable):
                self._check_datacenter(cluster, error)
            raise

    def _check_datacenter(self, cluster: Cluster, error: Exception) -> None:
        """Tell an unknown datacenter from unavailable nodes; the driver's error is the same."""
        known = {host.datacenter for host in cluster.metadata.all_hosts() if host.datacenter}
        if known and self.datacenter and self.datacenter not in known:
            names = ", ".join(nearest_first(self.datacenter, sorted(known)))
            raise ConfigurationError(
                f"{self.address}: the cluster does not have this datacenter; it has {names}"
            ) from error

    def _cluster(self, seconds: float) -> Cluster:
        profile = ExecutionProfile(
            TokenAwarePolicy(DCAwareRoundRobinPolicy(self.datacenter or "")),
            retry_policy=FallthroughRetryPolicy(),
            row_factory=tuple_factory,
        )
        cluster = Cluster(
            list(self.contact_points),
            auth_provider=PlainTextAuthProvider(self.username, self.password)
            if self.username is not None
            else None,
            ssl_context=self.ssl_context,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ExponentialReconnectionPolicy(*RECONNECT_SECONDS, None),
            connect_timeout=seconds,
            control_connection_timeout=seconds,
            # Reading the schema of a large cluster takes long; only one keyspace matters here.
            schema_metadata_enabled=False,
            application_name="eventhub-checkpoints",
        )
        # Negotiation starts here, downwards: the driver would first try two of DataStax Enterprise.
        cluster.protocol_version = ProtocolVersion.V5
        return cluster


def shortened(texts: Sequence[str], most: int = 3) -> str:
    """Return the first strings and the number of the others, for messages."""
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


def way_in(login: Login, session: Session | None) -> Login | Session:
    """Return how to reach the cluster: connection parameters, or the caller's session.

    Raises:
        ConfigurationError: neither was passed, or both.
    """
    if session is None:
        if not login.contact_points:
            raise ConfigurationError("pass contact_points, such as ['host:9042'], or a session")
        return login
    others = login.username, login.password, login.datacenter, login.ssl_context
    if login.contact_points or others != (None, None, None, None):
        raise ConfigurationError("pass either a session, or contact_points and their credentials")
    return session


def started(function: Callable[[], T], undo: Callable[[T], object] | None = None) -> Future[T]:
    """Run a blocking function in a daemon thread, which does not delay interpreter exit.

    Args:
        function: connects or prepares; the driver has no other way to do that.
        undo: called with the result if the future was cancelled in the meantime.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            if outcome.set_running_or_notify_cancel():
                outcome.set_exception(error)
            return
        if outcome.set_running_or_notify_cancel():
            outcome.set_result(result)
        elif undo is not None:
            undo(result)

    Thread(target=run, name="eventhub-checkpoints-cassandra", daemon=True).start()
    return outcome


def first_host(session: Session) -> Host | None:
    """Return the node for schema changes; every client that can reach it chooses the same.

    Two nodes that create one table at the same moment could give it two ids, and rows would be
    lost.
    """
    hosts = [host for host in session.get_pool_state() if host.is_up]
    return min(hosts, key=lambda host: str(host.host_id), default=None)


def shut_down(session: Session) -> None:
    """Close a session of the store and its cluster; blocks."""
    session.cluster.shutdown()


Row = dict[str, Any]
NO_RETRIES = FallthroughRetryPolicy()


def read_of(prepared: PreparedStatement, values: Sequence[object]) -> Statement:
    """Return a read of one scope that sees every transaction that may have been carried out."""
    bound = prepared.bind(values)
    bound.consistency_level = ConsistencyLevel.LOCAL_SERIAL
    bound.fetch_size = None  # one page is one moment; a scope has a few thousand rows at most
    return retried_by_base(bound, is_idempotent=True)


def scan_of(prepared: PreparedStatement) -> Statement:
    """Return a paged read of the keys of all scopes; the server cannot do that serially."""
    bound = prepared.bind(())
    bound.consistency_level = ConsistencyLevel.LOCAL_QUORUM
    return retried_by_base(bound, is_idempotent=True)


def look_of(text: str) -> Statement:
    """Return a one-off query of the system tables that describe the keyspace."""
    statement = SimpleStatement(text, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
    return retried_by_base(statement, is_idempotent=True)


def write_of(statements: Iterable[tuple[PreparedStatement, Sequence[object]]]) -> Statement:
    """Return conditional statements about rows of one scope: all are carried out, or none."""
    bound = [prepared.bind(values) for prepared, values in statements]
    whole: Statement = bound[0] if len(bound) == 1 else BatchStatement(BatchType.UNLOGGED)
    for statement in bound if len(bound) > 1 else ():
        whole.add(statement)
    whole.consistency_level = ConsistencyLevel.LOCAL_QUORUM
    whole.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL
    return retried_by_base(whole, is_idempotent=False)


def retried_by_base(statement: Statement, is_idempotent: bool) -> Statement:
    """Return the statement without the driver's retries: they would conflict with the first try."""
    statement.retry_policy = NO_RETRIES
    statement.is_idempotent = is_idempotent
    return statement


def tuples_of(answer: ResultSet) -> list[tuple[Any, ...]]:
    """Return the rows of one page as tuples, for each row factory of the driver.

    Raises:
        ConfigurationError: the session has a custom row factory.
    """
    names, rows = answer.column_names or (), answer.current_rows
    tuples: list[tuple[Any, ...]] = []
    for row in () if rows is None else rows:
        if isinstance(row, tuple):
            tuples.append(row)
        elif isinstance(row, Mapping):
            tuples.append(tuple(row[name] for name in names))
        else:
            raise ConfigurationError(
                "the session's row_factory makes neither tuples nor dicts; give the store a "
                "session with one of the driver's own"
            )
    return tuples


def rows_of(answer: ResultSet) -> list[Row]:
    """Return the rows of one page as dicts."""
    names = answer.column_names or ()
    return [dict(zip(names, row, strict=True)) for row in tuples_of(answer)]
