"""Redis: a primary, two replicas and three Sentinels, as child processes.

Sentinel chooses the successor of a dead primary. It begins when `take_over` lets it: until then, no
busy machine starts a fail-over, and nobody writes while the survivors are read.

    with RedisSentinel() as trio, trio.place() as place:
        store = place.open("sync")
        trio.fail_over()
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import redis
import redis.asyncio
from redis import Redis, Sentinel
from redis.exceptions import RedisError

from backends.base import OwnServer, Variant
from backends.cluster import Cluster, ClusterPlace, Look
from backends.redis import START_SECONDS, LocalRedis, RedisPlace, executable
from eventhub_checkpoints.aio.redis import RedisCheckpointStore as AioRedisCheckpointStore
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.redis import RedisCheckpointStore
from ports import free_port
from tcp_servers import Passage
from waiting import eventually

SERVICE = "orders"
NODES = SENTINELS = 3
QUORUM = 2
PATIENT, AT_ONCE = 600_000, 3_000
"""Milliseconds without an answer after which Sentinel takes the primary for dead."""
TAKE_OVER_SECONDS = 60
SOCKET_SECONDS = 1.0
REPLICATION = ("--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
GUARD = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
NO_REPLICATION = ("ACL", "SETUSER", "default", "-psync", "-sync", "-replconf")
CONFIGURATION = """port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {service} 127.0.0.1 {primary} {quorum}
sentinel down-after-milliseconds {service} {patience}
sentinel failover-timeout {service} 4000
sentinel parallel-syncs {service} 2
"""


class Watcher(OwnServer):
    """One Sentinel."""

    name = "sentinel"

    def __init__(self, primary: LocalRedis) -> None:
        self._primary = primary
        self.port = free_port()
        self.client: Any = Redis(
            port=self.port, socket_timeout=SOCKET_SECONDS, decode_responses=True
        )

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def install(self) -> str:
        return executable()

    def launch(self) -> Child:
        path = self.folder / "sentinel.conf"
        text = CONFIGURATION.format(
            port=self.port,
            folder=self.folder,
            service=SERVICE,
            primary=self._primary.port,
            quorum=QUORUM,
            patience=PATIENT,
        )
        path.write_text(text)
        child = Child([executable(), path, "--sentinel"], log=self.folder / "log", name="sentinel")
        child.wait_ready(self._answers, START_SECONDS)
        return child

    def _answers(self) -> bool:
        with suppress(RedisError):
            return bool(self.client.ping())
        return False

    def primary_port(self) -> int:
        """Return the port of the server that it takes for the primary."""
        [state] = self.client.sentinel_masters().values()
        return int(state["port"])

    def set_patience(self, milliseconds: int) -> None:
        """Set how long the primary may be silent."""
        self.client.execute_command(
            "SENTINEL", "SET", SERVICE, "down-after-milliseconds", milliseconds
        )

    def knows_all(self, primary: LocalRedis) -> bool:
        """Return whether it follows this primary, and knows all replicas and Sentinels as alive."""
        [state] = self.client.sentinel_masters().values()
        replicas = self.client.sentinel_slaves(SERVICE)
        return (
            state["port"] == primary.port
            and state["flags"] == "master"
            and state["num-other-sentinels"] == SENTINELS - 1
            and [each["flags"] for each in replicas] == ["slave"] * (NODES - 1)
        )

    def stop(self) -> None:
        self.client.close()
        super().stop()

    def place(self) -> Any:
        raise NotImplementedError("a Sentinel stores nothing")


class RedisSentinel(Cluster):
    """Three servers, one of which takes writes, and three Sentinels.

    Args:
        is_guarded: whether the primary refuses writes without a replica.
        cut_seconds: how long the replicas are cut off from the primary before it dies.
    """

    name = "redis-sentinel"
    forgets = True

    def __init__(self, *, is_guarded: bool = True, cut_seconds: float = 0.0) -> None:
        self._options = (*REPLICATION, *(GUARD if is_guarded else ()))
        self._cut_seconds = cut_seconds
        self.nodes: tuple[LocalRedis, ...] = tuple(LocalRedis(*self._options) for _ in range(NODES))
        self.primary: LocalRedis = self.nodes[0]
        self.watchers: list[Watcher] = []
        self._passage: Passage | None = None

    def install(self) -> str:
        return executable()

    def start(self) -> Self:
        try:
            self.primary.start()
            for node in self.replicas:
                self._follow(node)
                node.start()
            self.watchers = [Watcher(self.primary) for _ in range(SENTINELS)]
            for watcher in self.watchers:
                watcher.start()
            self._wait_in_step()
            self._passage = Passage(("127.0.0.1", self.primary.port))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        if self._passage is not None:
            self._passage.stop()
            self._passage = None
        for watcher in self.watchers:
            watcher.stop()
        super().stop()

    @property
    def url(self) -> str:
        """Address of the primary behind a proxy, for clients that do not ask Sentinel."""
        assert self._passage is not None, "it is not started"
        return f"redis://127.0.0.1:{self._passage.port}"

    @property
    def replicas(self) -> list[LocalRedis]:
        """Return the nodes besides the primary."""
        return [node for node in self.nodes if node is not self.primary]

    @property
    def sentinels(self) -> list[tuple[str, int]]:
        """Addresses of the Sentinels, for redis-py."""
        return [("127.0.0.1", watcher.port) for watcher in self.watchers]

    def place(self) -> "SentinelPlace":
        return SentinelPlace(self)

    def fail_over(self, look: Look = lambda: None, *, is_orderly: bool = False) -> None:
        if self._cut_seconds:
            with Redis.from_url(self.primary.url) as client:
                client.execute_command(*NO_REPLICATION)
                client.execute_command("CLIENT", "KILL", "TYPE", "replica")
            time.sleep(self._cut_seconds)
        super().fail_over(look, is_orderly=is_orderly)

    def settle(self) -> None:
        eventually(
            lambda: all(info(node)["master_link_status"] == "down" for node in self.replicas),
            START_SECONDS,
        )

    def take_over(self) -> None:
        for watcher in self.watchers:
            watcher.set_patience(AT_ONCE)
        eventually(self._successor, TAKE_OVER_SECONDS)
        for watcher in self.watchers:
            watcher.set_patience(PATIENT)
        # On a busy machine Sentinel may have replaced the first successor, too.
        self.primary = eventually(self._successor, TAKE_OVER_SECONDS)
        assert self._passage is not None
        self._passage.backend = ("127.0.0.1", self.primary.port)

    def _successor(self) -> LocalRedis | None:
        """Return the primary that all Sentinels agree on, if it is a new one."""
        ports = {watcher.primary_port() for watcher in self.watchers}
        chosen = [node for node in self.replicas if {node.port} == ports]
        return chosen[0] if chosen else None

    def rejoin(self, node: OwnServer) -> None:
        assert isinstance(node, LocalRedis)
        self._follow(node)
        node.restart()
        self._wait_in_step()

    def _follow(self, node: LocalRedis) -> None:
        """Let a node start as a replica of the primary."""
        node.options = (*self._options, "--replicaof", "127.0.0.1", str(self.primary.port))

    def _wait_in_step(self) -> None:
        """Wait until both replicas have what the primary has now, and every Sentinel sees it."""
        eventually(lambda: info(self.primary)["connected_slaves"] == NODES - 1, START_SECONDS)
        offset = info(self.primary)["master_repl_offset"]
        eventually(lambda: all(has(node, offset) for node in self.replicas), START_SECONDS)
        eventually(
            lambda: all(watcher.knows_all(self.primary) for watcher in self.watchers),
            TAKE_OVER_SECONDS,
        )


def info(node: LocalRedis) -> dict[str, Any]:
    """Return a server's section of replication."""
    with Redis.from_url(node.url, socket_timeout=SOCKET_SECONDS) as client:
        return dict(client.info("replication"))


def has(node: LocalRedis, offset: int) -> bool:
    """Return whether a replica follows its primary and has reached an offset."""
    state = info(node)
    return state.get("master_link_status") == "up" and int(state["slave_repl_offset"]) >= offset


class SyncStore(RedisCheckpointStore):
    """Store that closes the clients it was given."""

    clients: Sequence[Any] = ()

    def close(self) -> None:
        super().close()
        for client in self.clients:
            client.close()


class AioStore(AioRedisCheckpointStore):
    """The same for asyncio."""

    clients: Sequence[Any] = ()

    async def close(self) -> None:
        await super().close()
        for client in self.clients:
            await client.aclose()


class SentinelPlace(RedisPlace, ClusterPlace):
    """Namespace for a single test; its stores ask Sentinel for the primary."""

    def __init__(self, trio: RedisSentinel) -> None:
        super().__init__(trio.url)
        self._addresses = trio.sentinels

    def open(self, variant: Variant, **settings: Any) -> Any:
        clients = self._clients(redis.asyncio.Sentinel if variant == "aio" else Sentinel)
        kind = AioStore if variant == "aio" else SyncStore
        store = kind(client=clients[0], namespace=self.namespace, **settings)
        store.clients = clients
        return store

    def _clients(self, kind: Any) -> list[Any]:
        """Return a client of the primary, and those of the Sentinels that it asks."""
        sentinel = kind(self._addresses, socket_timeout=SOCKET_SECONDS)
        primary = sentinel.master_for(SERVICE, socket_timeout=SOCKET_SECONDS)
        return [primary, *sentinel.sentinels]

    def url_of(self, node: OwnServer) -> str:
        assert isinstance(node, LocalRedis)
        return f"{node.url}?namespace={self.namespace}"
