"""A store that the processes of Spark open by its name, `store_for_source:make`."""

import json
import os
from pathlib import Path

from eventhub_checkpoints import MemoryCheckpointStore


def make() -> MemoryCheckpointStore:
    """A store that holds the checkpoints that a test wrote into a file."""
    store = MemoryCheckpointStore()
    for checkpoint in json.loads(Path(os.environ["STORE_FOR_SOURCE"]).read_text()):
        store.update_checkpoint(checkpoint)
    return store
