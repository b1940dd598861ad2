"""Checkpoint store in Redis: two hashes for each consumer group, every decision in one script."""

from collections.abc import Sequence
from typing import Any, Self, Unpack

from eventhub_checkpoints._shared._async.compat import for_each
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreNotReadyError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores._async.hooks import log
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.redis._async.requests import (
    OwnRequests,
    RedisRequests,
    address_of,
    checked_client,
)
from eventhub_checkpoints.stores.redis.protocol import (
    CLAIM,
    DELETE,
    EVICTS,
    LIST,
    WRITE_CHECKPOINT,
    Kind,
    all_keys,
    checkpoints,
    claim_arguments,
    hash_key,
    ownerships,
    scope_of,
    seconds,
    stored_checkpoint,
    stored_ownership,
)
from eventhub_checkpoints.stores.redis.url import RedisUrl, checked_namespace


class RedisCheckpointStore(FullCheckpointStore):
    """Stores ownerships and checkpoints as JSON in hashes of one Redis server or cluster.

    Acknowledged writes can still be lost: by a crash before they are on disk, by a failover
    before they are replicated. `docs/redis.md` describes the consequences for G1 and G3.

    Args:
        url: `redis://` or `rediss://`, with the options that redis-py reads from its query.
        client: a ready `Redis`, `RedisCluster` or client of a Sentinel's primary instead. It is
            not closed.
        namespace: prefix of all keys; by default `eventhub-checkpoints`.
        credential: the password at each connect: a string, a callable, or a credential of
            azure-identity. The user is that of the URL, else that of the token.
        entra: use the default credential of azure-identity.
        allow_eviction: use a server that may evict keys when its memory is full: partitions then
            lose their owners, and checkpoints start over.
        **settings: see `BaseCheckpointStore`.

    Raises:
        ConfigurationError: a setting is invalid.
    """

    def __init__(
        self,
        url: str = "",
        *,
        client: Any = None,
        namespace: str | None = None,
        credential: Any = None,
        entra: bool = False,
        allow_eviction: bool = False,
        **settings: Unpack[StoreSettings],
    ) -> None:
        super().__init__(**settings)
        self._allow_eviction = allow_eviction
        self._requests: RedisRequests
        if client is None:
            address = RedisUrl.parse(url)
            self.namespace = checked_namespace(namespace, address.namespace)
            self._requests = OwnRequests(address, self.namespace, credential, entra, self.settings)
            return
        if url or credential is not None or entra:
            raise ConfigurationError("client is ready; expected no url, credential or entra beside")
        self.namespace = checked_namespace(namespace)
        ready = checked_client(client)
        self._requests = RedisRequests(lambda: ready, address_of(ready), self.namespace)

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **settings: Any) -> Self:
        """Open `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?namespace=NAME]`, or `rediss://`.

        Raises:
            ConfigurationError: it is not such a URL, or a setting is invalid.
        """
        return cls(url, credential=credential, **settings)

    def __repr__(self) -> str:
        return f"RedisCheckpointStore({self._requests.address}, namespace={self.namespace!r})"

    async def open(self) -> None:
        policies = await self._requests.eviction_policies()
        if not policies:
            log.warning(
                "Redis at %s does not tell its maxmemory-policy (INFO memory): see to it that it "
                "is noeviction, or partitions and checkpoints may be evicted",
                self._requests.address,
            )
        evicting = sorted(one for one in policies if one.startswith(EVICTS))
        if evicting and not self._allow_eviction:
            raise StoreNotReadyError(
                f"Redis at {self._requests.address} has maxmemory-policy {evicting[0]} and may "
                "evict ownerships and checkpoints: set it to noeviction, or open the store with "
                "allow_eviction=True"
            )

    async def close(self) -> None:
        await super().close()
        await self._requests.close()

    def drop_connections(self) -> None:
        self._requests.begin_anew()

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return self._requests.map_error(error)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return ownerships(scope, await self._requests.run(LIST, [self._key(scope, "ownership")]))

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        return (await self._claim([proposal]))[0]

    async def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Won | Lost | Exception]:
        """Claim in one round trip for each consumer group; a client has one."""
        groups: dict[Scope, list[Proposal]] = {}
        for one in proposals:
            groups.setdefault(self.identity(one.scope), []).append(one)
        batches = list(groups.values())
        answers = await for_each(self._try_group, batches, self.settings.max_concurrency)
        found = {
            one: answer
            for batch, group in zip(batches, answers, strict=True)
            for one, answer in zip(batch, group, strict=True)
        }
        return [found[one] for one in proposals]

    async def _try_group(self, batch: Sequence[Proposal]) -> Sequence[Won | Lost | Exception]:
        try:
            return await self._call(self._claim, batch)
        except Exception as error:
            return [error] * len(batch)

    async def _claim(self, batch: Sequence[Proposal]) -> Sequence[Won | Lost]:
        key = self._key(batch[0].scope, "ownership")
        time, answers = await self._requests.run(CLAIM, [key], claim_arguments(batch))
        return [
            Won(one.won(seconds(time)))
            if raw is None
            else Lost(stored_ownership(one.scope, one.partition_id, raw))
            for one, raw in zip(batch, answers, strict=True)
        ]

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return checkpoints(scope, await self._requests.run(LIST, [self._key(scope, "checkpoint")]))

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        key = self._key(checkpoint.scope, "checkpoint")
        arguments = checkpoint_arguments(checkpoint, seen, self.writer)
        stored, *raw = await self._requests.run(WRITE_CHECKPOINT, [key], arguments)
        if stored:
            return Written(checkpoint.version)
        if raw[0] is None:
            return Conflict(None)
        return Conflict(stored_checkpoint(checkpoint.scope, checkpoint.partition_id, raw[0]))

    async def read_scopes(self) -> Sequence[Scope]:
        keys = await self._requests.keys(all_keys(self.namespace))
        return list({scope for key in keys if (scope := scope_of(self.namespace, key))})

    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        keys = [self._key(scope, "ownership"), self._key(scope, "checkpoint")]
        arguments = [] if partition_id is None else [partition_id]
        return int(await self._requests.run(DELETE, keys, arguments))

    def _key(self, scope: Scope, kind: Kind) -> str:
        return hash_key(self.namespace, scope, kind)


def checkpoint_arguments(checkpoint: Checkpoint, seen: str | Seen, writer: str) -> list[str]:
    """Return the arguments of `WRITE_CHECKPOINT`."""
    allowed = "same" if isinstance(seen, str) else "any" if seen is FORCE else "none"
    return [
        checkpoint.partition_id,
        allowed,
        seen if isinstance(seen, str) else "",
        checkpoint.offset,
        str(checkpoint.sequence_number),
        checkpoint.version,
        writer,
    ]
