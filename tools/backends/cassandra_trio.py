"""Cassandra: three nodes with three copies of every row, as child processes; one at a time dies.

There is no primary: two of the three nodes decide. `fail_over` kills the node that `primary` names,
and the next one is that of the next time.

    with CassandraTrio() as trio, trio.place() as place:
        store = place.open("sync")
        trio.fail_over()
"""

from functools import cached_property, partial
from typing import ClassVar, Self

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import NoHostAvailable, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from backends.base import OwnServer
from backends.cassandra import Cassandra, Keyspace, connected
from backends.cassandra_node import DURABLE, YAML
from backends.cluster import Cluster, ClusterPlace
from eventhub_checkpoints import open_store
from ports import free_port
from waiting import eventually

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
RING = 2**64 // len(HOSTS)
COPIES = {"class": "SimpleStrategy", "replication_factor": len(HOSTS)}
ON_ALL_NODES = (
    "SELECT * FROM system_distributed.view_build_status "
    "WHERE keyspace_name = 'none' AND view_name = 'none'"
)
"""Reads a table that Cassandra keeps three copies of by itself."""
MEMBER = "initial_token: {token}\nauto_bootstrap: false\nwrite_request_timeout: 5s\n"


class Node(Cassandra):
    """One of the nodes, on an address of its own and the ports of all."""

    start_seconds = 600  # three nodes on one machine, which may be busy

    def __init__(self, number: int, native: int, storage: int) -> None:
        super().__init__(own=True, durable=True)
        self.host = HOSTS[number]
        self._native, self._storage = native, storage
        self._token = number * RING - 2**63

    def configuration(self) -> str:
        self.port = self._native
        text = YAML.format(
            host=self.host,
            seed=HOSTS[0],
            native=self._native,
            storage=self._storage,
            commits=DURABLE,
        )
        return text + MEMBER.format(token=self._token)


class CassandraTrio(Cluster):
    """Three nodes, of which any two decide."""

    name = "cassandra-trio"
    stops: ClassVar[bool] = False

    def __init__(self) -> None:
        native, storage = free_port(), free_port()
        self.nodes: tuple[Node, ...] = tuple(
            Node(number, native, storage) for number in range(len(HOSTS))
        )
        self.primary: Node = self.nodes[0]

    def install(self) -> str:
        return self.primary.install()

    def start(self) -> Self:
        try:
            for node in self.nodes:
                node.start()
            self._wait_for_all()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        if "session" in vars(self):
            self.session.cluster.shutdown()
            del self.session
        super().stop()

    @property
    def url(self) -> str:
        """Address of all nodes, up to the keyspace."""
        return "cassandra://" + ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    @cached_property
    def session(self) -> Session:
        """Administrator's session; what it reads, two nodes have."""
        return connected(f"{self.url}/any", consistency_level=ConsistencyLevel.SERIAL)

    def place(self) -> "TrioKeyspace":
        return TrioKeyspace(self)

    def settle(self) -> None:
        """Return at once: the survivors decide without the dead node."""

    def take_over(self) -> None:
        """Name the node that dies next; the survivors need no other successor."""
        self.primary = self.nodes[(self.nodes.index(self.primary) + 1) % len(self.nodes)]

    def rejoin(self, node: OwnServer) -> None:
        node.restart()
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        """Wait until every node takes every other for alive."""
        for node in self.nodes:
            policy = WhiteListRoundRobinPolicy([node.host])
            session = connected(f"{node.url}/any", policy, consistency_level=ConsistencyLevel.ALL)
            try:
                eventually(partial(reaches_all, session), node.start_seconds)
            finally:
                session.cluster.shutdown()


def reaches_all(session: Session) -> bool:
    """Return whether a row of which all nodes have a copy can be read from all of them."""
    try:
        session.execute(ON_ALL_NODES)
    except (DriverException, NoHostAvailable):
        return False
    return True


class TrioKeyspace(Keyspace, ClusterPlace):
    """Keyspace for a single test, with three copies."""

    def create(self) -> Self:
        with open_store(self.url, create_keyspace=True, replication=COPIES) as store:
            store.create()
        return self

    def url_of(self, node: OwnServer) -> str:
        assert isinstance(node, Node)
        return f"{node.url}/{self.keyspace}"
