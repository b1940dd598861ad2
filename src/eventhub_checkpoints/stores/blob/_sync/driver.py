# Derived from _async/driver.py by tools/unasync.py; edit that file.
"""Requests to one container through azure-storage-blob.

For what `rest` does not know: the user's own clients, transports, policies and hooks, and tracing.
Nothing else imports the driver, and this module is imported when it is first needed, because the
driver takes half a second and 30 MB.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobProperties, BlobServiceClient, ContainerClient
from azure.storage.blob import ContainerClient as SyncContainerClient

from eventhub_checkpoints._shared.callables import require_call
from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints.stores.azure_storage.connection_options import CONNECT_SECONDS
from eventhub_checkpoints.stores.azure_storage.errors import refusal_of
from eventhub_checkpoints.stores.azure_storage.messages import Refusal
from eventhub_checkpoints.stores.blob import options
from eventhub_checkpoints.stores.blob._sync.driver_pool import pooled
from eventhub_checkpoints.stores.blob.protocol import new_etag
from eventhub_checkpoints.stores.blob.rest import Blob, Page
from eventhub_checkpoints.stores.connections import PerProcessClient

Hook = Callable[[Any], Any]
SETTINGS_VERSION = "2019-12-12"
"""Oldest version of the service whose responses show a version of a blob."""


class DriverTransport:
    """Sends each request by a call of the driver; a status that it raises is returned.

    The driver has no public way to send a request that was built elsewhere.

    Args:
        connect: creates the client; see `PerProcessClient`.
        hook: the caller's `raw_response_hook`; for lists, this class sets its own, which calls it.
        is_own: whether to close the client.
    """

    def __init__(
        self,
        connect: Callable[[], ContainerClient],
        hook: Hook | None = None,
        *,
        is_own: bool = True,
    ) -> None:
        self._client = PerProcessClient(connect)
        self._hook = hook
        self._is_own = is_own
        self._blobs: dict[str, BlobClient] = {}

    @property
    def address(self) -> str:
        """Return the container's URL, without a SAS."""
        return str(self._container.url).partition("?")[0]

    @property
    def _container(self) -> ContainerClient:
        return self._client.now

    def create_container(self) -> Refusal | None:
        """Send Create Container."""
        answer = self._sent("create the container", self._container.create_container)
        return answer if isinstance(answer, Refusal) else None

    def create(self, name: str, metadata: dict[str, str], overwrite: bool) -> str | Refusal:
        """Send Put Blob; return the new etag."""
        upload = partial(self._blob(name).upload_blob, b"", overwrite=overwrite, metadata=metadata)
        answer = self._sent("create", upload)
        return answer if isinstance(answer, Refusal) else new_etag(answer.get("etag"))

    def update(self, name: str, metadata: dict[str, str], etag: str | None) -> str | Refusal:
        """Send Set Blob Metadata, if the etag matches or is None; return the new etag."""
        condition: dict[str, Any] = {}
        if etag is not None:
            condition = {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}
        write = partial(self._blob(name).set_blob_metadata, metadata, **condition)
        answer = self._sent("write", write)
        return answer if isinstance(answer, Refusal) else new_etag(answer.get("etag"))

    def read(self, name: str) -> Blob | Refusal:
        """Send Get Blob Properties."""
        answer = self._sent("read", self._blob(name).get_blob_properties)
        return answer if isinstance(answer, Refusal) else as_blob(answer)

    def download(self, name: str, length: int) -> bytes | Refusal:
        """Send Get Blob for the first bytes."""
        download = partial(self._blob(name).download_blob, 0, length)
        answer = self._sent("read", download)
        return answer if isinstance(answer, Refusal) else bytes(answer.readall())

    def delete(self, name: str) -> Refusal | None:
        """Send Delete Blob."""
        answer = self._sent("delete", self._blob(name).delete_blob)
        return answer if isinstance(answer, Refusal) else None

    def _sent(self, operation: str, call: Callable[..., Any]) -> Any:
        try:
            return call(**self.bounds())
        except HttpResponseError as error:
            return refusal_of(error, operation)

    def page(self, prefix: str, marker: str, one_level: bool) -> Page | Refusal:
        """Send List Blobs for one page."""
        dates: list[str | None] = []

        def on_page(response: Any) -> None:
            if self._hook is not None:
                self._hook(response)
            dates.append(response.http_response.headers.get("Date"))

        ask: Callable[..., Any] = self._container.walk_blobs
        if not one_level:
            ask = partial(self._container.list_blobs, include=["metadata"])
        items: list[Any] = []
        try:
            pages = ask(
                name_starts_with=prefix, raw_response_hook=on_page, **self.bounds()
            ).by_page(marker or None)
            for page in pages:
                for item in page:
                    items.append(item)
                break  # the next page is requested with the time that is left then
        except HttpResponseError as error:
            return refusal_of(error, "list")
        blobs = [item for item in items if isinstance(item, BlobProperties)]
        prefixes = [item.name for item in items if not isinstance(item, BlobProperties)]
        date = dates[-1] if dates else None
        return Page([*map(as_blob, blobs)], prefixes, pages.continuation_token or "", date)

    def reset(self) -> None:
        """Create a new client."""
        self._client.reset()
        self._blobs = {}

    def close(self) -> None:
        """Close the client, unless it is the caller's or belongs to the parent process."""
        if self._is_own and self._client.is_of_this_process:
            self._container.close()

    def _blob(self, name: str) -> BlobClient:
        blob = self._blobs.get(name)
        if blob is None:
            blob = self._blobs[name] = self._container.get_blob_client(name)
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


def as_blob(blob: BlobProperties) -> Blob:
    """Return what the store needs of a blob's properties."""
    return Blob(str(blob.name), str(blob.etag), blob.last_modified, blob.metadata or {})


def connecting(
    connect: "options.ContainerLogin | Callable[..., ContainerClient]",
    api_version: str,
    arguments: dict[str, Any],
    size: int,
) -> DriverTransport:
    """Return the transport over a client that `connect` creates, with `size` connections."""
    arguments = version_arguments(api_version, arguments)
    if isinstance(connect, options.ContainerLogin):
        connect = partial(connect.client, ContainerClient)
    else:
        named = {"transport": None, **arguments}
        require_call("connect", "the keywords of a client", connect, **named)
    make = partial(connect, **arguments)
    return DriverTransport(
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


def read_settings(
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
        return settings_of(container, service, probe)
    finally:
        container.close()
        if service is not None:
            service.close()


def settings_of(
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
    bounds = DriverTransport.bounds
    settings: dict[str, bool | None] = dict.fromkeys(
        ("hierarchical_namespace", "versioning", "soft_delete")
    )
    with suppress(HttpResponseError):
        account: dict[str, Any] = dict(container.get_account_information(**bounds()))
        if "is_hns_enabled" in account:
            settings["hierarchical_namespace"] = str(account["is_hns_enabled"]).lower() == "true"
    with suppress(HttpResponseError):
        blob = container.get_blob_client(probe).get_blob_properties(**bounds())
        settings["versioning"] = bool(blob.version_id)
    if service is not None:
        with suppress(HttpResponseError):
            properties = service.get_service_properties(**bounds())
            settings["soft_delete"] = bool(properties["delete_retention_policy"].enabled)
    return settings
