"""Where the cases run: a container of Azurite, near or behind a slow way."""

import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from azure.storage.blob import ContainerClient

from azurite import Azurite, connection_string
from eventhub_checkpoints.cli.demo.children import Child

PROXY = Path(__file__).resolve().parent.parent / "tools" / "fault_proxy.py"
START_SECONDS = 30


@dataclass(frozen=True)
class Place:
    """A container, and the connection string that leads to its server."""

    connection_string: str
    container: str


@contextmanager
def place(delay_ms: float) -> Iterator[Place]:
    """A fresh container on a fresh server; many blobs of an earlier case would slow it down."""
    with Azurite() as azurite, slow_way(azurite.endpoint, delay_ms) as endpoint:
        here = Place(connection_string(endpoint), f"bench-{uuid.uuid4().hex}")
        with ContainerClient.from_connection_string(*astuple(here)) as client:
            client.create_container()
            try:
                yield here
            finally:
                client.delete_container()


@contextmanager
def slow_way(endpoint: str, delay_ms: float) -> Iterator[str]:
    """The endpoint of a proxy, in a process of its own, that holds every answer back."""
    if not delay_ms:
        yield endpoint
        return
    command = [sys.executable, str(PROXY), endpoint, "--delay-ms", str(delay_ms)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with Child(command, log=log, name="the delaying proxy") as proxy:
            yield proxy.wait_ready(lambda: first_line(log), START_SECONDS)


def first_line(log: Path) -> str | None:
    """The first line, once it is whole."""
    line, end, _ = log.read_text().partition("\n")
    return line if end else None
