"""Checkpoint store in Cassandra, written by lightweight transactions only."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ssl import SSLContext
from typing import Any, Self, Unpack, cast

from eventhub_checkpoints._shared._async.compat import for_each
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores._async.hooks import Answer
from eventhub_checkpoints.stores.cassandra._async.requests import CassandraRequests, create_missing
from eventhub_checkpoints.stores.cassandra.driver import CONNECT_SECONDS, Login, Session, way_in
from eventhub_checkpoints.stores.cassandra.protocol import (
    APPLIED,
    BATCH_LIMIT,
    DEFAULT_KEYSPACE,
    Statements,
    checked_keyspace,
    checked_replication,
    checkpoint_of,
    checkpoints,
    in_batches,
    keyspace_definition,
    ownerships,
    scope_key,
    settled,
)
from eventhub_checkpoints.stores.cassandra.url import PORT, Address
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)


class CassandraCheckpointStore(FullCheckpointStore):
    """Stores ownerships and checkpoints in two tables of one keyspace.

    All clients of a consumer group use one datacenter: claims are serialised among its nodes.

    Args:
        contact_points: some nodes, as `host`, `host:port` or pairs of both.
        port: port of the contact points that do not name one.
        namespace: the keyspace.
        username: with `password`, for a cluster that requires authentication.
        datacenter: the one whose nodes are used; by default that of the contact points.
        session: a ready session instead of all of the above. It is not closed, its keyspace is
            not changed, and it must not be used in a forked process.
        create_keyspace: create the keyspace and its tables before the first use, if missing.
        replication: of a keyspace that is created: number of copies, or Cassandra's whole map.
        ssl_context: for a cluster that uses TLS.
        connect_timeout: seconds that one node may take to accept a connection.
        **settings: see `BaseCheckpointStore`.

    Raises:
        ConfigurationError: a setting or the keyspace's name is invalid.
    """

    def __init__(
        self,
        contact_points: Sequence[str | tuple[str, int]] = (),
        *,
        port: int = PORT,
        namespace: str = DEFAULT_KEYSPACE,
        username: str | None = None,
        password: str | None = None,
        datacenter: str | None = None,
        session: Session | None = None,
        create_keyspace: bool = False,
        replication: int | Mapping[str, Any] = 1,
        ssl_context: SSLContext | None = None,
        connect_timeout: float = CONNECT_SECONDS,
        **settings: Unpack[StoreSettings],
    ) -> None:
        super().__init__(**settings)
        self.creates = create_keyspace
        self._keyspace = checked_keyspace(namespace)
        self._replication = checked_replication(replication, datacenter)
        self._statements = Statements.of(self._keyspace)
        login = Login.checked(
            contact_points, port, username, password, datacenter, ssl_context, connect_timeout
        )
        self._requests = CassandraRequests(
            way_in(login, session), self._keyspace, self._statements.applied_versions
        )

    @classmethod
    def from_url(
        cls, url: str, *, credential: tuple[str, str] | None = None, **settings: Any
    ) -> Self:
        """Open `cassandra://[user:password@]host[:port][,host..]/keyspace[?datacenter=NAME]`.

        Args:
            url: see above; without a keyspace, `namespace` or its default is used.
            credential: user and password, instead of those in the URL.
            **settings: all other arguments of the constructor.
        """
        address = Address.parse(url)
        return cls(address.contact_points, **address.settings(credential, settings))

    def __repr__(self) -> str:
        return f"CassandraCheckpointStore({self._requests.where})"

    async def open(self) -> None:
        await self._requests.connect()
        if self.creates:
            definition = keyspace_definition(self._keyspace, self._replication)
            await create_missing(self._requests, self._keyspace, definition, self.writer)

    async def close(self) -> None:
        await super().close()
        await self._requests.close()

    def drop_connections(self) -> None:
        self._requests.drop()

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return self._requests.map_error(error)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        rows = await self._requests.read(self._statements.list_ownerships, scope_key(scope))
        return ownerships(scope, rows)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        answers: dict[Proposal, Answer] = {}
        await self._claim_batch([proposal], answers)
        return cast("Won | Lost", answers[proposal])

    async def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Answer]:
        # One transaction for all: separate ones would contend with each other, because the rows
        # of a scope are one partition of the table, which is what a transaction locks.
        answers: dict[Proposal, Answer] = {}
        scopes = [(batches, answers) for batches in in_batches(proposals, BATCH_LIMIT)]
        await for_each(self._claim_scope, scopes, self.settings.max_concurrency)
        return [answers[one] for one in proposals]

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        rows = await self._requests.read(self._statements.list_checkpoints, scope_key(scope))
        return checkpoints(scope, rows)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        scope, known = checkpoint.scope, self._statements
        key = (*scope_key(scope), checkpoint.partition_id)
        row = (checkpoint.offset, checkpoint.sequence_number, checkpoint.version, self.writer)
        if isinstance(seen, str):
            # A row that was created elsewhere without a version is listed with "".
            values = (*row, *key, seen or None)
            if await self._is_applied(known.update_checkpoint, values):
                return Written(checkpoint.version)
            rows = await self._requests.read(known.read_checkpoint, key)
            return Conflict(checkpoint_of(scope, rows[0]) if rows else None)
        if seen is FORCE and await self._is_applied(known.replace_checkpoint, (*row, *key)):
            return Written(checkpoint.version)
        rows = await self._requests.write((known.create_checkpoint, (*row, *key)))
        if rows[0][APPLIED]:
            return Written(checkpoint.version)
        return Conflict(checkpoint_of(scope, rows[0]))

    async def read_scopes(self) -> Sequence[Scope]:
        found: set[Scope] = set()
        for text in self._statements.scopes:
            found |= {Scope(**row) for row in await self._requests.scan(text)}
        return list(found)

    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        removed = 0
        for table in range(len(self._statements.delete)):
            removed += await self._delete_from(table, scope, partition_id)
        return removed

    async def _is_applied(self, text: str, values: Sequence[object]) -> bool:
        rows = await self._requests.write((text, values))
        return bool(rows[0][APPLIED])

    async def _claim_scope(
        self, work: tuple[Sequence[Sequence[Proposal]], dict[Proposal, Answer]]
    ) -> None:
        batches, answers = work
        for batch in batches:
            try:
                await self._call(self._claim_batch, batch, answers)
            except CheckpointStoreError as error:
                answers.update({one: error for one in batch if one not in answers})

    async def _claim_batch(
        self, batch: Sequence[Proposal], answers: dict[Proposal, Answer]
    ) -> None:
        """Claim all that can be won in one transaction; each failed one shows which are lost."""
        proposed = {one.partition_id: one for one in batch}
        asked = dict(proposed)
        while asked:
            began = time.time()
            rows = await self._requests.write(*map(self._claim, asked.values()))
            if rows[0][APPLIED]:
                for name in asked:
                    won = Won(proposed[name].won(0.0))
                    answers[proposed[name]] = self._remembered(proposed[name], won, began)
                return
            lost, vanished = settled(list(asked.values()), rows)
            if not lost and not vanished:
                raise StoreUnavailableError("a batch of claims was refused without a reason")
            answers.update({proposed[name]: Lost() for name in lost})
            asked = {
                name: replace(one, etag=None) if name in vanished else one
                for name, one in asked.items()
                if name not in lost
            }

    def _claim(self, proposal: Proposal) -> tuple[str, tuple[object, ...]]:
        key = (*scope_key(proposal.scope), proposal.partition_id)
        row = proposal.owner_id, proposal.new_etag
        if proposal.etag is None:
            return self._statements.claim_new, (*key, *row)
        return self._statements.claim_over, (*row, *key, proposal.etag)

    async def _delete_from(self, table: int, scope: Scope, partition_id: str | None) -> int:
        removed, names = 0, await self._partitions(table, scope)
        if partition_id is not None:
            names &= {partition_id}
        while names:
            batch = sorted(names)[:BATCH_LIMIT]
            delete, key = self._statements.delete[table], scope_key(scope)
            rows = await self._requests.write(*((delete, (*key, name)) for name in batch))
            if rows[0][APPLIED]:
                removed += len(batch)
                names -= set(batch)
            else:  # a row has been deleted in the meantime
                names &= await self._partitions(table, scope)
        return removed

    async def _partitions(self, table: int, scope: Scope) -> set[str]:
        rows = await self._requests.read(self._statements.partitions[table], scope_key(scope))
        return {row["partition_id"] for row in rows}
