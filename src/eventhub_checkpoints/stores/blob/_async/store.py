"""Checkpoint store in Azure Blob Storage, byte-compatible with the official SDKs."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobProperties
from azure.storage.blob.aio import BlobClient, ContainerClient

from eventhub_checkpoints._shared._async.compat import for_each
from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores._async.hooks import log
from eventhub_checkpoints.stores.blob import options, protocol
from eventhub_checkpoints.stores.blob._async.transport import check_credential, pooled
from eventhub_checkpoints.stores.blob.protocol import Kind, Row, Verdict
from eventhub_checkpoints.stores.connections import PerProcessClient, default_credential
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.record_format import is_row

__all__ = ["BlobCheckpointStore", "BlobProperties", "BlobRequests", "ContainerClient"]

T = TypeVar("T")
Item = TypeVar("Item")
Hook = Callable[[Any], Any]

CONNECT_SECONDS = 10.0
OTHERS_POOL = 10
"""Connections in the pool of a client that the caller created.

Source: requests, `DEFAULT_POOLSIZE`.
"""


class BlobRequests:
    """Requests to one container, limited to the time that the current call has left.

    Args:
        connect: creates the client; see `PerProcessClient`.
        hook: the caller's `raw_response_hook`; for lists, this class sets its own, which calls it.
    """

    def __init__(self, connect: Callable[[], ContainerClient], hook: Hook | None = None) -> None:
        self._client = PerProcessClient(connect)
        self._hook = hook
        self._blobs: dict[str, BlobClient] = {}

    def begin_anew(self) -> None:
        """Create a new client."""
        self._client.begin_anew()
        self._blobs = {}

    @property
    def container(self) -> ContainerClient:
        """Return the client of this process and event loop."""
        return self._client.now

    @property
    def address(self) -> str:
        """Return the container's URL, without a SAS."""
        return str(self.container.url).partition("?")[0]

    async def create_container(self) -> None:
        """Create the container, unless it exists."""
        try:
            await self.container.create_container(**self.bounds())
        except ResourceExistsError as error:
            if protocol.error_code(error) != "ContainerAlreadyExists":
                raise

    async def create(
        self, name: str, metadata: dict[str, str], overwrite: bool = False
    ) -> str | Verdict:
        """Send Put Blob; return the new etag, or the reason for a failure."""
        try:
            answer = await self._blob(name).upload_blob(
                b"", overwrite=overwrite, metadata=metadata, **self.bounds()
            )
        except HttpResponseError as error:
            return protocol.expected(error)
        return protocol.new_etag(answer)

    async def update(self, name: str, metadata: dict[str, str], etag: str | None) -> str | Verdict:
        """Send Set Blob Metadata, if the etag matches or is None; return as `create`."""
        condition: dict[str, Any] = {}
        if etag is not None:
            condition = {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}
        try:
            answer = await self._blob(name).set_blob_metadata(
                metadata, **condition, **self.bounds()
            )
        except HttpResponseError as error:
            reason = protocol.expected(error)
            is_unclear = reason is Verdict.LOST and protocol.may_be_absent(error)
            if is_unclear and await self.read(name) is None:
                return Verdict.ABSENT
            return reason
        return protocol.new_etag(answer)

    async def read(self, name: str) -> BlobProperties | None:
        """Send Get Blob Properties; return None if the blob does not exist."""
        try:
            return await self._blob(name).get_blob_properties(**self.bounds())
        except HttpResponseError as error:
            # A response without a body may have no error code; for a missing container it has one.
            if error.status_code == 404 and protocol.error_code(error) in {"BlobNotFound", ""}:
                return None
            raise

    async def delete(self, name: str) -> bool:
        """Send Delete Blob; return whether the blob existed."""
        try:
            await self._blob(name).delete_blob(**self.bounds())
        except HttpResponseError as error:
            if protocol.expected(error) is not Verdict.ABSENT:
                raise
            return False
        return True

    async def list_blobs(self, prefix: str) -> tuple[list[BlobProperties], float | None]:
        """List blobs with their metadata; also return the service's time at the last page."""
        dates: list[str | None] = []

        def on_page(response: Any) -> None:
            if self._hook is not None:
                self._hook(response)
            dates.append(response.http_response.headers.get("Date"))

        ask = partial(self.container.list_blobs, name_starts_with=prefix, include=["metadata"])
        blobs = await self._paged(partial(ask, raw_response_hook=on_page))
        return blobs, protocol.server_time(dates[-1] if dates else None)

    async def list_below(self, prefix: str) -> list[str]:
        """List one level of the blobs' names: each prefix up to the next `/`."""
        items = await self._paged(partial(self.container.walk_blobs, name_starts_with=prefix))
        return [item.name for item in items if not isinstance(item, BlobProperties)]

    async def _paged(self, ask: Callable[..., Any]) -> list[Any]:
        items: list[Any] = []
        marker: str | None = ""
        while marker is not None:
            pages = ask(**self.bounds()).by_page(marker or None)
            async for page in pages:
                async for item in page:
                    items.append(item)
                break  # the next page is requested with the time that is left then
            marker = pages.continuation_token or None
        return items

    async def close(self) -> None:
        """Close the client, unless it belongs to the parent process."""
        if self._client.is_of_this_process:
            await self.container.close()

    @property
    def where(self) -> str:
        """Return the container and its account, for messages."""
        account = self.address.rpartition("/")[0]
        return f"container {self.container.container_name!r} of {account}"

    def _blob(self, name: str) -> BlobClient:
        blob = self._blobs.get(name)
        if blob is None:
            blob = self._blobs[name] = self.container.get_blob_client(name)
        return blob

    @staticmethod
    def bounds() -> dict[str, Any]:
        """Return the options of a request: its timeouts, and no retries."""
        left = bound()
        return {
            "retry_total": 0,
            # A redirect would send the credential to another address, and the driver would retry.
            "permit_redirects": False,
            "connection_timeout": min(left, CONNECT_SECONDS),
            "read_timeout": left,
        }


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
        container_client: ContainerClient | None = None,
        connect: Callable[..., ContainerClient] | None = None,
        create_container: bool = False,
        name_case: str = "lower",
        **kwargs: Any,
    ) -> None:
        settings, arguments = options.separated(kwargs)
        options.check_client(connect, container_client)
        if container_client is not None:
            limit = settings.get("max_concurrency", OTHERS_POOL)
            settings["max_concurrency"] = min(limit, OTHERS_POOL)
        super().__init__(**settings)
        self._name_case = protocol.checked_name_case(name_case)
        self.creates = create_container
        if container_client is not None:
            self._requests = BlobRequests(lambda: container_client)
            self._owned: list[Any] = []
            return
        check_credential(credential)
        arguments = options.version_arguments(api_version, arguments)
        if secondary_hostname:
            arguments["secondary_hostname"] = secondary_hostname
        make = connect or partial(
            options.made,
            ContainerClient,
            options.checked_account(blob_account_url),
            options.checked_container(container_name),
            credential,
        )
        self._requests = BlobRequests(
            lambda: make(**pooled(self.settings.max_concurrency, arguments)),
            arguments.get("raw_response_hook"),
        )
        self._owned = [self._requests]

    @classmethod
    def from_connection_string(
        cls, conn_str: str, container_name: str, credential: Any = None, **kwargs: Any
    ) -> Self:
        """Open a container of the account that a connection string names.

        Raises:
            ConfigurationError: it is not a connection string of a storage account.
        """
        check_credential(credential)
        connect = partial(
            options.made,
            ContainerClient.from_connection_string,
            options.checked_connection_string(conn_str),
            options.checked_container(container_name),
            credential,
        )
        return cls(connect=connect, **kwargs)

    @classmethod
    def from_container_url(cls, container_url: str, credential: Any = None, **kwargs: Any) -> Self:
        """Open the container of a URL, whose query may be a SAS; a credential replaces the SAS."""
        address = options.ContainerUrl.parse(container_url)
        account = address.account_url
        if address.sas and credential is None:
            account = f"{account}?{address.sas}"
        return cls(account, address.container, credential, **kwargs)

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **kwargs: Any) -> Self:
        """Open a container by URL, with the first credential found.

        In this order: the argument, the URL's SAS, the published key for an emulator's address,
        `AZURE_STORAGE_CONNECTION_STRING` if it is for the same account, and the default credential
        of azure-identity.

        Raises:
            ConfigurationError: it is not a container's URL, or there is no credential.
        """
        address = options.ContainerUrl.parse(url)
        if credential is not None or address.sas:
            return cls.from_container_url(url, credential, **kwargs)
        if address.is_emulator:
            key = AzureNamedKeyCredential(protocol.EMULATOR_ACCOUNT, protocol.EMULATOR_KEY)
            return cls.from_container_url(url, key, **kwargs)
        if text := options.connection_string_for(address):
            return cls.from_connection_string(text, address.container, **kwargs)
        otherwise = (
            f"no credential for {address.account_url}: pass credential=, put a SAS into the URL, "
            f"set {options.CONNECTION_STRING} for that account, or install azure-identity"
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
        """Close what this store opened: its client, and a default credential."""
        await super().close()
        for opened in self._owned:
            await opened.close()

    def drop_connections(self) -> None:
        self._requests.begin_anew()

    def identity(self, scope: Scope) -> Scope:
        return scope.folded if self._name_case == "lower" else scope

    def map_error(self, error: Exception) -> CheckpointStoreError:
        return protocol.mapped(error, self._requests.where)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return await self._read_all(scope, "ownership", protocol.ownership_row)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        name = self._name(proposal.scope, "ownership", proposal.partition_id)
        metadata = protocol.ownership_metadata(proposal.owner_id)
        answer: str | Verdict = Verdict.ABSENT
        try:
            if proposal.etag is not None:
                etag = protocol.bare_etag(proposal.etag)
                answer = await self._requests.update(name, metadata, etag)
            if answer is Verdict.ABSENT:
                answer = await self._requests.create(name, metadata)
        except HttpResponseError as error:
            if not protocol.is_blocked(error.status_code, protocol.error_code(error)):
                raise
            # Raising would lose the claims of all other partitions for the client.
            log.warning("partition %s: %s", proposal.partition_id, self.map_error(error))
            return Lost()
        return Lost() if isinstance(answer, Verdict) else Won(proposal.won(0.0, answer))

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
            if answer is Verdict.ABSENT:
                answer = await self._requests.create(name, metadata, overwrite=True)
        else:
            answer = await self._requests.create(name, metadata)
        if isinstance(answer, str):
            return Written(answer)
        if answer is Verdict.ABSENT:
            return Conflict(None)
        blob = await self._requests.read(name)
        if blob is None:
            return Conflict(None)
        return Conflict(protocol.checkpoint_row(checkpoint.scope, checkpoint.partition_id, blob))

    def _name(self, scope: Scope, kind: Kind, partition_id: str) -> str:
        return protocol.blob_name(scope, kind, partition_id, self._name_case)

    async def _read_all(
        self, scope: Scope, kind: Kind, read: Callable[[Scope, str, BlobProperties], Row]
    ) -> Listing[Row]:
        start = protocol.prefix(scope, kind, self._name_case)
        blobs, server_now = await self._requests.list_blobs(start)
        return protocol.listing(blobs, start, server_now, partial(read, scope))

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
                names.append(protocol.blob_name(scope, kind, partition_id, self._name_case))
        return sum(await self._ask_each(self._requests.delete, names))

    async def _holds_rows(self, scope: Scope) -> bool:
        owned = await self._row_names(scope, "ownership")
        return bool(owned or await self._row_names(scope, "checkpoint"))

    async def _row_names(self, scope: Scope, kind: Kind) -> list[str]:
        start = protocol.prefix(scope, kind, self._name_case)
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
