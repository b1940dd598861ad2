"""Stores and checkpointers of the other variant: what the real clients report of them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import ConfigurationError, aio, open_store
from eventhub_checkpoints.checkpointer import Checkpointer
from eventhub_checkpoints.coalescing import CoalescingCheckpointStore
from eventhub_checkpoints.memory import MemoryCheckpointStore

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/api/index.md"


class OfMine(MemoryCheckpointStore):
    """A store of a user's own."""


class AioOfMine(aio.MemoryCheckpointStore):
    """The same for asyncio."""


def sql(open_one: Callable[[str], Any]) -> Callable[[Path], Any]:
    return lambda folder: open_one(f"sqlite:///{folder}/checkpoints.db")


STORES: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any], str]] = {
    "memory": (
        lambda _: MemoryCheckpointStore(),
        lambda _: aio.MemoryCheckpointStore(),
        "from {} import MemoryCheckpointStore",
    ),
    "coalescing": (
        lambda _: CoalescingCheckpointStore(MemoryCheckpointStore()),
        lambda _: aio.CoalescingCheckpointStore(aio.MemoryCheckpointStore()),
        "from {} import CoalescingCheckpointStore",
    ),
    "sql": (sql(open_store), sql(aio.open_store), "from {}.sql import SqlCheckpointStore"),
    "a user's": (lambda _: OfMine(), lambda _: AioOfMine(), "from {} import MemoryCheckpointStore"),
}


def sentence(is_aio: bool, value: object, line: str) -> str:
    """What the client of a variant reports of an object of the other one."""
    kind, client, package = (
        ("synchronous", "azure.eventhub.aio", "eventhub_checkpoints.aio")
        if is_aio
        else ("asynchronous", "azure.eventhub", "eventhub_checkpoints")
    )
    # A URL names no coalescing store, and no checkpointer.
    has_url = "Coalescing" not in line and "Checkpointer" not in line
    or_open = f", or open_store of {package}" if has_url else ""
    return (
        f"{type(value).__name__} is {kind}, and the client is that of {client}: use "
        f"`{line.format(package)}`{or_open}"
    )


@pytest.fixture(params=STORES)
def unfit(request: pytest.FixtureRequest, site: Any, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """A store of the other variant, and what the client is to report of it."""
    make, make_aio, line = STORES[request.param]
    store = (make if site.is_aio else make_aio)(tmp_path)
    yield store, sentence(site.is_aio, store, line)
    site.loop.finished(store.close())


def errors_of(consumer: Any) -> set[tuple[type, str]]:
    return {(type(error), str(error)) for _, error in consumer.errors}


def test_a_client_reports_a_store_of_the_other_variant_in_one_sentence(
    site: Any, wait: Any, unfit: tuple[Any, str]
) -> None:
    store, expected = unfit
    consumer = site.start(store)
    wait(lambda: len(consumer.errors) >= 2)
    consumer.store = site.store_in_memory()  # the one that the consumer closes
    site.closed(consumer)
    assert errors_of(consumer) == {(ConfigurationError, expected)}


# It reads the store in another place of the client; what is said is the same text.
@pytest.mark.parametrize("unfit", ["memory"], indirect=True)
def test_a_client_that_names_a_partition_reports_it_too(
    site: Any, wait: Any, unfit: tuple[Any, str]
) -> None:
    store, expected = unfit
    consumer = site.start(store, partition_id="0")
    wait(lambda: consumer.errors)
    consumer.store = site.store_in_memory()
    site.closed(consumer)
    assert errors_of(consumer) == {(ConfigurationError, expected)}


def test_the_page_has_the_sentence(site: Any) -> None:
    store = MemoryCheckpointStore() if site.is_aio else aio.MemoryCheckpointStore()
    text = sentence(site.is_aio, store, "from {} import MemoryCheckpointStore")
    assert text in " ".join(PAGE.read_text().split())


def test_the_client_reports_a_checkpointer_of_the_other_variant(site: Any, wait: Any) -> None:
    store = site.store_in_memory()
    other = MemoryCheckpointStore() if site.is_aio else aio.MemoryCheckpointStore()
    checkpointer: Any = (Checkpointer if site.is_aio else aio.Checkpointer)(other)
    errors: list[Exception] = []
    track = lambda context, event: checkpointer.track(context, event)  # noqa: E731
    site.publish(1, ["0"])
    if site.is_aio:
        site.loop.finished(
            received_aio(site, store, track, errors, wait, checkpointer.on_initialize)
        )
    else:
        received(site, store, track, errors, wait)
    site.loop.finished(checkpointer.close())
    site.loop.finished(store.close())
    expected = sentence(site.is_aio, checkpointer, "from {} import Checkpointer")
    assert {(type(error), str(error)) for error in errors} == {(ConfigurationError, expected)}


def received(site: Any, store: Any, track: Any, errors: list[Exception], wait: Any) -> None:
    client = EventHubConsumerClient.from_connection_string(
        site.hub.connection_string("orders"), "$Default", checkpoint_store=store
    )
    thread = threading.Thread(
        target=client.receive,
        args=(track,),
        kwargs={
            "partition_id": "0",
            "starting_position": "-1",
            "on_error": lambda context, error: errors.append(error),
        },
    )
    thread.start()
    wait(lambda: errors)
    client.close()
    thread.join()


async def received_aio(
    site: Any, store: Any, track: Any, errors: list[Exception], wait: Any, initialize: Any
) -> None:
    async def on_event(context: Any, event: Any) -> None:
        track(context, event)

    async def on_error(context: Any, error: Exception) -> None:
        errors.append(error)

    client = AioEventHubConsumerClient.from_connection_string(
        site.hub.connection_string("orders"), "$Default", checkpoint_store=store
    )
    task = asyncio.create_task(
        client.receive(
            on_event,
            partition_id="0",
            starting_position="-1",
            on_error=on_error,
            on_partition_initialize=initialize,
        )
    )
    await asyncio.to_thread(wait, lambda: len(errors) >= 2)  # of the announcement, and the event
    await client.close()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
