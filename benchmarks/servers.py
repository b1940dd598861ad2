"""The servers of one run, and the sides on them: each store, its bare calls, and official Blob."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore as Official
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as OfficialAio
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as ContainerClientAio

from backends import BACKENDS, Backend
from benchmarks.bare_cassandra import BareCassandra, BareCassandraAio
from benchmarks.bare_redis import BareRedis, BareRedisAio
from benchmarks.bare_sql import BareMysql, BarePostgres, BareSqlAio, BareSqlite
from benchmarks.bare_table import BareTable, BareTableAio
from benchmarks.measuring import BARE, OFFICIAL, OURS, Round, Sides
from benchmarks.relays import Relay
from benchmarks.sides import API_VERSION, Bare, BareAio, official
from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY

BLOB = "blob"
FOR_BLOB = {"credential": EMULATOR_KEY, "api_version": API_VERSION}


def bare_blob(url: str) -> Bare:
    """Bare requests to a container."""
    return Bare(ContainerClient.from_container_url(url, **FOR_BLOB))


def bare_blob_aio(url: str) -> BareAio:
    """The same for tasks."""
    return BareAio(ContainerClientAio.from_container_url(url, **FOR_BLOB))


MEASURED: dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]] = {
    "sqlite": (BareSqlite, BareSqlAio.sqlite),
    "postgres": (BarePostgres, BareSqlAio.postgres),
    "mysql": (BareMysql, BareSqlAio.mysql),
    "redis": (BareRedis, BareRedisAio.opened),
    "cassandra": (BareCassandra, BareCassandraAio.opened),
    "table": (BareTable, BareTableAio),
    BLOB: (bare_blob, bare_blob_aio),
}
"""The bare calls on each backend, from a store's URL: those that wait, and those of tasks."""
OPEN = {
    **{name: {OURS: open_store, BARE: calls} for name, (calls, _) in MEASURED.items()},
    OFFICIAL: {OFFICIAL: official(Official)},
}
OPEN_AIO = {
    **{name: {OURS: aio.open_store, BARE: calls} for name, (_, calls) in MEASURED.items()},
    OFFICIAL: {OFFICIAL: official(OfficialAio)},
}


def side(backend: str, kind: str) -> str:
    """The name under which a side takes its turns."""
    return OFFICIAL if kind == OFFICIAL else f"{backend}-{kind}"


def of_backend(backend: str, whole: Round) -> Round:
    """What a round says about one backend, with official Blob beside it."""
    return {
        kind: whole[side(backend, kind)]
        for kind in (OURS, OFFICIAL, BARE)
        if side(backend, kind) in whole
    }


@dataclass
class Servers:
    """Those that run. Every case gets places of its own on them, and an Azurite of its own.

    Azurite looks for a blob among all that it ever had, so it becomes slower with every case.

    Attributes:
        names: the backends that are measured.
        running: all of them but Blob.
        has_azurite: whether there is official Blob beside them.
    """

    names: Sequence[str] = ()
    running: dict[str, Backend] = field(default_factory=dict)
    has_azurite: bool = False

    @contextmanager
    def sync(self) -> Iterator[Sides]:
        """All sides, with methods that wait."""
        with ExitStack() as opened:
            yield self._sides(self._urls(opened), opened)

    @contextmanager
    def urls(self) -> Iterator[dict[str, str]]:
        """The URLs of new places, by backend, and of one for official Blob."""
        with ExitStack() as opened:
            yield self._urls(opened)

    @contextmanager
    def counted(self) -> Iterator[tuple[Sides, Callable[[], int]]]:
        """The same, each server by way of a relay; and how many round trips there were."""
        with ExitStack() as opened:
            urls, relays = self._urls(opened), []
            for name, url in urls.items():
                if name != "sqlite":
                    relays.append(opened.enter_context(Relay(url)))
                    urls[name] = relays[-1].url
            yield self._sides(urls, opened), lambda: sum(relay.trips for relay in relays)

    @asynccontextmanager
    async def aio(self) -> AsyncIterator[Sides]:
        """All sides for tasks."""
        async with AsyncExitStack() as opened:
            sides: Sides = {}
            for name, url in self._urls(opened).items():
                for kind, open_one in OPEN_AIO[name].items():
                    one = open_one(url)
                    sides[side(name, kind)] = await one if isawaitable(one) else one
                    opened.push_async_callback(sides[side(name, kind)].close)
            yield sides

    def _sides(self, urls: dict[str, str], opened: ExitStack) -> Sides:
        sides: Sides = {}
        for name, url in urls.items():
            for kind, open_one in OPEN[name].items():
                sides[side(name, kind)] = opened.enter_context(closing(open_one(url)))
        return sides

    def _urls(self, opened: ExitStack | AsyncExitStack) -> dict[str, str]:
        """A new place on each server."""
        found = {name: self.running[name] for name in self.names if name in self.running}
        if self.has_azurite:
            azurite = opened.enter_context(BACKENDS[BLOB]())
            found |= {name: azurite for name in (*self.names, OFFICIAL) if name not in found}
        return {name: opened.enter_context(one.place()).url for name, one in found.items()}
