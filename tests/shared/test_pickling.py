"""Objects of one process, and what they say to pickle in their place."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from azure.eventhub.aio import EventHubProducerClient as AioEventHubProducerClient

import eventhub_checkpoints as sync
from eventhub_checkpoints import aio
from eventhub_checkpoints.aio.dead_letters import DeadLetterHub as AioDeadLetterHub
from eventhub_checkpoints.aio.sql import DeadLetterTable as AioDeadLetterTable
from eventhub_checkpoints.dead_letters import DeadLetterFile, DeadLetterHub
from eventhub_checkpoints.sql import DeadLetterTable

CONNECTION = (
    "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=S3CR3T;"
    "EntityPath=orders"
)


class Orders:
    """A processor."""

    def process_events(self, events: Any) -> None:
        """Do nothing."""


def processor(kind: Any, client: Any, store: Any) -> Any:
    def make(**options: Any) -> Any:
        return client.from_connection_string(CONNECTION, "$Default", **options)

    return kind(make, lambda context, checkpoints: Orders(), store=store)


URL = "sqlite:///checkpoints.db"
OBJECTS: dict[str, tuple[Callable[[], Any], str]] = {
    "store": (lambda: sync.open_store(URL), "pass its URL"),
    "aio store": (lambda: aio.open_store(URL), "pass its URL"),
    "memory": (lambda: sync.open_store("memory:"), "it is for one process"),
    "hand-over": (
        lambda: sync.HandoverStore(sync.open_store(URL), expires_after=60),
        "pass the URL of its store",
    ),
    "aio coalescing": (
        lambda: aio.CoalescingCheckpointStore(aio.open_store(URL)),
        "pass the URL of its store",
    ),
    "checkpointer": (lambda: sync.Checkpointer(sync.open_store(URL)), "pass the URL of its store"),
    "aio checkpointer": (
        lambda: aio.Checkpointer(aio.open_store(URL)),
        "pass the URL of its store",
    ),
    "processor": (
        lambda: processor(sync.EventProcessor, EventHubConsumerClient, sync.open_store(URL)),
        "pass a function that creates",
    ),
    "aio processor": (
        lambda: processor(aio.EventProcessor, AioEventHubConsumerClient, aio.open_store(URL)),
        "pass a function that creates",
    ),
    "table": (lambda: DeadLetterTable(URL), "pass its URL"),
    "aio table": (lambda: AioDeadLetterTable(URL), "pass its URL"),
    "hub": (
        lambda: DeadLetterHub(EventHubProducerClient.from_connection_string(CONNECTION)),
        "pass its connection string",
    ),
    "aio hub": (
        lambda: AioDeadLetterHub(AioEventHubProducerClient.from_connection_string(CONNECTION)),
        "pass its connection string",
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_object_of_one_process_says_what_to_pickle(
    name: str, copied: Callable[[Any], Any]
) -> None:
    make, instead = OBJECTS[name]
    made = make()
    kind = type(made).__name__
    with pytest.raises(TypeError, match=f"a {kind} cannot be pickled or copied") as refused:
        copied(made)
    assert f"locks: {instead}" in str(refused.value)
    assert "S3CR3T" not in str(refused.value)


def test_a_file_of_dead_letters_can_be_pickled(tmp_path: Path) -> None:
    file = DeadLetterFile(tmp_path / "dead-letters.jsonl")
    assert repr(pickle.loads(pickle.dumps(file))) == repr(file)
