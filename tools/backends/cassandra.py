"""Cassandra: a running one, a container, or a child process with the jars of Maven Central.

The first of these that is available is used:

1. the server that `CASSANDRA_URL` names, `cassandra://[user:password@]host[:port]`;
2. a container, if a Docker engine answers and the package testcontainers is installed;
3. Java 17 with the jars of `cassandra-all`, which `install` downloads once into the cache folder.
"""

import os
import shutil
import uuid
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.policies import (
    ConstantReconnectionPolicy,
    LoadBalancingPolicy,
    RoundRobinPolicy,
)
from cassandra.query import dict_factory

from backends.base import Fields, Kind, OwnServer, Place, ServerMissingError, installed
from backends.cassandra_node import (
    DURABLE,
    HASTY,
    JARS,
    UNSAFE,
    WAYS,
    WITH_ROLES,
    YAML,
    command,
    configure,
    speaks,
)
from container import Container, containers_run
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.cassandra.url import Address
from eventhub_checkpoints.stores.record_format import decimal_int64
from maven import JarsMissingError
from ports import free_port

IMAGE = "cassandra:5.0"


class Cassandra(OwnServer):
    """Server with one node.

    Args:
        own: start a child process in any case, which can be killed and paused.
        durable: whether confirmed writes are on disk, so that it can be killed.
        roles: whether it requires a name and a password; it starts with `cassandra` for both.

    Attributes:
        port: port of the child process.
    """

    name: ClassVar[str] = "cassandra"
    lacks: ClassVar[tuple[str, ...]] = ("shift_clock",)
    variable: ClassVar[str] = "CASSANDRA_URL"
    host = "127.0.0.1"
    start_seconds = 120

    def __init__(self, *, own: bool = False, durable: bool = False, roles: bool = False) -> None:
        self._given = "" if own or roles else os.environ.get(self.variable, "")
        self._is_shared = not (own or roles)
        self._container: Container | None = None
        self._durable = durable
        self._roles = roles
        self.port = 0

    def install(self) -> str:
        if self._given:
            return "the running one that CASSANDRA_URL names"
        if self._is_shared and containers_run():
            return installed(self._in_container())
        java = shutil.which("java")
        if java is None:
            raise ServerMissingError(WAYS)
        try:
            JARS.install()
        except JarsMissingError as missing:
            raise ServerMissingError(f"{WAYS}; {missing}") from missing
        return f"the jars in {JARS.home}, run by {java}"

    @staticmethod
    def _in_container() -> Container:
        heap = {"MAX_HEAP_SIZE": "512M", "HEAP_NEWSIZE": "128M"}
        return Container(IMAGE, 9042, environment=heap)

    def start(self) -> Self:
        if not self._given and self._is_shared and containers_run():
            self._container = self._in_container()
            reached = self._container.start(speaks, self.start_seconds)
            self._given = f"cassandra://{reached}/any"
        if self._given:
            self.session.execute("SELECT key FROM system.local")
            return self
        if shutil.which("java") is None or not JARS.home.exists():
            raise ServerMissingError(WAYS)
        return super().start()

    def launch(self) -> Child:
        if not self.port:
            self.port = free_port()
            configure(self.folder, self.configuration())
        words = command(self.folder, "" if self._durable else UNSAFE)
        child = Child(words, log=self.folder / "log", name="Cassandra")
        try:
            child.wait_ready(self._answers, self.start_seconds)
            if self._roles:
                child.wait_ready(self._lets_in, self.start_seconds)
        except BaseException:
            child.kill()
            raise
        return child

    def configuration(self) -> str:
        """Return the text of the node's `cassandra.yaml`."""
        commits = DURABLE if self._durable else HASTY
        storage = free_port()
        text = YAML.format(
            host=self.host, seed=self.host, native=self.port, storage=storage, commits=commits
        )
        return text + (WITH_ROLES if self._roles else "")

    def _answers(self) -> bool:
        return speaks(f"{self.host}:{self.port}")

    def _lets_in(self) -> bool:
        """Return whether the first role exists; the node creates it after it starts to answer."""
        try:
            return self.session is not None
        except NoHostAvailable:
            return False

    def stop(self) -> None:
        if "session" in vars(self):
            self.session.cluster.shutdown()
            del self.session
        if self._container is not None:
            self._container.stop()
            self._container, self._given = None, ""
        # Nothing in its folder is needed any more, and a kill takes 0.5 instead of 3 seconds.
        self.kill()
        super().stop()

    @property
    def url(self) -> str:
        """Address of the server, up to the keyspace."""
        if self._given:
            scheme, _, rest = self._given.partition("://")
            return f"{scheme}://{rest.partition('/')[0]}"
        user = "cassandra:cassandra@" if self._roles else ""
        return f"cassandra://{user}{self.host}:{self.port}"

    @cached_property
    def session(self) -> Session:
        """Administrator's session, independent of stores; it reconnects after a restart."""
        return connected(f"{self.url}/any")

    def place(self) -> "Keyspace":
        return Keyspace(self)


def connected(url: str, policy: LoadBalancingPolicy | None = None, **options: Any) -> Session:
    """Return an administrator's session; `options` are those of its execution profile."""
    address = Address.parse(url)
    profile = ExecutionProfile(
        policy or RoundRobinPolicy(), row_factory=dict_factory, request_timeout=60, **options
    )
    cluster = Cluster(
        address.contact_points,
        auth_provider=PlainTextAuthProvider(address.username, address.password)
        if address.username
        else None,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.2, None),
        connect_timeout=20,
        control_connection_timeout=20,
        schema_event_refresh_window=-1,
    )
    return cluster.connect()


class Server(Protocol):
    """What has keyspaces: a node or a cluster."""

    @property
    def url(self) -> str:
        """Address, up to the keyspace."""

    @property
    def session(self) -> Session:
        """Administrator's session."""


class Keyspace(Place):
    """Keyspace for a single test."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.keyspace = f"test_{uuid.uuid4().hex}"
        self.url = f"{server.url}/{self.keyspace}"

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        names = scope.folded.as_dict()
        key = [*names.values(), partition_id]
        where = " AND ".join(f"{name} = %s" for name in [*names, "partition_id"])
        # Conditional, as the stores write: a plain write could get an older timestamp than theirs.
        self._execute(f"DELETE FROM {{}}.{kind} WHERE {where} IF EXISTS", key)
        if fields is not None:
            columns = self._columns(kind, fields)
            listed = ", ".join([*names, "partition_id", *columns])
            marks = ", ".join(["%s"] * (len(key) + len(columns)))
            self._execute(
                f"INSERT INTO {{}}.{kind} ({listed}, last_modified_time) "
                f"VALUES ({marks}, toTimestamp(now())) IF NOT EXISTS",
                [*key, *columns.values()],
            )

    @staticmethod
    def _columns(kind: Kind, fields: Fields) -> dict[str, Any]:
        """Return the columns for a foreign writer's fields, without fields that have no column."""
        given = {name.lower().replace("_", ""): value for name, value in fields.items()}
        if kind == "ownership":
            etag = None if "hdiisfolder" in given else uuid.uuid4().hex
            return {"owner_id": given.get("ownerid"), "etag": etag}
        return {
            "offset": given.get("offset"),
            "sequence_number": decimal_int64(given.get("sequencenumber") or ""),
            "version": uuid.uuid4().hex,
            "writer": "a stranger",
        }

    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        found = self._execute(f"SELECT * FROM {{}}.{kind}", [])
        if kind == "ownership":
            return {row["partition_id"]: {"ownerid": row["owner_id"]} for row in found}
        return {
            row["partition_id"]: {
                "offset": row["offset"],
                "sequencenumber": str(row["sequence_number"]),
            }
            for row in found
        }

    def vanish(self) -> None:
        self._execute("DROP KEYSPACE {}", [])

    def drop(self) -> None:
        self._execute("DROP KEYSPACE IF EXISTS {}", [])

    def _execute(self, statement: str, values: list[Any]) -> list[dict[str, Any]]:
        return list(self._server.session.execute(statement.format(self.keyspace), values))
