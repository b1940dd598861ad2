"""A container in Azurite for the demo's checkpoints; importing this needs the extra `blob`."""

import uuid
from contextlib import ExitStack, suppress

from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient

from eventhub_checkpoints.cli.azurite import Azurite
from eventhub_checkpoints.records import Scope

API_VERSION = "2019-07-07"
"""API version of the store: an emulator that is already running may not support a newer one."""


class AzuriteStorage:
    """Azurite, started here or by the user, with a container for this demo.

    Raises:
        AzuriteMissingError: Azurite cannot be run on this machine.
    """

    look: str | None = None
    is_own = True
    _container: ContainerClient

    def __init__(self) -> None:
        self._azurite = Azurite()
        self.source = f"Azurite, {self._azurite.source}"

    def prepare(self) -> None:
        """Download Azurite, unless it is installed."""
        self._azurite.install()

    def start(self, stack: ExitStack, scope: Scope) -> str:
        """Start Azurite and create a container in it."""
        # Before the start, so that no exception can come between.
        stack.callback(self._azurite.stop)
        self._azurite.start()
        self._container = stack.enter_context(
            ContainerClient.from_connection_string(
                self._azurite.connection_string,
                f"demo-{uuid.uuid4().hex[:8]}",
                api_version=API_VERSION,
                retry_total=1,
            )
        )
        self._container.create_container()
        stack.callback(self._delete)
        return f"{self._azurite.endpoint}/{self._container.container_name}"

    def _delete(self) -> None:
        # The user's emulator keeps running. One that has died has nothing to delete.
        with suppress(AzureError):
            self._container.delete_container()

    def checkpoints(self, scope: Scope) -> dict[str, int]:
        """Read from the blobs.

        Not through this package's store, because the demo is to verify that store.
        """
        found = {}
        for blob in self._container.list_blobs(include=["metadata"]):
            *_, kind, partition = blob.name.split("/")
            if kind == "checkpoint":
                found[partition] = int(blob.metadata["sequencenumber"])
        return found
