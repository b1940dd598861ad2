"""What is read of the client's private attributes: on the oldest and on the newest client."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from threading import Thread
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import (
    Checkpointer,
    ConfigurationError,
    EventProcessor,
    MemoryCheckpointStore,
)
from eventhub_checkpoints.aio import Checkpointer as AioCheckpointer
from eventhub_checkpoints.aio import EventProcessor as AioEventProcessor
from eventhub_checkpoints.aio import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.sdk import consumer
from waiting import LIMIT

Wait = Callable[..., Any]
SYNC: Any = (EventProcessor, EventHubConsumerClient, MemoryCheckpointStore, Checkpointer)
AIO: Any = (
    AioEventProcessor,
    AioEventHubConsumerClient,
    AioMemoryCheckpointStore,
    AioCheckpointer,
)


class Processor:
    """Its methods are plain, which either variant may call.

    Attributes:
        seen: events that any of them was given.
    """

    seen: list[Any]

    def __init__(self, *args: object) -> None:
        """As both processors call it."""

    def process_events(self, events: list[Any]) -> None:
        self.seen.extend(events)


class Kinds:
    """What is made for one variant.

    Attributes:
        is_aio: which.
        finished: waits for what an aio method returned.
    """

    def __init__(self, is_aio: bool, hub: Any, loop: Any, opened: ExitStack) -> None:
        self.is_aio = is_aio
        self.finished = loop.finished
        self._hub = hub
        self._opened = opened
        self._processor, self._client, self.store, self._checkpointer = AIO if is_aio else SYNC

    def client(self, store: Any) -> Any:
        """A client of a hub of its own; it is closed after the test."""
        made = self._client.from_connection_string(
            self._hub.connection_string("orders"),
            "$Default",
            checkpoint_store=store,
            load_balancing_interval=0.4,
        )
        self._opened.callback(lambda: self.finished(made.close()))
        return made

    def processor(self, client: Any, store: Any, processor: Any = Processor) -> Any:
        return self._processor(client, processor, store=store)

    def checkpointer(self, store: Any) -> Any:
        made = self._checkpointer(store)
        self._opened.callback(lambda: self.finished(made.close()))
        return made

    def received(self, client: Any, checkpointer: Any) -> list[Any]:
        """Events as they arrive until the client is closed after the test."""
        events: list[Any] = []

        def on_event(context: Any, event: Any) -> None:
            checkpointer.track(context, event).done()
            events.append(event)

        async def on_event_aio(context: Any, event: Any) -> None:
            (await checkpointer.track(context, event)).done()
            events.append(event)

        async def begin() -> None:
            task = asyncio.create_task(client.receive(on_event_aio, **options))

            async def end() -> None:
                await client.close()
                task.cancel()  # or it would go on until its load balancing has slept
                await asyncio.wait([task])

            self._opened.callback(lambda: self.finished(end()))

        options = {"starting_position": "-1", **checkpointer.handlers}
        if self.is_aio:
            self.finished(begin())
        else:
            thread = Thread(target=partial(client.receive, on_event, **options))
            self._opened.callback(thread.join)
            self._opened.callback(client.close)
            thread.start()
        return events


@pytest.fixture(params=["sync", "aio"])
def kinds(request: pytest.FixtureRequest, hub: Any, loop: Any) -> Iterator[Kinds]:
    hub.publish("orders", "0", ["event"] * 3)
    with ExitStack() as opened:
        yield Kinds(request.param == "aio", hub, loop, opened)


def test_a_ready_client_without_a_store_is_refused(kinds: Kinds) -> None:
    with pytest.raises(ConfigurationError, match=r"^client is ready and has no checkpoint_store"):
        kinds.processor(kinds.client(None), kinds.store())


def test_a_ready_client_with_another_store_is_refused(kinds: Kinds) -> None:
    with pytest.raises(ConfigurationError, match=r"^client is ready and has another checkpoint_st"):
        kinds.processor(kinds.client(kinds.store()), kinds.store())


def test_a_ready_client_with_the_same_store_is_taken(kinds: Kinds) -> None:
    store = kinds.store()
    kinds.processor(kinds.client(store), store)


@pytest.mark.parametrize("is_same", [True, False])
def test_where_its_store_cannot_be_read_the_first_claim_tells(
    kinds: Kinds, wait: Wait, monkeypatch: pytest.MonkeyPatch, is_same: bool
) -> None:
    monkeypatch.setattr(consumer, "STORE", "_renamed_in_a_later_release")
    store = kinds.store()
    client = kinds.client(store if is_same else kinds.store())
    seen: list[Any] = []
    processor = kinds.processor(client, store, type("Seeing", (Processor,), {"seen": seen}))
    kinds.finished(processor.start())
    if is_same:
        wait(lambda: len(seen) == 3)
        assert processor.healthy()
        kinds.finished(processor.stop())
        return
    kinds.finished(processor.wait())
    assert not processor.healthy()
    with pytest.raises(ConfigurationError, match=r"^client is ready and has another checkpoint_st"):
        kinds.finished(processor.stop())
    assert seen == []


@pytest.mark.parametrize("other", ["the same", "another", "none"])
def test_a_checkpointer_over_another_store_than_the_client_is_unhealthy(
    kinds: Kinds, wait: Wait, caplog: pytest.LogCaptureFixture, other: str
) -> None:
    store = kinds.store()
    checkpointer = kinds.checkpointer(store)
    has = {"the same": store, "another": kinds.store(), "none": None}[other]
    events = kinds.received(kinds.client(has), checkpointer)
    wait(lambda: len(events) == 3)
    assert checkpointer.healthy() == (other == "the same")
    said = caplog.text.count("checkpoint_store is not the store of this Checkpointer")
    assert said == (other != "the same")


@pytest.mark.parametrize("kinds", ["sync"], indirect=True)
def test_a_handler_that_waits_notices_that_its_sync_client_was_closed(
    kinds: Kinds, wait: Wait
) -> None:
    store = kinds.store()
    checkpointer = Checkpointer(store, max_pending=1, drain_timeout=0.1)
    client, begun = kinds.client(store), []

    def on_event(context: Any, event: Any) -> None:
        begun.append(event)
        checkpointer.track(context, event)

    options = {"starting_position": "-1", **checkpointer.handlers}
    thread = Thread(target=partial(client.receive, on_event, **options), daemon=True)
    thread.start()
    wait(lambda: len(begun) == 2)
    client.close()
    thread.join(LIMIT)
    assert not thread.is_alive()
    checkpointer.close()
