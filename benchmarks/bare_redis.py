"""The calls of a program that has a client of redis-py and the store's scripts."""

from collections.abc import Sequence
from typing import Any, Self
from uuid import uuid4

from redis import Redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio import Redis as AioRedis

from benchmarks.rows import Row, scope_of
from eventhub_checkpoints.stores.redis.protocol import CLAIM, LIST, WRITE_CHECKPOINT
from eventhub_checkpoints.stores.redis.url import RedisUrl

CONNECTIONS = 32
"""For many tasks; as many as the store has."""


class Keys:
    """The keys of a namespace."""

    def __init__(self, namespace: str | None) -> None:
        self._namespace = namespace

    def of(self, names: Sequence[str], kind: str) -> str:
        """The key of a group's hash."""
        return f"{{{self._namespace}:{'/'.join(names)}}}:{kind}"


def checkpoint_arguments(row: Row) -> list[str]:
    """The arguments of the script that writes a checkpoint, whatever is stored."""
    number = str(row["sequence_number"])
    return [row["partition_id"], "any", "", row["offset"], number, uuid4().hex, "bare"]


class BareRedis:
    """One client; each operation is one `EVALSHA`."""

    def __init__(self, url: str) -> None:
        address = RedisUrl.parse(url)
        self._keys = Keys(address.namespace)
        self._client = Redis.from_url(address.driver_url)
        for script in (CLAIM, LIST, WRITE_CHECKPOINT):
            self._client.script_load(script.text)

    def claim_ownership(self, rows: Sequence[Row]) -> list[Row]:
        etags = [uuid4().hex for _ in rows]
        words = [
            word
            for row, etag in zip(rows, etags, strict=True)
            for word in (row["partition_id"], row["etag"] or "", etag, row["owner_id"])
        ]
        key = self._keys.of(scope_of(rows[0]), "ownership")
        _, answers = self._client.evalsha(CLAIM.digest, 1, key, *words)
        assert answers == [None] * len(rows)
        return [{**row, "etag": etag} for row, etag in zip(rows, etags, strict=True)]

    def update_checkpoint(self, row: Row) -> None:
        key = self._keys.of(scope_of(row), "checkpoint")
        self._client.evalsha(WRITE_CHECKPOINT.digest, 1, key, *checkpoint_arguments(row))

    def list_ownership(self, *names: str) -> list[Any]:
        _, found = self._client.evalsha(LIST.digest, 1, self._keys.of(names, "ownership"))
        return list(zip(found[::2], found[1::2], strict=True))

    def close(self) -> None:
        self._client.close()


class BareRedisAio:
    """The same for tasks."""

    def __init__(self, client: AioRedis, namespace: str | None) -> None:
        self._client = client
        self._keys = Keys(namespace)

    @classmethod
    async def opened(cls, url: str) -> Self:
        """A client of the server that a store's URL names."""
        address = RedisUrl.parse(url)
        pool = BlockingConnectionPool.from_url(address.driver_url, max_connections=CONNECTIONS)
        client = AioRedis.from_pool(pool)
        for script in (LIST, WRITE_CHECKPOINT):
            await client.script_load(script.text)
        return cls(client, address.namespace)

    async def update_checkpoint(self, row: Row) -> None:
        key = self._keys.of(scope_of(row), "checkpoint")
        await self._client.evalsha(WRITE_CHECKPOINT.digest, 1, key, *checkpoint_arguments(row))

    async def list_ownership(self, *names: str) -> list[Any]:
        key = self._keys.of(names, "ownership")
        _, found = await self._client.evalsha(LIST.digest, 1, key)
        return list(zip(found[::2], found[1::2], strict=True))

    async def close(self) -> None:
        await self._client.aclose()
