"""Storage of the workers of a round, and what goes wrong with it.

`STORES` has the names of `--store`. Workers reach a server through a proxy, whose faults are those
of a network; a server that keeps what it has confirmed is also killed and started again, and a
cluster of `backends` with a `fail_over` is made to choose another primary.
"""

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from backends import Backend, OwnServer
from backends.azurite_server import AzuriteServer
from backends.blob import Blob
from backends.cassandra import Cassandra
from backends.cassandra_trio import CassandraTrio
from backends.cluster import Cluster, ClusterPlace
from backends.mysql import Mysql
from backends.postgres import Postgres
from backends.postgres_pair import PostgresPair
from backends.redis import LocalRedis
from backends.redis_sentinel import RedisSentinel
from backends.sqlite import Sqlite
from backends.table import Table
from fault_proxy import FaultProxy
from tcp_servers import Passage
from tmpfs import MountError, fill, mounted

COMMITS = ("--appendonly", "yes", "--appendfsync", "always")
SMALL_FILE = ("--auto-aof-rewrite-min-size", "8mb")
SLOW_SECONDS = 0.1
CUT_SECONDS = 1.0
WRITES = ("PUT", "POST")
"""Methods of requests that write; a transaction and an insert into a table are the second."""
FULL = "full disk"
DISKS = {"sqlite": "16m", "postgres": "256m", "mysql": "384m", "redis": "128m"}
"""Sizes of the disks of those whose disk is filled; small, because that takes its time."""
SMALL_LOG = ("min_wal_size=32MB", "max_wal_size=64MB")


STORES: dict[str, Callable[[], Backend]] = {
    "sqlite": Sqlite,
    "blob": Blob,
    "table": Table,
    "postgres": partial(Postgres.own, durable=True, settings=SMALL_LOG),
    "mysql": partial(Mysql.own, durable=True),
    "redis": partial(LocalRedis, *COMMITS, *SMALL_FILE),
    "cassandra": partial(Cassandra, own=True, durable=True),
    "postgres-pair": PostgresPair,
    "redis-sentinel": RedisSentinel,
    "cassandra-trio": CassandraTrio,
    "redis-sentinel-unguarded": partial(RedisSentinel, cut_seconds=CUT_SECONDS, is_guarded=False),
}
"""Servers of our own, with what they have confirmed on the disk. Rows in memory die with their
process, so kills say nothing about them. The last one forgets in each fail-over."""
SINGLE = tuple(STORES)[:7]
"""Those of `--store all`: a cluster is chosen by its name."""


class Storage(ABC):
    """Storage that processes share.

    Attributes:
        url: for the parent.
        shown: for the workers.
        faults: names of the faults that can be made.

    Args:
        backend: running.
        disk: folder of its small disk; None: its disk cannot be filled.
    """

    faults: Sequence[str]

    def __init__(self, backend: Backend, disk: Path | None = None) -> None:
        self.backend = backend
        if disk is not None:
            self._disk = disk
            self.faults = (*self.faults, FULL)
        self._place = backend.place().create()
        self.url = self.shown = self._place.url

    @abstractmethod
    def begin(self, fault: str) -> None:
        """Have the fault from now on."""

    @abstractmethod
    def end(self) -> None:
        """End the fault."""

    @contextmanager
    def having(self, fault: str) -> Iterator[None]:
        """Have a fault in this block."""
        self.begin(fault)
        try:
            yield
        finally:
            self.end()

    def close(self) -> None:
        """Stop everything that was started for it."""
        self._place.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SqliteFile(Storage):
    """SQLite file, which the parent can lock."""

    faults = ("locked",)

    def __init__(self, backend: Backend, disk: Path | None = None) -> None:
        super().__init__(backend, disk)
        self._filler: Path | None = None
        path = self.url.removeprefix("sqlite:///")
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)

    def begin(self, fault: str) -> None:
        if fault == FULL:
            self._filler = fill(self._disk)
        else:
            self._connection.execute("BEGIN EXCLUSIVE")

    def end(self) -> None:
        if self._filler is not None:
            self._filler.unlink()
            self._filler = None
        else:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()
        super().close()


class FaultyPassage(Passage):
    """Forwards connections, or holds their bytes back, or loses answers.

    Attributes:
        fault: what happens now; `""` for nothing.
    """

    fault = ""

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(self._piece):
            if self.fault == "lost answers":
                return
            await self._hold()
            sink.write(data)
            await sink.drain()

    async def _hold(self) -> None:
        if self.fault == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        while self.fault == "hang":  # noqa: ASYNC110  (another thread ends it)
            await asyncio.sleep(SLOW_SECONDS)


class Server(Storage):
    """Server that workers reach through a proxy."""

    faults: Sequence[str] = ("refused", "hang", "slow", "lost answers", "restart", "paused")

    def __init__(self, backend: Backend, disk: Path | None = None) -> None:
        super().__init__(backend, disk)
        self._filler: Path | None = None
        port = urlsplit(self.url).port
        assert port is not None
        self._passage = FaultyPassage(("127.0.0.1", port))
        self.shown = self.url.replace(f":{port}", f":{self._passage.port}", 1)

    def begin(self, fault: str) -> None:
        assert isinstance(self.backend, OwnServer)
        if fault == "refused":
            self._passage.down()
        elif fault == "restart":
            self.backend.kill()
        elif fault == "paused":
            self.backend.pause()
        elif fault == FULL:
            self._filler = fill(self._disk)
        else:
            self._passage.fault = fault

    def end(self) -> None:
        assert isinstance(self.backend, OwnServer)
        self._passage.fault = ""
        self._passage.up()
        self.backend.resume()
        if self._filler is not None:
            self._filler.unlink()
            self._filler = None
            # It may have ended, without room for its log.
            self.backend.kill()
        if not self.backend.is_own:
            self.backend.restart()

    def close(self) -> None:
        self._passage.stop()
        super().close()


class AzuriteStorage(Storage):
    """Azurite, which keeps its rows in memory and is not killed, behind an HTTP proxy."""

    faults = ("refused", "hang", "slow", "lost answers", "paused", "throttled", "denied")

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        assert isinstance(backend, AzuriteServer)
        self._proxy = FaultProxy(backend.azurite.endpoint)
        self.shown = self.url.replace(backend.azurite.endpoint, self._proxy.endpoint)

    def begin(self, fault: str) -> None:
        assert isinstance(self.backend, AzuriteServer)
        acts: dict[str, Callable[[], Any]] = {
            "refused": self._proxy.down,
            "hang": lambda: self._proxy.on().hang(),
            "slow": lambda: self._proxy.on().wait(SLOW_SECONDS),
            "lost answers": lambda: [self._proxy.on(each).lose_answer() for each in WRITES],
            "paused": self.backend.pause,
            "throttled": lambda: self._proxy.on().refuse(503, "ServerBusy"),
            "denied": lambda: self._proxy.on().refuse(403, "AuthorizationFailure"),
        }
        acts[fault]()

    def end(self) -> None:
        assert isinstance(self.backend, AzuriteServer)
        self._proxy.heal()
        self._proxy.up()
        self.backend.resume()

    def close(self) -> None:
        self._proxy.stop()
        super().close()


class Clustered(Storage):
    """Cluster of several servers, without a proxy: its clients know every address."""

    faults = ("fail-over",)

    def begin(self, fault: str) -> None:
        self.cluster.fail_over()

    def end(self) -> None:
        pass

    @property
    def cluster(self) -> Cluster:
        """The servers."""
        assert isinstance(self.backend, Cluster)
        return self.backend

    def url_of(self, node: OwnServer) -> str:
        """Return the argument of `open_store` for reading one node."""
        assert isinstance(self._place, ClusterPlace)
        return self._place.url_of(node)


@contextmanager
def running(name: str) -> Iterator[Storage]:
    """Start the backend of a store, on a small disk if it can be filled, and yield its storage.

    Raises:
        ServerMissingError: the server is not available.
    """
    backend = STORES[name]()
    with ExitStack() as opened:
        disk = None
        if name in DISKS:
            try:
                disk = opened.enter_context(mounted(folder_of(backend), DISKS[name]))
            except MountError as error:
                print(f"{name} is run without a {FULL}: {error}")
        opened.enter_context(backend)
        yield opened.enter_context(storage_of(name, backend, disk))


def folder_of(backend: Backend) -> Path:
    """Return the folder of the data."""
    assert isinstance(backend, OwnServer | Sqlite)
    return backend.folder


def storage_of(name: str, backend: Backend, disk: Path | None) -> Storage:
    """Return a storage on a running backend."""
    if name == "sqlite":
        return SqliteFile(backend, disk)
    if isinstance(backend, AzuriteServer):
        return AzuriteStorage(backend)
    return Server(backend, disk) if name in SINGLE else Clustered(backend)
