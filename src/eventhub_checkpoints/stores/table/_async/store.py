"""Checkpoint store in Azure Table Storage, with the entities of the official JavaScript store."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from eventhub_checkpoints._shared._async.compat import for_each
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.settings import require_flag, require_text
from eventhub_checkpoints.errors import CheckpointStoreError, InvalidRecordError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.abilities import KeepsHistory
from eventhub_checkpoints.stores._async.hooks import Answer
from eventhub_checkpoints.stores.azure_storage import account
from eventhub_checkpoints.stores.azure_storage._async.http import HttpConnections, check_credential
from eventhub_checkpoints.stores.azure_storage._async.store import StorageAccountStore
from eventhub_checkpoints.stores.azure_storage.messages import Verdict
from eventhub_checkpoints.stores.azure_storage.name_case import NameCase, checked_name_case
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    HistoryEntry,
    Listing,
    Lost,
    ScopeRows,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.record_format import is_row
from eventhub_checkpoints.stores.table import options, protocol, rest, transactions
from eventhub_checkpoints.stores.table._async.history import TableHistory
from eventhub_checkpoints.stores.table._async.requests import TableRequests
from eventhub_checkpoints.stores.table.protocol import SERVICE, Kind, Row
from eventhub_checkpoints.stores.table.rest import Entity, Key, Update

__all__ = ["TableCheckpointStore"]

TRANSACTIONS = 2
"""Requests for several renewals: if each of these has lost a claim, the others are sent singly."""


class TableCheckpointStore(KeepsHistory, StorageAccountStore):
    """Stores ownerships and checkpoints as entities of one table.

    Reads and writes the entities of npm's @azure/eventhubs-checkpointstore-table. The renewals of a
    round are one request.

    Args:
        table_account_url: `https://ACCOUNT.table.core.windows.net`, with or without a SAS.
        table_name: the table.
        credential: an account key, a SAS, a dict of `account_name` and `account_key`, or a
            credential of azure-core or azure-identity.
        api_version: version of the storage service.
        create_table: create the table before the first use if it does not exist.
        name_case: `"as-typed"` as JavaScript writes names, or `"lower"` for a group whose consumers
            spell its names in several ways.
        keep_history: keep earlier checkpoints, at most one a minute for each partition and those
            that a rewind replaced; see `list_history`. Each costs one more request. A write after
            `keep_next_write` is kept in any case.
        **kwargs: the settings of `BaseCheckpointStore`, and `connection_verify`, `connection_cert`,
            `proxies` and `use_env_settings` as those of azure-core.

    Raises:
        ConfigurationError: a setting or the table's name is invalid.
    """

    _service = SERVICE
    _requests: TableRequests

    @with_checked_arguments
    def __init__(
        self,
        table_account_url: str,
        table_name: str,
        credential: Any = None,
        *,
        api_version: str = protocol.DEFAULT_API_VERSION,
        create_table: bool = False,
        name_case: str = "as-typed",
        keep_history: bool = False,
        **kwargs: Any,
    ) -> None:
        settings, arguments = options.separated(kwargs)
        super().__init__(**settings)
        require_flag("create_table", create_table)
        require_flag("keep_history", keep_history)
        require_text("api_version", api_version, "a version such as '2019-02-02'")
        self.name_case = checked_name_case(name_case)
        self.creates = create_table
        check_credential(credential)
        endpoint = options.endpoint_of(table_account_url, credential)
        table = rest.Table(endpoint.url, SERVICE.checked_name(table_name), api_version)
        connection = options.connection_options(arguments, table.url)
        connect = partial(HttpConnections, connection, self.settings.max_concurrency)
        self._requests = TableRequests(table, endpoint.authorization, connect)
        self._history = TableHistory(
            self._requests, self.name_case, lambda: self.writer, keep_history
        )

    @classmethod
    @with_checked_arguments
    def from_connection_string(
        cls, conn_str: str, table_name: str, credential: Any = None, **kwargs: Any
    ) -> Self:
        """Open a table of the account that a connection string names.

        Raises:
            ConfigurationError: it is not a connection string of a storage account.
        """
        url, own = account.parse_connection_string(conn_str, SERVICE)
        return cls(url, table_name, own if credential is None else credential, **kwargs)

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **kwargs: Any) -> Self:
        """Open a table by URL, with the first credential found.

        In this order: the argument, the URL's SAS, the published key for an emulator's address,
        `AZURE_STORAGE_CONNECTION_STRING` if it is for the same account, and the default credential
        of azure-identity.

        Raises:
            ConfigurationError: it is not `table+https://ACCOUNT.table.core.windows.net/TABLE`, or
                there is no credential.
        """
        address = options.table_url(url)
        login = account.login_to(address, credential, SERVICE, "azure.identity.aio")
        store = cls(login.account_url, address.name, login.credential, **kwargs)
        store._owned = login.opened
        return store

    def __repr__(self) -> str:
        return f"TableCheckpointStore({self._requests.address})"

    async def open(self) -> None:
        if self.creates:
            await self._requests.create_table()

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return await self._read_all(scope, "Ownership", protocol.ownership_row)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        key = self._key(proposal.scope, "Ownership", proposal.partition_id)
        fields = protocol.ownership_fields(proposal.owner_id)
        if proposal.etag is None:
            answer = await self._requests.insert(key, fields)
        else:
            etag = protocol.sendable_etag(proposal.etag)
            answer = await self._requests.update(key, fields, etag)
            if protocol.verdict(answer) is Verdict.ABSENT:
                answer = await self._requests.insert(key, fields)
        return Won(proposal.won(0.0, answer)) if isinstance(answer, str) else Lost()

    async def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Answer]:
        answers: dict[Proposal, Answer] = {}
        for proposal in proposals:
            try:
                self._key(proposal.scope, "Ownership", proposal.partition_id)
            except InvalidRecordError as error:
                answers[proposal] = error
        storable = [proposal for proposal in proposals if proposal not in answers]
        requests = protocol.in_requests(storable, transactions.LIMIT)
        claim = partial(self._claim_together, answers)
        await for_each(claim, requests, self.settings.max_concurrency)
        return [answers[proposal] for proposal in proposals]

    async def _claim_together(
        self, answers: dict[Proposal, Answer], proposals: Sequence[Proposal]
    ) -> None:
        """Renew in one request, without the claims that are lost; after two losses, singly."""
        remaining, vanished = list(proposals), list[Proposal]()
        for _ in range(TRANSACTIONS):
            if len(remaining) < 2:
                break
            failed = await self._renew(answers, remaining)
            if failed is None:
                remaining = []
                break
            verdict = protocol.verdict(failed.refusal)
            if failed.index is None or verdict is Verdict.FAILED:
                break
            proposal = remaining.pop(failed.index)
            if verdict is Verdict.ABSENT:
                vanished.append(proposal)
            else:
                answers[proposal] = Lost()
        singly = partial(self._claim_singly, answers)
        await for_each(singly, [*remaining, *vanished], self.settings.max_concurrency)

    async def _renew(
        self, answers: dict[Proposal, Answer], proposals: Sequence[Proposal]
    ) -> transactions.Failed | None:
        """Send one transaction; None if each of its renewals has an answer now."""
        updates = [
            Update(
                self._key(each.scope, "Ownership", each.partition_id),
                protocol.ownership_fields(each.owner_id),
                protocol.sendable_etag(each.etag or ""),
            )
            for each in proposals
        ]
        began, engine = time.time(), self._engine
        try:
            outcome = await engine.runner.call(self._requests.update_all, updates)
        except CheckpointStoreError as error:
            answers.update(dict.fromkeys(proposals, error))
            return None
        if isinstance(outcome, transactions.Failed):
            return outcome
        for proposal, etag in zip(proposals, outcome, strict=True):
            won = Won(proposal.won(0.0, etag))
            answers[proposal] = engine.ownerships.remember(proposal, won, began)
        return None

    async def _claim_singly(self, answers: dict[Proposal, Answer], proposal: Proposal) -> None:
        began, engine = time.time(), self._engine
        try:
            answer = await engine.runner.call(self.try_claim, proposal)
        except CheckpointStoreError as error:
            answers[proposal] = error
        else:
            answers[proposal] = engine.ownerships.remember(proposal, answer, began)

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return await self._read_all(scope, "Checkpoint", protocol.checkpoint_row)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        key = self._key(checkpoint.scope, "Checkpoint", checkpoint.partition_id)
        fields = protocol.checkpoint_fields(checkpoint)
        is_due = self._history.is_due(checkpoint, seen)
        is_rewind = is_due and self._history.is_rewind(checkpoint, seen)
        replaced = await self._requests.read(key) if is_rewind else None
        if isinstance(seen, str):
            answer = await self._requests.update(key, fields, seen)
        elif seen is FORCE:
            answer = await self._requests.update(key, fields, None)
        else:
            answer = await self._requests.insert(key, fields)
        if isinstance(answer, str):
            if is_due:
                before = replaced and protocol.checkpoint_row(checkpoint.scope, replaced)
                await self._history.keep(checkpoint, before, is_rewind=is_rewind)
            return Written(answer)
        is_absent = protocol.verdict(answer) is Verdict.ABSENT
        entity = None if is_absent else await self._requests.read(key)
        return Conflict(entity and protocol.checkpoint_row(checkpoint.scope, entity))

    def _key(self, scope: Scope, kind: Kind, partition_id: str) -> Key:
        return protocol.entity_key(scope, kind, partition_id, self.name_case)

    async def _read_all(
        self,
        scope: Scope,
        kind: Kind,
        read: Callable[[Scope, Entity], Row],
        name_case: NameCase | None = None,
    ) -> Listing[Row]:
        key = protocol.partition_key(scope, kind, name_case or self.name_case)
        condition = rest.equals("PartitionKey", key)
        entities, server_now = await self._requests.list_entities(condition)
        return protocol.listing(entities, server_now, partial(read, scope))

    async def read_spellings(self, scope: Scope) -> Sequence[ScopeRows]:
        own = self.identity(scope)
        others = [each for each in await self._stored_scopes() if each.folded == own.folded]
        return [
            ScopeRows(
                other,
                await self._read_all(other, "Ownership", protocol.ownership_row, "as-typed"),
                await self._read_all(other, "Checkpoint", protocol.checkpoint_row, "as-typed"),
            )
            for other in others
            if other != own
        ]

    async def read_scopes(self) -> Sequence[Scope]:
        # Names that other writers stored in another case are not read by this store.
        return [scope for scope in await self._stored_scopes() if scope == self.identity(scope)]

    async def _stored_scopes(self) -> list[Scope]:
        keys = await self._requests.list_partition_keys()
        scopes = dict.fromkeys(map(protocol.scope_of, keys))
        return [scope for scope in scopes if scope is not None]

    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        keys: list[Key] = []
        for kind in protocol.KINDS:
            if partition_id is not None:
                keys.append(self._key(scope, kind, partition_id))
                continue
            partition = protocol.partition_key(scope, kind, self.name_case)
            condition = rest.equals("PartitionKey", partition)
            entities, _ = await self._requests.list_entities(condition, keys_only=True)
            keys += [entity.key for entity in entities if is_row(entity.key.row, {})]
        removed = await self._ask_each(self._requests.delete, keys)
        await self._history.delete(scope, partition_id)
        return sum(removed)

    def keep_next_write(self, scope: Scope, partition_id: str) -> None:
        self._history.mark(scope, partition_id)

    async def read_history(
        self, scope: Scope, partition_id: str | None, limit: int
    ) -> Listing[HistoryEntry]:
        return await self._history.read(scope, partition_id, limit)
