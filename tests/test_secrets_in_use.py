"""Secrets that work: no path that uses one shows it, with the logs of all libraries at DEBUG.

In `tests/test_no_secret_is_shown.py` secrets are passed where they do not belong. Here they are
where they belong, and the paths are those of a working program: what is read and written, refused,
not reached, and closed. Commands are in `tests/cli/test_secrets.py`, pages in
`tests/ui/test_access.py`, the source of Spark in `tests/spark/test_planted_secrets.py`.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from azure.eventhub import EventData, EventHubConsumerClient, TransportType
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from sqlalchemy import make_url

from backends import BACKENDS, Backend, Variant
from eventhub_checkpoints import (
    EventProcessor,
    MemoryCheckpointStore,
    PartitionProcessor,
    aio,
    dead_letters,
    open_store,
)
from eventhub_checkpoints.aio import dead_letters as aio_sinks
from eventhub_checkpoints.arrow import HubAddress, ReadSettings, read_batches
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.send.arrow import send_batches
from eventhub_checkpoints.send.settings import SendSettings
from forward_proxy import ForwardProxy
from planted import KEY, SECRETS_OF, WORD, WRONG_KEY, Heard, listening, secrets_of_blob
from waiting import LIMIT
from websocket_gate import WebSocketGate

pytestmark = [
    pytest.mark.waits,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

WITHOUT = {"memory", "sqlite"}
NOBODY_ANSWERS = 0.1
"""Time limit in seconds of calls that reach nobody, each of which takes all of it."""


@pytest.fixture
def heard(searched: Callable[[str, int], None]) -> Iterator[Heard]:
    with listening() as hearing:
        yield hearing
    searched("log records, errors, objects and spans of working programs", hearing.searched)


def test_every_backend_with_a_secret_is_tried() -> None:
    assert SECRETS_OF.keys() | WITHOUT == BACKENDS.keys()


def elsewhere(url: str, port: int) -> str:
    """The same URL, with another port of this machine."""
    return re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", url)


def use(client: Client, heard: Heard) -> None:
    """Do what a consumer does with a store."""
    store = client.store
    heard.see(store)
    for work in (
        lambda: client.call("verify"),
        lambda: client.release(client.take_listed("0", "me")),
        lambda: client.save("0", 7),
        lambda: client.save("0", 3),
        lambda: client.call("list_checkpoints", *client.scope._replace(eventhub_name="no such")),
    ):
        with heard.error():
            work()
    heard.see(store)
    client.close()


@pytest.mark.parametrize("name", SECRETS_OF)
def test_a_store_that_works_or_is_not_reached_shows_nothing(
    name: str,
    servers: Callable[[str], Backend],
    variant: Variant,
    scope: Scope,
    loop: Loop,
    heard: Heard,
    closed_port: int,
) -> None:
    opener = aio.open_store if variant == "aio" else open_store
    with servers(name).place() as place:
        for url, settings, secrets in SECRETS_OF[name](place, heard):
            for address, seconds in (
                (url, LIMIT),
                (elsewhere(url, closed_port), NOBODY_ANSWERS),
                (url.replace(quote(WORD, safe=""), "x"), LIMIT),
            ):
                limits = {"operation_timeout": seconds, "write_timeout": seconds}
                with heard.error():
                    use(Client(opener(address, **limits, **settings), scope, loop), heard)
            heard.check(*secrets)
            assert any("Connection" in text or "connect" in text for text in heard.texts)


@pytest.mark.parametrize("lean", [True, False], ids=["lean", "driver"])
def test_a_proxy_with_a_password_shows_nothing(
    lean: bool,
    servers: Callable[[str], Backend],
    variant: Variant,
    scope: Scope,
    loop: Loop,
    heard: Heard,
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opener = aio.open_store if variant == "aio" else open_store
    with (
        servers("blob").place() as place,
        ForwardProxy(make_url(place.url).port or 0, f"user:{WORD}") as proxy,
    ):
        by_sas, _, by_key, _ = secrets_of_blob(place, heard)
        for url, settings, secrets in (by_sas, by_key):
            for password, port, seconds in (
                (WORD, proxy.port, LIMIT),
                ("wrong", proxy.port, NOBODY_ANSWERS),
                (WORD, closed_port, NOBODY_ANSWERS),
                (None, 0, LIMIT),
            ):
                address = f"http://user:{quote(password or '', safe='')}@127.0.0.1:{port}"
                monkeypatch.setenv("HTTP_PROXY", address if password else "")
                with heard.error():
                    limits = {"operation_timeout": seconds, "write_timeout": seconds}
                    store = opener(url, lean=lean, **limits, **settings)
                    use(Client(store, scope, loop), heard)
            heard.check(WORD, *secrets)
        assert proxy.served >= 10
        assert proxy.refused >= 2


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 2}, accept_keys=[KEY]) as running:
        for partition_id in running.partition_ids("orders"):
            running.publish("orders", partition_id, [b"event"] * 5)
        yield running


def strings(hub: LocalHub, port: int) -> list[str]:
    """Connection strings that work, are refused, and reach nobody."""
    works = re.sub(
        "SharedAccessKey=[^;]+", f"SharedAccessKey={KEY}", hub.connection_string("orders")
    )
    assert KEY in works
    return [works, works.replace(KEY, WRONG_KEY), works.replace(f":{hub.port}", f":{port}")]


class Failing(PartitionProcessor):
    """Cannot process any event: its sink of dead letters gets each of them."""

    def process_events(self, events: list[EventData]) -> None:
        raise ValueError("nobody can process this event")


class AioFailing(aio.PartitionProcessor):
    async def process_events(self, events: list[EventData]) -> None:
        raise ValueError("nobody can process this event")


class Ended:
    """Sink and `on_error` that tell when there is nothing more to wait for."""

    def __init__(self, heard: Heard, sink: Any) -> None:
        self.heard = heard
        self.sink = sink
        self.happened = threading.Event()

    def on_error(self, partition_id: str | None, error: Exception) -> None:
        self.heard.see(error)
        self.happened.set()

    def on_poison(self, *arguments: Any) -> Any:
        self.happened.set()
        return self.sink(*arguments)


@pytest.mark.parametrize("works", [0, 1, 2], ids=["works", "wrong key", "not reached"])
def test_a_processor_and_its_dead_letters_show_nothing(
    variant: Variant, hub: LocalHub, loop: Loop, heard: Heard, closed_port: int, works: int
) -> None:
    string = strings(hub, closed_port)[works]
    is_aio = variant == "aio"
    client = (
        AioEventHubConsumerClient if is_aio else EventHubConsumerClient
    ).from_connection_string
    sinks = aio_sinks if is_aio else dead_letters
    sink = sinks.DeadLetterHub.from_connection_string(string, retry_total=0, auth_timeout=3)
    ended = Ended(heard, sink)
    processor: Any = (aio.EventProcessor if is_aio else EventProcessor)(
        partial(client, string, "$Default", retry_total=0, auth_timeout=3),
        AioFailing if is_aio else Failing,
        store=(aio.MemoryCheckpointStore if is_aio else MemoryCheckpointStore)(),
        on_poison=ended.on_poison,
        on_error=ended.on_error,
        attempts=1,
        starting_position="-1",
    )
    heard.see(sink, processor)
    with heard.error():
        loop.finished(processor.start())
        assert ended.happened.wait(LIMIT)
        heard.see(processor, processor.stats())
    with heard.error():
        loop.finished(processor.stop())
    loop.finished(sink.close())
    heard.check(KEY, WRONG_KEY)


@pytest.mark.parametrize("path", ["fast", "public"])
def test_reading_and_sending_batches_show_nothing(
    path: Any, hub: LocalHub, heard: Heard, closed_port: int
) -> None:
    # The official producer repeats what is refused for longer than the time it is given.
    once = {"retry_total": 0}
    ways = (LIMIT, {}), (1, once), (1, once)
    for string, (seconds, options) in zip(strings(hub, closed_port), ways, strict=True):
        reads = ReadSettings(receive_path=path, operation_timeout=seconds, receiver_timeout=seconds)
        with heard.error(), read_batches(string, settings=reads) as batches:
            heard.see(batches)
            assert batches.to_table().num_rows == 10
        address = HubAddress.from_connection_string(string, **options)
        heard.see(address)
        with heard.error():
            sends = SendSettings(send_path=path, operation_timeout=seconds)
            assert send_batches(address, [pa.record_batch({"body": ["event"]})], sends) == 1
    assert sum(hub.partition_properties("orders", id_).last_sequence_number for id_ in "01") == 9
    heard.check(KEY, WRONG_KEY)


@pytest.mark.parametrize("path", ["fast", "public"])
def test_a_hub_behind_a_proxy_with_a_password_shows_nothing(
    path: Any, hub: LocalHub, heard: Heard, closed_port: int
) -> None:
    string = strings(hub, closed_port)[0].partition(";")[2]
    with WebSocketGate(hub.port) as gate, ForwardProxy(gate.port, f"user:{WORD}") as proxy:
        rows = 0
        for password, port, seconds in (
            (WORD, proxy.port, LIMIT),
            ("wrong", proxy.port, 1.0),
            (WORD, closed_port, 1.0),
        ):
            reads = ReadSettings(
                receive_path=path, operation_timeout=seconds, receiver_timeout=seconds
            )
            of_proxy = {"proxy_hostname": "127.0.0.1", "proxy_port": port}
            address = HubAddress.from_connection_string(
                f"Endpoint=sb://ns.servicebus.windows.net/;{string}",
                # Not an address of this machine, for which the client would use no proxy.
                custom_endpoint_address="sb://hub.example:80",
                transport_type=TransportType.AmqpOverWebsocket,
                http_proxy={**of_proxy, "username": "user", "password": password},
                use_tls=False,
            )
            heard.see(address)
            with heard.error(), read_batches(address, settings=reads) as batches:
                rows += batches.to_table().num_rows
        assert (rows, proxy.served > 0, proxy.refused > 0) == (10, True, True)
    heard.check(KEY, WORD)


def test_what_is_shown_would_be_heard(heard: Heard) -> None:
    logging.getLogger("azure.some.library").debug("header: %s", WORD)
    with pytest.raises(AssertionError, match="a secret is shown"):
        heard.check(WORD)
    heard.texts.clear()
    with heard.error():
        try:
            raise OSError(f"connecting with {WORD}")
        except OSError as error:
            raise RuntimeError("not reached") from error
    with pytest.raises(AssertionError, match="a secret is shown"):
        heard.check(WORD)
    heard.texts[:] = ["https://host/container?sv=2022-11-02&sig=abc"]
    with pytest.raises(AssertionError, match="a signature is shown"):
        heard.check(WORD)
