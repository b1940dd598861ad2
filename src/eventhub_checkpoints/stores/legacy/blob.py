"""Reader for checkpoints that iothub-react stored in Azure Blob Storage."""

from typing import TYPE_CHECKING, Any

from azure.core.exceptions import HttpResponseError

from eventhub_checkpoints._shared._sync.compat import uninterrupted
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.blob._sync.store import BlobCheckpointStore
from eventhub_checkpoints.stores.legacy.iothub_react import (
    BLOB_PREFIX,
    LONGEST,
    StoredOffset,
    checkpoints_of,
)

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient


def read_iothub_react_blobs(
    container: "str | ContainerClient", scope: Scope, credential: Any = None
) -> list[Checkpoint]:
    """Read what iothub-react saved in a container; nothing is written.

    A blob that holds no offset is logged and left out. A partition for which iothub-react recorded
    that nothing was saved has no checkpoint.

    Args:
        container: its URL, or a client of azure-storage-blob, which is left open.
        scope: the hub and consumer group that were read; the blobs do not name them.
        credential: as `open_store` accepts it with a container's URL.

    Returns:
        Checkpoints in the order of the partitions, with `offset`, and `sequence_number` None.

    Raises:
        ConfigurationError: it is not a container's URL, or there is no credential.
        StoreUnavailableError: no answer within 30 s.
        StoreAccessError: the service refused access.
        StoreNotReadyError: the container does not exist.
    """
    if isinstance(container, str):
        blobs = _Container.from_url(container, credential=credential)
    else:
        blobs = _Container(container_client=container)
    with blobs:
        return blobs.read(scope)


class _Container(BlobCheckpointStore):
    """A container of iothub-react, with the requests and time limits of a blob store."""

    def read(self, scope: Scope) -> list[Checkpoint]:
        """Return the checkpoints in the container."""
        rows = uninterrupted(self.settings.operation_timeout, self._request, self._offsets)
        skipped: list[str] = []
        checkpoints = checkpoints_of(rows, scope, skipped.append)
        self._report(skipped)
        return checkpoints

    def _offsets(self) -> list[StoredOffset]:
        blobs, _ = self._requests.list_blobs(BLOB_PREFIX)
        return [
            StoredOffset(
                f"blob {blob.name!r}", blob.name.removeprefix(BLOB_PREFIX), self._text(blob.name)
            )
            for blob in blobs
        ]

    def _text(self, name: str) -> str | None:
        driver = self._driver()
        try:
            body = driver.container.download_blob(
                name, offset=0, length=LONGEST + 1, **driver.bounds()
            ).readall()
        except HttpResponseError as error:
            if error.status_code != 416:
                raise
            return ""  # an empty blob has no such range
        return None if len(body) > LONGEST else bytes(body).decode("utf-8", "replace")
