"""Hub and storage of the demo."""

import json
import sys
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from eventhub_checkpoints.cli.children import Child
from eventhub_checkpoints.cli.demo.place import CONSUMER_GROUP, Place
from eventhub_checkpoints.cli.demo.signals import Signals
from eventhub_checkpoints.cli.demo.storage import Storage
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.records import Scope

HUB_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Servers:
    """Hub that only this demo uses, and the storage of its checkpoints."""

    place: Place
    scope: Scope
    storage: Storage

    @classmethod
    def start(
        cls, stack: ExitStack, signals: Signals, storage: Storage, folder: Path, partitions: int
    ) -> "Servers":
        """Start both; the stack stops them.

        Raises:
            AzuriteError: Azurite did not start.
            ChildError: the hub did not start.
        """
        hub = start_hub(stack, signals, folder, partitions)
        scope = HubAddress.from_connection_string(hub, CONSUMER_GROUP).scope()
        return cls(Place(hub, storage.start(stack, scope)), scope, storage)

    def stored_checkpoints(self) -> dict[str, int]:
        """Return the stored sequence number of each partition's checkpoint."""
        return self.storage.checkpoints(self.scope)


def start_hub(stack: ExitStack, signals: Signals, folder: Path, partitions: int) -> str:
    """Start a local hub in a separate process; return its connection string."""
    log = folder / "hub.log"
    # A unique name, because the user's store may have rows of an earlier hub on the same port.
    name = f"orders-{uuid.uuid4().hex[:12]}"
    module = "eventhub_checkpoints.localhub"
    command = [sys.executable, "-P", "-m", module, "--hub", f"{name}={partitions}", "--json"]
    with signals.held_back():
        hub = stack.enter_context(Child(command, log=log, name="the local hub"))

    def announced() -> str | None:
        lines = log.read_text().splitlines(keepends=True)
        return next((one for one in lines if one[0] == "{" and one[-1] == "\n"), None)

    found: str = json.loads(hub.wait_ready(announced, HUB_SECONDS))["connection_string"]
    return found
