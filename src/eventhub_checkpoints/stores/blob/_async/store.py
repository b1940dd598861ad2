"""Checkpoint store in Azure Blob Storage, byte-compatible with the official SDKs."""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from azure.core.exceptions import HttpResponseError

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.abilities import FullCheckpointStore
from eventhub_checkpoints.stores._async.hooks import log
from eventhub_checkpoints.stores.blob._async.requests import (
    BlobAbilities,
    BlobProperties,
    BlobRequests,
    ContainerClient,
)
from eventhub_checkpoints.stores.blob._async.transport import check_credential, pooled
from eventhub_checkpoints.stores.blob.options import (
    check_client,
    connection_string_for,
    emulator_credential,
    made,
    separated,
    version_arguments,
    ways_to_a_credential,
)
from eventhub_checkpoints.stores.blob.protocol import (
    DEFAULT_API_VERSION,
    Kind,
    Verdict,
    bare_etag,
    blob_name,
    checked_name_case,
    checkpoint_metadata,
    is_blocked,
    ownership_metadata,
    prefix,
)
from eventhub_checkpoints.stores.blob.responses import (
    Row,
    checkpoint_row,
    error_code,
    ownership_row,
    readable_checkpoint,
    rows_of,
)
from eventhub_checkpoints.stores.blob.url import (
    ContainerUrl,
    checked_account,
    checked_connection_string,
    checked_container,
)
from eventhub_checkpoints.stores.credentials import default_credential
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)

OTHERS_POOL = 10
"""Connections that a client created elsewhere keeps. Source: requests, `DEFAULT_POOLSIZE`."""


class BlobCheckpointStore(BlobAbilities, FullCheckpointStore):
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
        api_version: str = DEFAULT_API_VERSION,
        secondary_hostname: str | None = None,
        container_client: ContainerClient | None = None,
        connect: Callable[..., ContainerClient] | None = None,
        create_container: bool = False,
        name_case: str = "lower",
        **kwargs: Any,
    ) -> None:
        settings, arguments = separated(kwargs)
        check_client(connect, container_client)
        if container_client is not None:
            wanted = settings.get("max_concurrency", OTHERS_POOL)
            settings["max_concurrency"] = min(wanted, OTHERS_POOL)
        super().__init__(**settings)
        self._name_case = checked_name_case(name_case)
        self.creates = create_container
        if container_client is not None:
            self._requests = BlobRequests(lambda: container_client)
            self._owned: list[Any] = []
            return
        check_credential(credential)
        arguments = version_arguments(api_version, arguments)
        if secondary_hostname:
            arguments["secondary_hostname"] = secondary_hostname
        make = connect or partial(
            made,
            ContainerClient,
            checked_account(blob_account_url),
            checked_container(container_name),
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
            made,
            ContainerClient.from_connection_string,
            checked_connection_string(conn_str),
            checked_container(container_name),
            credential,
        )
        return cls(connect=connect, **kwargs)

    @classmethod
    def from_container_url(cls, container_url: str, credential: Any = None, **kwargs: Any) -> Self:
        """Open the container of a URL, whose query may be a SAS; a credential replaces the SAS."""
        address = ContainerUrl.parse(container_url)
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
        address = ContainerUrl.parse(url)
        if credential is not None or address.sas:
            return cls.from_container_url(url, credential, **kwargs)
        if address.is_emulator:
            return cls.from_container_url(url, emulator_credential(), **kwargs)
        if text := connection_string_for(address):
            return cls.from_connection_string(text, address.container, **kwargs)
        found = default_credential("azure.identity.aio", ways_to_a_credential(address))
        store = cls.from_container_url(url, found, **kwargs)
        store._owned.append(found)
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
        return self._requests.map_error(error)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return await self._read_all(scope, "ownership", ownership_row)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        try:
            answer = await self._claim(proposal)
        except HttpResponseError as error:
            if not is_blocked(error.status_code, error_code(error)):
                raise
            # Raising would lose the claims of all other partitions for the client.
            log.warning("partition %s: %s", proposal.partition_id, self.map_error(error))
            return Lost()
        return Lost() if isinstance(answer, Verdict) else Won(proposal.won(0.0, answer))

    async def _claim(self, proposal: Proposal) -> str | Verdict:
        name = self._name(proposal.scope, "ownership", proposal.partition_id)
        metadata = ownership_metadata(proposal.owner_id)
        answer: str | Verdict = Verdict.ABSENT
        if proposal.etag is not None:
            answer = await self._requests.update(name, metadata, bare_etag(proposal.etag))
        if answer is Verdict.ABSENT:
            answer = await self._requests.create(name, metadata)
        return answer

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return await self._read_all(scope, "checkpoint", readable_checkpoint)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        name = self._name(checkpoint.scope, "checkpoint", checkpoint.partition_id)
        metadata = checkpoint_metadata(checkpoint)
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
        return Conflict(checkpoint_row(checkpoint.scope, checkpoint.partition_id, blob))

    def _name(self, scope: Scope, kind: Kind, partition_id: str) -> str:
        return blob_name(scope, kind, partition_id, self._name_case)

    async def _read_all(
        self, scope: Scope, kind: Kind, read: Callable[[Scope, str, BlobProperties], Row | None]
    ) -> Listing[Row]:
        start = prefix(scope, kind, self._name_case)
        blobs, server_now = await self._requests.list_blobs(start)
        return rows_of(blobs, start, server_now, partial(read, scope))
