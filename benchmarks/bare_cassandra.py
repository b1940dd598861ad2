"""The calls of a program that has a session of cassandra-driver and prepared statements."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self
from uuid import uuid4

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.query import BatchStatement, BatchType, tuple_factory

from benchmarks.rows import Row, scope_of
from eventhub_checkpoints.stores.cassandra.protocol import DEFAULT_KEYSPACE, Statements
from eventhub_checkpoints.stores.cassandra.url import Address


class Bare:
    """One session, and the lightweight transactions prepared."""

    def __init__(self, url: str) -> None:
        address = Address.parse(url)
        profile = ExecutionProfile(
            consistency_level=ConsistencyLevel.LOCAL_QUORUM,
            serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
            row_factory=tuple_factory,
        )
        self._cluster = Cluster(
            list(address.contact_points), execution_profiles={EXEC_PROFILE_DEFAULT: profile}
        )
        self.session = self._cluster.connect()
        texts = Statements(address.keyspace or DEFAULT_KEYSPACE)
        prepare = self.session.prepare
        self.create, self.renew = prepare(texts.claim_new), prepare(texts.claim_over)
        self.replace = prepare(texts.replace_checkpoint)
        self.create_checkpoint = prepare(texts.create_checkpoint)
        self.listing = prepare(texts.list_ownerships)

    def shut_down(self) -> None:
        """Close the session and its cluster."""
        self._cluster.shutdown()

    def claim(self, row: Row, etag: str) -> Any:
        """A claim of one partition."""
        key = (*scope_of(row), row["partition_id"])
        if row["etag"]:
            return self.renew.bind((row["owner_id"], etag, *key, row["etag"]))
        return self.create.bind((*key, row["owner_id"], etag))


def checkpoint_values(row: Row) -> tuple[Any, ...]:
    """The parameters of both statements that write a checkpoint."""
    position = row["offset"], row["sequence_number"], uuid4().hex, "bare"
    return (*position, *scope_of(row), row["partition_id"])


class BareCassandra(Bare):
    """Calls that wait."""

    def claim_ownership(self, rows: Sequence[Row]) -> list[Row]:
        etags = [uuid4().hex for _ in rows]
        claims = [self.claim(row, etag) for row, etag in zip(rows, etags, strict=True)]
        statement = claims[0]
        if len(claims) > 1:
            statement = BatchStatement(
                BatchType.UNLOGGED,
                consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
            )
            statement.add_all(claims, [None] * len(claims))
        assert self.session.execute(statement).one()[0]
        return [{**row, "etag": etag} for row, etag in zip(rows, etags, strict=True)]

    def update_checkpoint(self, row: Row) -> None:
        values = checkpoint_values(row)
        if not self.session.execute(self.replace, values).one()[0]:
            self.session.execute(self.create_checkpoint, values)

    def list_ownership(self, *names: str) -> list[Any]:
        return list(self.session.execute(self.listing, names))

    def close(self) -> None:
        self.shut_down()


class BareCassandraAio(Bare):
    """Calls whose answers a task waits for."""

    @classmethod
    async def opened(cls, url: str) -> Self:
        """A session on the cluster that a store's URL names."""
        return await asyncio.to_thread(cls, url)

    async def update_checkpoint(self, row: Row) -> None:
        values = checkpoint_values(row)
        if not (await self._execute(self.replace, values))[0][0]:
            await self._execute(self.create_checkpoint, values)

    async def list_ownership(self, *names: str) -> list[Any]:
        return list(await self._execute(self.listing, names))

    async def close(self) -> None:
        await asyncio.to_thread(self.shut_down)

    async def _execute(self, statement: Any, values: Sequence[Any]) -> Any:
        loop = asyncio.get_running_loop()
        arrival: asyncio.Future[Any] = loop.create_future()

        def tell(settle: Callable[[Any], None]) -> Callable[[Any], None]:
            return partial(loop.call_soon_threadsafe, settle)

        request = self.session.execute_async(statement, values)
        request.add_callbacks(tell(arrival.set_result), tell(arrival.set_exception))
        return await arrival
