"""Checkpoint store in Azure Blob Storage, byte-compatible with the official SDKs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from azure.core.credentials import AzureNamedKeyCredential

from eventhub_checkpoints._shared._async.compat import for_each
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores._async.engine import PROBE, PROBE_PARTITION
from eventhub_checkpoints.stores._async.hooks import log
from eventhub_checkpoints.stores.azure_storage import account, errors
from eventhub_checkpoints.stores.azure_storage._async.http import HttpConnections, check_credential
from eventhub_checkpoints.stores.azure_storage.connection_options import ConnectionOptions
from eventhub_checkpoints.stores.blob import options, protocol
from eventhub_checkpoints.stores.blob._async.requests import BlobRequests
from eventhub_checkpoints.stores.blob._async.rest import RestTransport
from eventhub_checkpoints.stores.blob.options import SERVICE
from eventhub_checkpoints.stores.blob.protocol import Kind, Row, Verdict
from eventhub_checkpoints.stores.blob.rest import Blob, Container
from eventhub_checkpoints.stores.connections import default_credential
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    ScopeRows,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.record_format import is_row

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient

    from eventhub_checkpoints.stores.blob._async.driver import DriverTransport

__all__ = ["BlobCheckpointStore"]

T = TypeVar("T")
Item = TypeVar("Item")

OTHERS_POOL = 10
"""Connections in the pool of a client that the caller created.

Source: requests, `DEFAULT_POOLSIZE`.
"""


class BlobCheckpointStore(FullCheckpointStore):
    """Stores ownerships and checkpoints as metadata of empty blobs in one container.

    Takes the arguments of azure-eventhub-checkpointstoreblob, and reads and writes its blobs.

    Args:
        blob_account_url: `https://ACCOUNT.blob.core.windows.net`, with or without a SAS.
        container_name: the container; use one for each consumer group.
        credential: any credential that azure-storage-blob accepts.
        api_version: version of the storage service, for example an older one for Azure Stack Hub.
        secondary_hostname: host name of the account's secondary endpoint.
        container_client: a ready client instead of all of the above. It is not closed, is used
            with at most 10 connections, and must not be used in a forked process. Its own
            `raw_response_hook` is not called for lists.
        connect: creates the client from the keyword arguments of `ContainerClient`, instead of
            URL, name and credential; called again in a forked process or another event loop.
        create_container: create the container before the first use if it does not exist.
        name_case: `"lower"` as .NET, Python and JavaScript write names, or `"as-typed"` to share
            a group with Java, Go or Rust.
        lean: send requests without azure-storage-blob where that is possible; False: never. The
            driver is used for `container_client` and `connect`, while azure-core's tracing is
            switched on, and if an argument below is for the driver's client, except
            `connection_verify`, `connection_cert`, `proxies` and `use_env_settings`.
        **kwargs: the settings of `BaseCheckpointStore`; all others go to the driver's client.

    Raises:
        ConfigurationError: a setting or the container's name is invalid.
    """

    makes_own_etags = True

    def __init__(
        self,
        blob_account_url: str = "",
        container_name: str = "",
        credential: Any = None,
        *,
        api_version: str = protocol.DEFAULT_API_VERSION,
        secondary_hostname: str | None = None,
        container_client: "ContainerClient | None" = None,
        connect: "Callable[..., ContainerClient] | None" = None,
        create_container: bool = False,
        name_case: str = "lower",
        lean: bool = True,
        **kwargs: Any,
    ) -> None:
        settings, arguments = options.separated(kwargs)
        options.check_client(connect, container_client)
        if container_client is not None:
            limit = settings.get("max_concurrency", OTHERS_POOL)
            settings["max_concurrency"] = min(limit, OTHERS_POOL)
        super().__init__(**settings)
        self.name_case = protocol.checked_name_case(name_case)
        self.creates = create_container
        self._ready_client = container_client
        self._owned: list[Any] = []
        if container_client is not None:
            self._requests = BlobRequests(None, self._driver)
            return
        check_credential(credential)
        if secondary_hostname:
            arguments["secondary_hostname"] = secondary_hostname
        self._arguments, self._api_version = arguments, api_version
        self._connect = connect or options.ContainerLogin(
            account.checked_account(blob_account_url, SERVICE),
            options.checked_container(container_name),
            credential,
        )
        self._requests = BlobRequests(self._without_driver() if lean else None, self._driver)

    def _without_driver(self) -> RestTransport | None:
        login = self._connect
        if not isinstance(login, options.ContainerLogin):
            return None
        endpoint = account.Endpoint.of(login.account_url, login.credential, SERVICE)
        if endpoint is None:
            return None
        container = Container(endpoint.url, login.container, self._api_version)
        connection = ConnectionOptions.of(self._arguments, container.url)
        if connection is None:
            return None
        connect = partial(HttpConnections, connection, self.settings.max_concurrency)
        return RestTransport(container, endpoint.authorization, connect)

    def _driver(self) -> "DriverTransport":
        from eventhub_checkpoints.stores.blob._async import driver

        ready = self._ready_client
        if ready is not None:
            return driver.DriverTransport(lambda: ready, is_own=False)
        return driver.connecting(
            self._connect, self._api_version, self._arguments, self.settings.max_concurrency
        )

    @classmethod
    def from_connection_string(
        cls, conn_str: str, container_name: str, credential: Any = None, **kwargs: Any
    ) -> Self:
        """Open a container of the account that a connection string names.

        Raises:
            ConfigurationError: it is not a connection string of a storage account.
        """
        url, own = account.parse_connection_string(conn_str, SERVICE)
        return cls(url, container_name, own if credential is None else credential, **kwargs)

    @classmethod
    def from_container_url(cls, container_url: str, credential: Any = None, **kwargs: Any) -> Self:
        """Open the container of a URL, whose query may be a SAS; a credential replaces the SAS."""
        address = options.container_url(container_url)
        account_url = address.account_url
        if address.sas and credential is None:
            account_url = f"{account_url}?{address.sas}"
        return cls(account_url, address.name, credential, **kwargs)

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **kwargs: Any) -> Self:
        """Open a container by URL, with the first credential found.

        In this order: the argument, the URL's SAS, the published key for an emulator's address,
        `AZURE_STORAGE_CONNECTION_STRING` if it is for the same account, and the default credential
        of azure-identity.

        Raises:
            ConfigurationError: it is not a container's URL, or there is no credential.
        """
        address = options.container_url(url)
        if credential is not None or address.sas:
            return cls.from_container_url(url, credential, **kwargs)
        if address.is_emulator:
            key = AzureNamedKeyCredential(account.EMULATOR_ACCOUNT, account.EMULATOR_KEY)
            return cls.from_container_url(url, key, **kwargs)
        if text := account.connection_string_for(address, SERVICE):
            return cls.from_connection_string(text, address.name, **kwargs)
        otherwise = (
            f"no credential for {address.account_url}: pass credential=, put a SAS into the URL, "
            f"set {account.CONNECTION_STRING} for that account, or install azure-identity"
        )
        opened = default_credential("azure.identity.aio", otherwise)
        store = cls.from_container_url(url, opened, **kwargs)
        store._owned.append(opened)
        return store

    def __repr__(self) -> str:
        return f"BlobCheckpointStore({self._requests.address})"

    async def open(self) -> None:
        if self.creates:
            await self._requests.create_container()

    async def close(self) -> None:
        """Close what this store opened: its connections, and a default credential."""
        await super().close()
        await self._requests.close()
        for opened in self._owned:
            await opened.close()

    def drop_connections(self) -> None:
        self._requests.reset()

    def identity(self, scope: Scope) -> Scope:
        return scope.folded if self.name_case == "lower" else scope

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return errors.mapped(error, protocol.described(self._requests.address))

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return await self._read_all(scope, "ownership", protocol.ownership_row)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        name = self._name(proposal.scope, "ownership", proposal.partition_id)
        metadata = protocol.ownership_metadata(proposal.owner_id)
        if proposal.etag is None:
            answer = await self._requests.create(name, metadata)
        else:
            etag = protocol.bare_etag(proposal.etag)
            answer = await self._requests.update(name, metadata, etag)
            if protocol.verdict(answer) is Verdict.ABSENT:
                answer = await self._requests.create(name, metadata)
        if isinstance(answer, str):
            return Won(proposal.won(0.0, answer))
        if protocol.verdict(answer) is Verdict.BLOCKED:
            # Raising would lose the claims of all other partitions for the client.
            failure = self._requests.failure(answer)
            log.warning("partition %s: %s", proposal.partition_id, failure)
        return Lost()

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return await self._read_all(scope, "checkpoint", protocol.checkpoint_row)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        name = self._name(checkpoint.scope, "checkpoint", checkpoint.partition_id)
        metadata = protocol.checkpoint_metadata(checkpoint)
        if isinstance(seen, str):
            answer = await self._requests.update(name, metadata, seen)
        elif seen is FORCE:
            answer = await self._requests.update(name, metadata, None)
            if protocol.verdict(answer) is Verdict.ABSENT:
                answer = await self._requests.create(name, metadata, overwrite=True)
        else:
            answer = await self._requests.create(name, metadata)
        if isinstance(answer, str):
            return Written(answer)
        verdict = protocol.verdict(answer)
        if verdict is Verdict.BLOCKED:
            raise self._requests.failure(answer)
        blob = None if verdict is Verdict.ABSENT else await self._requests.read(name)
        if blob is None:
            return Conflict(None)
        return Conflict(protocol.checkpoint_row(checkpoint.scope, checkpoint.partition_id, blob))

    def _name(self, scope: Scope, kind: Kind, partition_id: str) -> str:
        return protocol.blob_name(scope, kind, partition_id, self.name_case)

    async def _read_all(
        self,
        scope: Scope,
        kind: Kind,
        read: Callable[[Scope, str, Blob], Row],
        name_case: protocol.NameCase | None = None,
    ) -> Listing[Row]:
        start = protocol.prefix(scope, kind, name_case or self.name_case)
        blobs, server_now = await self._requests.list_blobs(start)
        return protocol.listing(blobs, start, server_now, partial(read, scope))

    async def read_spellings(self, scope: Scope) -> Sequence[ScopeRows]:
        prefixes = [""]
        for depth in range(1, len(scope) + 1):
            below = await self._ask_each(self._requests.list_below, prefixes)
            group = "/".join(scope.folded[:depth]) + "/"
            prefixes = [name for names in below for name in names if name.lower() == group]
        own = self.identity(scope)
        found: list[ScopeRows] = []
        for prefix in prefixes:
            spelled = protocol.scope_of(prefix)
            if spelled is None or spelled == own:
                continue
            rows = ScopeRows(
                spelled,
                await self._read_all(spelled, "ownership", protocol.ownership_row, "as-typed"),
                await self._read_all(spelled, "checkpoint", protocol.checkpoint_row, "as-typed"),
            )
            if rows.ownerships.rows or rows.checkpoints.rows:
                found.append(rows)
        return found

    async def read_settings(self) -> Mapping[str, bool | None]:
        from eventhub_checkpoints.stores.blob._async import driver

        probe = protocol.blob_name(PROBE, "checkpoint", PROBE_PARTITION, self.name_case)
        if self._ready_client is not None:
            return await driver.settings_of(self._ready_client, None, probe)
        return await driver.read_settings(self._connect, self._arguments, probe)

    async def read_scopes(self) -> Sequence[Scope]:
        levels = [""]
        for _ in Scope._fields:
            below = await self._ask_each(self._requests.list_below, levels)
            levels = [name for names in below for name in names]
        # Names that other writers stored in another case are not read by this store.
        scopes = [
            scope
            for level in levels
            if (scope := protocol.scope_of(level)) and scope == self.identity(scope)
        ]
        held = await self._ask_each(self._holds_rows, scopes)
        return [scope for scope, is_held in zip(scopes, held, strict=True) if is_held]

    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        names: list[str] = []
        for kind in protocol.KINDS:
            if partition_id is None:
                names += await self._row_names(scope, kind)
            else:
                names.append(protocol.blob_name(scope, kind, partition_id, self.name_case))
        return sum(await self._ask_each(self._requests.delete, names))

    async def _holds_rows(self, scope: Scope) -> bool:
        owned = await self._row_names(scope, "ownership")
        return bool(owned or await self._row_names(scope, "checkpoint"))

    async def _row_names(self, scope: Scope, kind: Kind) -> list[str]:
        start = protocol.prefix(scope, kind, self.name_case)
        blobs, _ = await self._requests.list_blobs(start)
        return [
            str(blob.name)
            for blob in blobs
            if is_row(str(blob.name)[len(start) :], blob.metadata or {})
        ]

    async def _ask_each(
        self, function: Callable[[Item], Awaitable[T]], items: Sequence[Item]
    ) -> list[T]:
        async def attempted(item: Item) -> T | Exception:
            # Raised inside the task group, it would become an ExceptionGroup, which is not mapped.
            try:
                return await function(item)
            except Exception as error:
                return error

        answers = await for_each(attempted, items, self.settings.max_concurrency)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in answers if not isinstance(answer, Exception)]
