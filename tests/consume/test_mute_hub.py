"""A client of Arrow batches whose hub says nothing: its end waits for no answer."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from eventhub_checkpoints import HubUnavailableError
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.consume._async import client as aio_client
from eventhub_checkpoints.consume._sync import client as sync_client
from waiting import LIMIT

TEXT = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b"


class MuteHub:
    """Hub whose queries are never answered, until a test ends."""

    def __init__(self) -> None:
        self.asked, self.is_over = threading.Event(), threading.Event()

    def answer(self, *_: object, **__: object) -> Any:
        self.asked.set()
        self.is_over.wait()
        return []


@pytest.fixture
def mute(monkeypatch: pytest.MonkeyPatch) -> Iterator[MuteHub]:
    made = MuteHub()
    for module in (aio_client, sync_client):
        monkeypatch.setattr(module, "list_partitions", made.answer)
        monkeypatch.setattr(module, "partition_properties", made.answer)
    yield made
    made.is_over.set()


@pytest.fixture
def client(variant: Any, mute: MuteHub) -> Any:
    return variant.client(f"{TEXT};EntityPath=orders", checkpoint_store=variant.memory_store())


def test_a_client_is_closed_although_its_hub_says_nothing(
    client: Any, mute: MuteHub, loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    receiving = threading.Thread(
        target=lambda: loop.finished(client.receive_batch(lambda *_: None)), daemon=True
    )
    receiving.start()
    assert mute.asked.wait(LIMIT)
    loop.finished(client.close())
    receiving.join(LIMIT)
    assert not receiving.is_alive()
    assert not caplog.records


def test_a_query_of_a_closed_client_says_so(client: Any, loop: Loop) -> None:
    loop.finished(client.close())
    with pytest.raises(HubUnavailableError, match=r"orders has not answered before the end$"):
        loop.finished(client.get_partition_properties("0"))
