"""Groups on Azurite, in which one consumer or both have the official Blob store."""

import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore as OfficialStore
from azure.eventhub.extensions.checkpointstoreblobaio import (
    BlobCheckpointStore as AioOfficialStore,
)
from azure.storage.blob import ContainerClient

from azurite import Azurite, connection_string
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from handover_table.runs import Result, Setting, joined

MIXED = {
    "official, which official joins": ("first", "second"),
    "ours, which official joins": ("second",),
    "official, which ours joins": ("first",),
}
"""Which of the consumers have the official store; the others have ours, with hand-over."""
STORES: dict[str, tuple[Any, Any]] = {
    "sync": (OfficialStore, BlobCheckpointStore),
    "aio": (AioOfficialStore, AioBlobCheckpointStore),
}


def joined_on_blob(
    setting: Setting, storage: str, container: str, official: Collection[str]
) -> Result:
    """Have a second consumer join the first, and count.

    Args:
        setting: of the group.
        storage: connection string of a storage account.
        container: its container.
        official: names of the consumers that have the official store.
    """
    theirs, ours = STORES[setting.variant]

    def make_store(name: str) -> Any:
        kind = theirs if name in official else ours
        return kind.from_connection_string(storage, container)

    hands_over = "first" not in official, "second" not in official
    return joined(setting, make_store, hands_over=hands_over)


@contextmanager
def containers() -> Iterator[Callable[[], tuple[str, str]]]:
    """Start Azurite; give a function that creates a container, for `joined_on_blob`."""
    with Azurite() as azurite:
        storage = connection_string(azurite.endpoint)

        def create() -> tuple[str, str]:
            container = f"hand-over-{uuid.uuid4().hex}"
            with ContainerClient.from_connection_string(storage, container) as client:
                client.create_container()
            return storage, container

        yield create
