# Derived from _async/requests.py by tools/unasync.py; edit that file.
"""Requests to Azure Blob Storage, each sent once; listing and deleting of groups."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from eventhub_checkpoints._shared._sync.compat import for_each
from eventhub_checkpoints._shared.deadline import bound
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    MissingDriverError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.abilities import Deletes, ListsScopes
from eventhub_checkpoints.stores.blob.protocol import (
    KINDS,
    Kind,
    NameCase,
    Verdict,
    blob_name,
    failure,
    prefix,
    scope_of,
    server_time,
)
from eventhub_checkpoints.stores.blob.responses import (
    error_code,
    expected,
    may_be_absent,
    new_etag,
    operation_of,
    refused_credential,
    unreached,
)
from eventhub_checkpoints.stores.per_process_client import PerProcessClient
from eventhub_checkpoints.stores.record_format import is_row
from eventhub_checkpoints.stores.unreachable import innermost, is_untrusted

try:
    from azure.core import MatchConditions
    from azure.core.exceptions import (
        AzureError,
        ClientAuthenticationError,
        HttpResponseError,
        ResourceExistsError,
    )
    from azure.storage.blob import BlobClient, BlobProperties, ContainerClient
except ImportError as error:
    raise MissingDriverError.of_extra("the Blob store", "blob") from error

__all__ = ["BlobProperties", "BlobRequests", "ContainerClient"]

Hook = Callable[[Any], Any]
CONNECT_SECONDS = 10.0


class BlobRequests:
    """Requests to one container, limited to the time that the current call has left.

    Args:
        connect: creates the client; see `PerProcessClient`.
        hook: the caller's own `raw_response_hook`, called before this one.
    """

    def __init__(self, connect: Callable[[], ContainerClient], hook: Hook | None = None) -> None:
        self._client = PerProcessClient(connect)
        self._hook = hook
        self._blobs: dict[str, BlobClient] = {}

    def begin_anew(self) -> None:
        """Use a new client."""
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

    def create_container(self) -> None:
        """Create the container, unless it exists."""
        try:
            self.container.create_container(**self.bounds())
        except ResourceExistsError as error:
            if error_code(error) != "ContainerAlreadyExists":
                raise

    def create(self, name: str, metadata: dict[str, str], overwrite: bool = False) -> str | Verdict:
        """Send Put Blob; return the new etag, or the reason for a failure."""
        try:
            answer = self._blob(name).upload_blob(
                b"", overwrite=overwrite, metadata=metadata, **self.bounds()
            )
        except HttpResponseError as error:
            return expected(error)
        return new_etag(answer)

    def update(self, name: str, metadata: dict[str, str], etag: str | None) -> str | Verdict:
        """Send Set Blob Metadata, for this etag or any; return the new etag, or why it failed."""
        condition: dict[str, Any] = {}
        if etag is not None:
            condition = {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}
        try:
            answer = self._blob(name).set_blob_metadata(metadata, **condition, **self.bounds())
        except HttpResponseError as error:
            found = expected(error)
            if found is Verdict.LOST and may_be_absent(error) and self.read(name) is None:
                return Verdict.ABSENT
            return found
        return new_etag(answer)

    def read(self, name: str) -> BlobProperties | None:
        """Send Get Blob Properties; return None if the blob does not exist."""
        try:
            return self._blob(name).get_blob_properties(**self.bounds())
        except HttpResponseError as error:
            # A response without a body has no error code; for a missing container there is one.
            if error.status_code == 404 and error_code(error) in {"BlobNotFound", ""}:
                return None
            raise

    def delete(self, name: str) -> bool:
        """Send Delete Blob; return whether the blob existed."""
        try:
            self._blob(name).delete_blob(**self.bounds())
        except HttpResponseError as error:
            if expected(error) is not Verdict.ABSENT:
                raise
            return False
        return True

    def list_blobs(self, prefix: str) -> tuple[list[BlobProperties], float | None]:
        """List blobs with their metadata; also return the service's time at the last page."""
        dates: list[str | None] = []

        def on_page(response: Any) -> None:
            if self._hook is not None:
                self._hook(response)
            dates.append(response.http_response.headers.get("Date"))

        ask = partial(self.container.list_blobs, name_starts_with=prefix, include=["metadata"])
        blobs = self._paged(partial(ask, raw_response_hook=on_page))
        return blobs, server_time(dates[-1] if dates else None)

    def list_below(self, prefix: str) -> list[str]:
        """List one level of the blobs' names: each prefix up to the next `/`."""
        found = self._paged(partial(self.container.walk_blobs, name_starts_with=prefix))
        return [one.name for one in found if not isinstance(one, BlobProperties)]

    def _paged(self, ask: Callable[..., Any]) -> list[Any]:
        found: list[Any] = []
        marker: str | None = ""
        while marker is not None:
            pages = ask(**self.bounds()).by_page(marker or None)
            for page in pages:
                for one in page:
                    found.append(one)
                break  # the next page is requested with the time that is left then
            marker = pages.continuation_token or None
        return found

    def close(self) -> None:
        """Close the client, unless it belongs to the parent process."""
        if self._client.is_of_this_process:
            self.container.close()

    @property
    def where(self) -> str:
        """Return the container and its account, for messages."""
        account = self.address.rpartition("/")[0]
        return f"container {self.container.container_name!r} of {account}"

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """Convert a driver's error to an error of this package."""
        if isinstance(error, ClientAuthenticationError) and not error_code(error):
            # The token provider or the request signing failed; any status may accompany it.
            return StoreAccessError(f"{self.where}: {refused_credential(error)}")
        if isinstance(error, HttpResponseError) and error.status_code is not None:
            return failure(error.status_code, error_code(error), operation_of(error), self.where)
        if isinstance(error, (AzureError, OSError)) and is_untrusted(error):
            return StoreAccessError(
                f"{self.where}: its certificate is not trusted: name the file of its authority as "
                f"connection_verify=FILE ({masked(str(innermost(error)))})"
            )
        if isinstance(error, (AzureError, OSError)):
            return StoreUnavailableError(f"{self.where}: {unreached(error)}")
        return StoreError(f"{self.where}: {masked(str(error))} ({type(error).__name__})")

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
            # A redirected request would carry the credential, and the driver's own retries.
            "permit_redirects": False,
            "connection_timeout": min(left, CONNECT_SECONDS),
            "read_timeout": left,
        }


T = TypeVar("T")
Asked = TypeVar("Asked")


class BlobAbilities(ListsScopes, Deletes):
    """Lists groups by the levels of the blobs' names, and deletes blobs."""

    _requests: BlobRequests
    _name_case: NameCase

    def read_scopes(self) -> Sequence[Scope]:
        levels = [""]
        for _ in Scope._fields:
            below = self._ask_each(self._requests.list_below, levels)
            levels = [name for names in below for name in names]
        # Names that other writers stored in another case are not read by this store.
        scopes = [
            scope
            for level in levels
            if (scope := scope_of(level)) and scope == self.identity(scope)
        ]
        held = self._ask_each(self._holds_rows, scopes)
        return [scope for scope, is_held in zip(scopes, held, strict=True) if is_held]

    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        names: list[str] = []
        for kind in KINDS:
            if partition_id is None:
                names += self._row_names(scope, kind)
            else:
                names.append(blob_name(scope, kind, partition_id, self._name_case))
        return sum(self._ask_each(self._requests.delete, names))

    def _holds_rows(self, scope: Scope) -> bool:
        owned = self._row_names(scope, "ownership")
        return bool(owned or self._row_names(scope, "checkpoint"))

    def _row_names(self, scope: Scope, kind: Kind) -> list[str]:
        start = prefix(scope, kind, self._name_case)
        blobs, _ = self._requests.list_blobs(start)
        return [
            str(blob.name)
            for blob in blobs
            if is_row(str(blob.name)[len(start) :], blob.metadata or {})
        ]

    def _ask_each(self, function: Callable[[Asked], T], items: Sequence[Asked]) -> list[T]:
        def asked(item: Asked) -> T | Exception:
            # Raised inside the task group, it would become an ExceptionGroup, which is not mapped.
            try:
                return function(item)
            except Exception as error:
                return error

        answers = for_each(asked, items, self.settings.max_concurrency)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in answers if not isinstance(answer, Exception)]
