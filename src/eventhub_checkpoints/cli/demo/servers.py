"""The two servers, and where they are."""

import json
import sys
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient

from eventhub_checkpoints.cli.azurite import Azurite
from eventhub_checkpoints.cli.children import Child
from eventhub_checkpoints.cli.demo.place import Place
from eventhub_checkpoints.cli.demo.signals import Signals

HUB = "orders"
HUB_SECONDS = 30

API_VERSION = "2019-07-07"
"""The one that the store speaks: an emulator that runs already may know no newer one."""


@dataclass(frozen=True, slots=True)
class Servers:
    """A hub and a container, both for this demo only."""

    place: Place
    container: ContainerClient

    @classmethod
    def start(
        cls, stack: ExitStack, signals: Signals, azurite: Azurite, folder: Path, partitions: int
    ) -> "Servers":
        """Start both; the stack ends them.

        Raises:
            AzuriteError: Azurite did not start.
            ChildError: the hub did not start.
        """
        container = start_container(stack, azurite)
        hub = start_hub(stack, signals, folder, partitions)
        return cls(Place(hub, f"{azurite.endpoint}/{container.container_name}"), container)

    def stored_checkpoints(self) -> dict[str, int]:
        """The sequence number of each partition's checkpoint, as it lies in storage.

        Read past our store on purpose: the demo does not ask the witness that is on trial.
        """
        found = {}
        for blob in self.container.list_blobs(include=["metadata"]):
            *_, kind, partition = blob.name.split("/")
            if kind == "checkpoint":
                found[partition] = int(blob.metadata["sequencenumber"])
        return found


def start_hub(stack: ExitStack, signals: Signals, folder: Path, partitions: int) -> str:
    """Start a local hub in a process of its own; return its connection string."""
    log = folder / "hub.log"
    module = "eventhub_checkpoints.localhub"
    command = [sys.executable, "-m", module, "--hub", f"{HUB}={partitions}", "--json"]
    with signals.held_back():
        hub = stack.enter_context(Child(command, log=log, name="the local hub"))

    def announced() -> str | None:
        lines = log.read_text().splitlines(keepends=True)
        return next((one for one in lines if one[0] == "{" and one[-1] == "\n"), None)

    found: str = json.loads(hub.wait_ready(announced, HUB_SECONDS))["connection_string"]
    return found


def start_container(stack: ExitStack, azurite: Azurite) -> ContainerClient:
    """Start Azurite and create a container in it."""
    # First, so that nothing can come between the start and this.
    stack.callback(azurite.stop)
    azurite.start()
    container = stack.enter_context(
        ContainerClient.from_connection_string(
            azurite.connection_string,
            f"demo-{uuid.uuid4().hex[:8]}",
            api_version=API_VERSION,
            retry_total=1,
        )
    )
    container.create_container()
    stack.callback(_delete, container)
    return container


def _delete(container: ContainerClient) -> None:
    # An emulator that ran before goes on after. One that has died has nothing to delete.
    with suppress(AzureError):
        container.delete_container()
