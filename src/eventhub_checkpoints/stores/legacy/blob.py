"""Readers for checkpoints that older programs stored in Azure Blob Storage."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints._shared._sync.compat import uninterrupted
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.blob._sync.store import BlobCheckpointStore
from eventhub_checkpoints.stores.legacy import leases
from eventhub_checkpoints.stores.legacy.iothub_react import (
    BLOB_PREFIX,
    LONGEST_VALUE,
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
    with _opened(container, credential) as blobs:
        return blobs.read(scope)


def read_lease_blobs(
    container: "str | ContainerClient",
    format: leases.LeaseFormat,
    scope: Scope,
    credential: Any = None,
    *,
    prefix: str = "",
) -> list[Checkpoint]:
    """Read what an Event Processor Host saved in a container; nothing is written.

    A lease that cannot be read is logged and left out. A partition of which nothing was processed
    has no checkpoint.

    Args:
        container: its URL, or a client of azure-storage-blob, which is left open.
        format: the program that wrote the leases.
        scope: names of the group, in the case in which the program had them.
        credential: as `open_store` accepts it with a container's URL.
        prefix: the `storageBlobPrefix` or the like with which the program was configured.

    Returns:
        Checkpoints in the order of the partitions; `offset` may be `""`, `sequence_number` None.

    Raises:
        ConfigurationError: it is not a container's URL, or there is no credential.
        StoreUnavailableError: no answer within 30 s.
        StoreAccessError: the service refused access.
        StoreNotReadyError: the container does not exist.
    """
    with _opened(container, credential) as blobs:
        return blobs.read_leases(scope, leases.prefixes(format, scope, prefix))


def _opened(container: "str | ContainerClient", credential: Any) -> "_Container":
    if not isinstance(container, str):
        return _Container(container_client=container)
    opened = _Container.from_url(container, credential=credential)
    if opened.prefix:
        opened.close()
        raise ConfigurationError(
            f"prefix={opened.prefix} in the container's URL is one of this package's names; leave "
            "it out, and pass the prefix that the old program had as prefix= "
            f"({as_typed('migrate')}: --container and --prefix)"
        )
    return opened


class _Container(BlobCheckpointStore):
    """A container of another program, with the requests and time limits of a blob store."""

    def read_leases(self, scope: Scope, prefixes: Sequence[str]) -> list[Checkpoint]:
        """Return the checkpoints in the leases whose names begin with one of the prefixes."""
        runner, seconds = self._engine.runner, self.settings.operation_timeout
        rows = uninterrupted(seconds, runner.request, partial(self._leases, prefixes))
        skipped: list[str] = []
        checkpoints = leases.checkpoints_of(rows, scope, skipped.append)
        runner.report(skipped)
        return checkpoints

    def _leases(self, prefixes: Sequence[str]) -> list[leases.Lease]:
        stored: list[leases.Lease] = []
        for prefix in prefixes:
            blobs, _ = self._requests.list_blobs(prefix)
            ids = [blob.name.removeprefix(prefix) for blob in blobs]
            ids = [id_ for id_ in ids if leases.PARTITION_ID.fullmatch(id_)]
            read = partial(self._text, longest=leases.LONGEST_LEASE)
            bodies = self._ask_each(read, [f"{prefix}{id_}" for id_ in ids])
            stored += [
                leases.Lease(f"blob {prefix + id_!r}", id_, body)
                for id_, body in zip(ids, bodies, strict=True)
            ]
        return stored

    def read(self, scope: Scope) -> list[Checkpoint]:
        """Return the checkpoints of iothub-react in the container."""
        runner = self._engine.runner
        rows = uninterrupted(self.settings.operation_timeout, runner.request, self._offsets)
        skipped: list[str] = []
        checkpoints = checkpoints_of(rows, scope, skipped.append)
        runner.report(skipped)
        return checkpoints

    def _offsets(self) -> list[StoredOffset]:
        blobs, _ = self._requests.list_blobs(BLOB_PREFIX)
        return [
            StoredOffset(
                f"blob {blob.name!r}", blob.name.removeprefix(BLOB_PREFIX), self._text(blob.name)
            )
            for blob in blobs
        ]

    def _text(self, name: str, longest: int = LONGEST_VALUE) -> str | None:
        body = self._requests.download(name, longest + 1)
        return None if len(body) > longest else body.decode("utf-8", "replace")
