"""Stores to certify; the modules beside this one are found by their names."""

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from eventhub_checkpoints.cli.azurite import connection_string
from fault_proxy import FaultProxy

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shared_proxy(azurite: Any) -> Iterator[FaultProxy]:
    """One proxy in front of Azurite for all checks; each check has names of its own."""
    with FaultProxy(azurite.endpoint) as running:
        yield running


@pytest.fixture(scope="session")
def shared_container(azurite: Any) -> Iterator[ContainerClient]:
    """One container for all checks, as another program sees it."""
    text = connection_string(azurite.endpoint)
    with ContainerClient.from_connection_string(text, f"test-{uuid.uuid4().hex}") as container:
        container.create_container()
        yield container
        container.delete_container()
