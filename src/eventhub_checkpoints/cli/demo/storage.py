"""Where the demo keeps its checkpoints: a file of its own, Azurite, or a store of the user's."""

from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from eventhub_checkpoints.records import Scope

AZURITE = "azurite"
"""What `--store` takes besides URLs."""


class Storage(Protocol):
    """What holds the checkpoints.

    Attributes:
        source: what it is, for a human; no secret.
        look: a command that shows what is stored; None where there is none.
        is_own: whether it is the demo's alone, so that the user may try things on it.
    """

    source: str
    look: str | None
    is_own: bool

    def prepare(self) -> None:
        """Find out what is missing, before anything is started.

        Raises:
            CheckpointStoreError: it cannot be used.
        """

    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Make it ready for the rows of a scope, and return its URL.

        Args:
            stack: ends what is started here, and removes what the demo stores.
            scope: the hub and the consumer group of this demo.
        """

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """The sequence number of each partition's checkpoint, as it is stored."""


def chosen(store: str | None, consumer: str, folder: Path) -> Storage:
    """The storage that `--store` names.

    Args:
        store: `azurite` or a URL; None for a SQLite file in `folder`.
        consumer: the client that the consumers use.
        folder: the demo's own.

    Raises:
        MissingDriverError: its driver is not installed.
    """
    # Each needs its driver, and a demo needs the one that it uses.
    if store == AZURITE:
        from eventhub_checkpoints.cli.demo.storage_azurite import AzuriteStorage

        return AzuriteStorage()
    from eventhub_checkpoints.cli.demo.storage_given import GivenStorage, SqliteFile

    return SqliteFile(folder, consumer) if store is None else GivenStorage(store, consumer)
