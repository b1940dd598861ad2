"""Ways past a Blob store to its container."""

from typing import Any

from backends.blob import BlobPlace
from eventhub_checkpoints.conformance import Accessors


def of_emulator(store: Any) -> Accessors:
    """For `--accessors blob_accessors:of_emulator`, with a container of an emulator."""
    return Accessors(put_raw=BlobPlace(store._requests.address).put_raw)
