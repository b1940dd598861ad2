"""Requests to one container through azure-storage-blob.

For what `rest` does not know: the user's own clients, transports, policies and hooks, tracing, and
the creation of a container. Nothing else imports the driver, and this module is imported when it is
first needed, because the driver takes half a second and 30 MB.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobProperties
from azure.storage.blob import ContainerClient as SyncContainerClient
from azure.storage.blob.aio import BlobClient, BlobServiceClient, ContainerClient

from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints.stores.blob import options, protocol
from eventhub_checkpoints.stores.blob._async.driver_transport import pooled
from eventhub_checkpoints.stores.blob.protocol import Verdict
from eventhub_checkpoints.stores.blob.rest import Blob
from eventhub_checkpoints.stores.connections import PerProcessClient

Hook = Callable[[Any], Any]
SETTINGS_VERSION = "2019-12-12"
"""Oldest version of the service whose responses show a version of a blob."""


class DriverRequests:
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

    async def read(self, name: str) -> Blob | None:
        """Send Get Blob Properties; return None if the blob does not exist."""
        try:
            blob = await self._blob(name).get_blob_properties(**self.bounds())
        except HttpResponseError as error:
            if protocol.is_absent(error):
                return None
            raise
        return as_blob(blob)

    async def delete(self, name: str) -> bool:
        """Send Delete Blob; return whether the blob existed."""
        try:
            await self._blob(name).delete_blob(**self.bounds())
        except HttpResponseError as error:
            if protocol.expected(error) is not Verdict.ABSENT:
                raise
            return False
        return True

    async def list_blobs(self, prefix: str) -> tuple[list[Blob], float | None]:
        """List blobs with their metadata; also return the service's time at the last page."""
        dates: list[str | None] = []

        def on_page(response: Any) -> None:
            if self._hook is not None:
                self._hook(response)
            dates.append(response.http_response.headers.get("Date"))

        ask = partial(self.container.list_blobs, name_starts_with=prefix, include=["metadata"])
        blobs = await self._paged(partial(ask, raw_response_hook=on_page))
        return [*map(as_blob, blobs)], protocol.server_time(dates[-1] if dates else None)

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
            "connection_timeout": min(left, options.CONNECT_SECONDS),
            "read_timeout": left,
        }


def as_blob(blob: BlobProperties) -> Blob:
    """Return what the store needs of a blob's properties."""
    return Blob(str(blob.name), str(blob.etag), blob.last_modified, blob.metadata or {})


def connecting(
    connect: "options.ContainerLogin | Callable[..., ContainerClient]",
    api_version: str,
    arguments: dict[str, Any],
    size: int,
) -> DriverRequests:
    """Return the requests of a client that `connect` creates, with `size` connections."""
    arguments = version_arguments(api_version, arguments)
    if isinstance(connect, options.ContainerLogin):
        connect = partial(connect.client, ContainerClient)
    make = partial(connect, **arguments)
    return DriverRequests(
        lambda: make(**pooled(size, arguments)), arguments.get("raw_response_hook")
    )


def version_arguments(api_version: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return client arguments that make every request carry this service version.

    The driver refuses versions older than those it is tested with; Azure Stack Hub needs such
    versions, so they are sent as a header.
    """
    headers = {**(arguments.get("headers") or {}), "x-ms-version": api_version}
    try:
        SyncContainerClient("https://localhost", "version", api_version=api_version).close()
    except ValueError:
        return {**arguments, "headers": headers}
    return {**arguments, "headers": headers, "api_version": api_version}


async def read_settings(
    connect: "options.ContainerLogin | Callable[..., ContainerClient]",
    arguments: dict[str, Any],
    probe: str,
) -> dict[str, bool | None]:
    """Return `settings_of` the account of a container, with clients for this purpose only."""
    arguments = version_arguments(SETTINGS_VERSION, arguments)
    service = None
    if isinstance(connect, options.ContainerLogin):
        service = connect.service(BlobServiceClient, **arguments)
        connect = partial(connect.client, ContainerClient)
    container = connect(**arguments)
    try:
        return await settings_of(container, service, probe)
    finally:
        await container.close()
        if service is not None:
            await service.close()


async def settings_of(
    container: ContainerClient, service: BlobServiceClient | None, probe: str
) -> dict[str, bool | None]:
    """Return whether the account has settings that its checkpoints should not have.

    Each is None where the credential may not read it. The container shows two of them: a blob has a
    version only where versioning is enabled.

    Args:
        container: of a client that the caller closes.
        service: of the same account; None if there is no client of it.
        probe: name of a blob that was written recently; it need not exist.

    Source: Azure Storage REST API, "Get Account Information", "Get Blob Properties" and "Get Blob
    Service Properties".
    """
    bounds = DriverRequests.bounds
    settings: dict[str, bool | None] = dict.fromkeys(
        ("hierarchical_namespace", "versioning", "soft_delete")
    )
    with suppress(HttpResponseError):
        account: dict[str, Any] = dict(await container.get_account_information(**bounds()))
        if "is_hns_enabled" in account:
            settings["hierarchical_namespace"] = str(account["is_hns_enabled"]).lower() == "true"
    with suppress(HttpResponseError):
        blob = await container.get_blob_client(probe).get_blob_properties(**bounds())
        settings["versioning"] = bool(blob.version_id)
    if service is not None:
        with suppress(HttpResponseError):
            properties = await service.get_service_properties(**bounds())
            settings["soft_delete"] = bool(properties["delete_retention_policy"].enabled)
    return settings
