# Derived from _async/store.py by tools/unasync.py; edit that file.
"""Checkpoint store in Azure Blob Storage, byte-compatible with the official SDKs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from eventhub_checkpoints._shared.settings import require_flag, require_text
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._sync.engine import PROBE, PROBE_PARTITION
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.azure_storage import account
from eventhub_checkpoints.stores.azure_storage._sync.http import HttpConnections, check_credential
from eventhub_checkpoints.stores.azure_storage._sync.store import StorageAccountStore
from eventhub_checkpoints.stores.azure_storage.connection_options import ConnectionOptions
from eventhub_checkpoints.stores.azure_storage.messages import Verdict
from eventhub_checkpoints.stores.azure_storage.name_case import checked_name_case
from eventhub_checkpoints.stores.blob import options, protocol
from eventhub_checkpoints.stores.blob._sync.requests import BlobRequests
from eventhub_checkpoints.stores.blob._sync.rest import RestTransport
from eventhub_checkpoints.stores.blob.protocol import SERVICE, BlobNames, Kind, Row
from eventhub_checkpoints.stores.blob.rest import Blob, Container
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
    from azure.storage.blob import ContainerClient

    from eventhub_checkpoints.stores.blob._sync.driver import DriverTransport

__all__ = ["BlobCheckpointStore"]

MOST_PREFIXES = 100
"""Names at the top of a container that are looked into for prefixes of other stores."""
OTHERS_POOL = 10
"""Connections in the pool of a client that the caller created.

Source: requests, `DEFAULT_POOLSIZE`.
"""


class BlobCheckpointStore(StorageAccountStore):
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
        prefix: a name, or several with `/` between, before the names of all blobs, so that teams
            can share a container. Official SDKs and KEDA do not see a group with a prefix.
        lean: send requests without azure-storage-blob where that is possible; False: never. The
            driver is used for `container_client` and `connect`, while azure-core's tracing is
            switched on, and if an argument below is for the driver's client, except
            `connection_verify`, `connection_cert`, `proxies` and `use_env_settings`.
        **kwargs: the settings of `BaseCheckpointStore`; all others go to the driver's client.

    Raises:
        ConfigurationError: a setting or the container's name is invalid.
    """

    _service = SERVICE
    _requests: BlobRequests

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
        prefix: str | None = None,
        lean: bool = True,
        **kwargs: Any,
    ) -> None:
        settings, arguments = options.separated(kwargs)
        options.check_client(connect, container_client)
        require_flag("create_container", create_container)
        require_flag("lean", lean)
        require_text("api_version", api_version, "a version such as '2019-07-07'")
        if secondary_hostname is not None:
            require_text("secondary_hostname", secondary_hostname, "the name of a host")
        if container_client is not None:
            limit = settings.get("max_concurrency", OTHERS_POOL)
            settings["max_concurrency"] = min(limit, OTHERS_POOL)
        super().__init__(**settings)
        self.name_case = checked_name_case(name_case)
        self.prefix = protocol.checked_prefix(prefix)
        self._names = protocol.BlobNames(self.name_case, self.prefix and f"{self.prefix}/")
        self.creates = create_container
        self._ready_client = container_client
        if container_client is not None:
            self._requests = BlobRequests(None, self._driver)
            return
        check_credential(credential)
        if secondary_hostname:
            arguments["secondary_hostname"] = secondary_hostname
        self._arguments, self._api_version = arguments, api_version
        self._connect = connect or options.ContainerLogin(
            account.checked_account(blob_account_url, SERVICE),
            SERVICE.checked_name(container_name),
            account.with_account_name(blob_account_url, credential, SERVICE),
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
        from eventhub_checkpoints.stores.blob._sync import driver

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
    def from_container_url(
        cls, container_url: str, credential: Any = None, *, prefix: str | None = None, **kwargs: Any
    ) -> Self:
        """Open the container of a URL, whose query may be a SAS; a credential replaces the SAS.

        The query may also contain `prefix`.
        """
        address, prefix = options.container_url(container_url, prefix)
        account_url = address.account_url
        if address.sas and credential is None:
            account_url = f"{account_url}?{address.sas}"
        return cls(account_url, address.name, credential, prefix=prefix, **kwargs)

    @classmethod
    def from_url(
        cls, url: str, *, credential: Any = None, prefix: str | None = None, **kwargs: Any
    ) -> Self:
        """Open a container by URL, whose query may contain `prefix`, with the first credential.

        In this order: the argument, the URL's SAS, the published key for an emulator's address,
        `AZURE_STORAGE_CONNECTION_STRING` if it is for the same account, and the default credential
        of azure-identity.

        Raises:
            ConfigurationError: it is not a container's URL, or there is no credential.
        """
        address, kwargs["prefix"] = options.container_url(url, prefix)
        login = account.login_to(address, credential, SERVICE, "azure.identity")
        store = cls(login.account_url, address.name, login.credential, **kwargs)
        store._owned = login.opened
        return store

    def __repr__(self) -> str:
        prefix = f", prefix={self.prefix!r}" if self.prefix else ""
        return f"BlobCheckpointStore({self._requests.address}{prefix})"

    def open(self) -> None:
        if self.creates:
            self._requests.create_container()

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return self._read_all(scope, "ownership", protocol.ownership_row)

    def try_claim(self, proposal: Proposal) -> Won | Lost:
        name = self._name(proposal.scope, "ownership", proposal.partition_id)
        metadata = protocol.ownership_metadata(proposal.owner_id)
        if proposal.etag is None:
            answer = self._requests.create(name, metadata)
        else:
            etag = protocol.bare_etag(proposal.etag)
            answer = self._requests.update(name, metadata, etag)
            if protocol.verdict(answer) is Verdict.ABSENT:
                answer = self._requests.create(name, metadata)
        if isinstance(answer, str):
            return Won(proposal.won(0.0, answer))
        if protocol.verdict(answer) is Verdict.BLOCKED:
            # Raising would lose the claims of all other partitions for the client.
            failure = self._requests.failure(answer)
            log.warning("partition %s: %s", proposal.partition_id, failure)
        return Lost()

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return self._read_all(scope, "checkpoint", protocol.checkpoint_row)

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        name = self._name(checkpoint.scope, "checkpoint", checkpoint.partition_id)
        metadata = protocol.checkpoint_metadata(checkpoint)
        if isinstance(seen, str):
            answer = self._requests.update(name, metadata, seen)
        elif seen is FORCE:
            answer = self._requests.update(name, metadata, None)
            if protocol.verdict(answer) is Verdict.ABSENT:
                answer = self._requests.create(name, metadata, overwrite=True)
        else:
            answer = self._requests.create(name, metadata)
        if isinstance(answer, str):
            return Written(answer)
        verdict = protocol.verdict(answer)
        if verdict is Verdict.BLOCKED:
            raise self._requests.failure(answer)
        blob = None if verdict is Verdict.ABSENT else self._requests.read(name)
        if blob is None:
            return Conflict(None)
        return Conflict(protocol.checkpoint_row(checkpoint.scope, checkpoint.partition_id, blob))

    def _name(self, scope: Scope, kind: Kind, partition_id: str) -> str:
        return protocol.blob_name(self._names, scope, kind, partition_id)

    def _read_all(
        self,
        scope: Scope,
        kind: Kind,
        read: Callable[[Scope, str, Blob], Row],
        names: BlobNames | None = None,
    ) -> Listing[Row]:
        start = (names or self._names).start(scope, kind)
        blobs, server_now = self._requests.list_blobs(start)
        return protocol.listing(blobs, start, server_now, partial(read, scope))

    def read_spellings(self, scope: Scope) -> Sequence[ScopeRows]:
        top = self._requests.list_below("")
        # A container may hold much that is not ours: then only the likely places are looked into.
        others = top if len(top) <= MOST_PREFIXES else []
        prefixes = [*dict.fromkeys(["", self._names.prefix, *others])]
        spellings = self._ask_each(partial(self._spellings_below, scope), prefixes)
        return [rows for of_prefix in spellings for rows in of_prefix]

    def _spellings_below(self, scope: Scope, prefix: str) -> list[ScopeRows]:
        levels = [prefix]
        for depth in range(1, len(scope) + 1):
            below = self._ask_each(self._requests.list_below, levels)
            group = "/".join(scope.folded[:depth]) + "/"
            levels = [
                name
                for names in below
                for name in names
                if name.removeprefix(prefix).lower() == group
            ]
        names, own = BlobNames("as-typed", prefix), self.identity(scope)
        spellings: list[ScopeRows] = []
        for level in levels:
            stored = names.scope_of(level)
            if stored is None or (prefix == self._names.prefix and stored == own):
                continue
            rows = ScopeRows(
                stored,
                self._read_all(stored, "ownership", protocol.ownership_row, names),
                self._read_all(stored, "checkpoint", protocol.checkpoint_row, names),
                prefix.removesuffix("/"),
            )
            if rows.ownerships.rows or rows.checkpoints.rows:
                spellings.append(rows)
        return spellings

    def read_settings(self) -> Mapping[str, bool | None]:
        from eventhub_checkpoints.stores.blob._sync import driver

        probe = self._name(PROBE, "checkpoint", PROBE_PARTITION)
        if self._ready_client is not None:
            return driver.settings_of(self._ready_client, None, probe)
        return driver.read_settings(self._connect, self._arguments, probe)

    def read_scopes(self) -> Sequence[Scope]:
        levels = [self._names.prefix]
        for _ in Scope._fields:
            below = self._ask_each(self._requests.list_below, levels)
            levels = [name for names in below for name in names]
        # Names that other writers stored in another case are not read by this store.
        scopes = [
            scope
            for level in levels
            if (scope := self._names.scope_of(level)) and scope == self.identity(scope)
        ]
        held = self._ask_each(self._holds_rows, scopes)
        return [scope for scope, is_held in zip(scopes, held, strict=True) if is_held]

    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        names: list[str] = []
        for kind in protocol.KINDS:
            if partition_id is None:
                names += self._row_names(scope, kind)
            else:
                names.append(self._name(scope, kind, partition_id))
        return sum(self._ask_each(self._requests.delete, names))

    def _holds_rows(self, scope: Scope) -> bool:
        owned = self._row_names(scope, "ownership")
        return bool(owned or self._row_names(scope, "checkpoint"))

    def _row_names(self, scope: Scope, kind: Kind) -> list[str]:
        start = self._names.start(scope, kind)
        blobs, _ = self._requests.list_blobs(start)
        return [
            str(blob.name)
            for blob in blobs
            if is_row(str(blob.name)[len(start) :], blob.metadata or {})
        ]
