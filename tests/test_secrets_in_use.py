"""Secrets that work: no path that uses one shows it, with the logs of all libraries at DEBUG.

In `tests/test_no_secret_is_shown.py` secrets are passed where they do not belong. Here they are
where they belong, and the paths are those of a working program: what is read and written, refused,
not reached, and closed. Commands are in `tests/cli/test_secrets.py`, pages in
`tests/ui/test_access.py`, the source of Spark in `tests/spark/test_planted_secrets.py`.
"""

import base64
import logging
import pickle
import re
import socket
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import EventData, EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from azure.storage.blob import generate_container_sas
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
from eventhub_checkpoints.cli.azurite import EMULATOR_ACCOUNT, EMULATOR_KEY
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.send.arrow import send_batches
from eventhub_checkpoints.send.settings import SendSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

WORD = "planted-Pa55/word@+="
KEY = base64.b64encode(b"planted key of the hub, 32 bytes").decode()
WRONG_KEY = base64.b64encode(b"another key of the hub, 32 bytes").decode()
LIVE_SIGNATURE = re.compile(
    r"(?i)(?:\bsig(?:nature)?=|SharedKey [\w-]+:|Bearer )(?!\*\*\*|REDACTED)"
)
"""A signature or token is a secret as long as it is valid, though it is not what was planted."""


class Heard(logging.Handler):
    """What people get to see: all logs with their tracebacks, warnings, errors and `repr`s.

    Attributes:
        texts: each of them.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # Handlers of users may show the arguments, too, as those for JSON do.
        self.texts.append(f"{record.name}: {self.format(record)} {record.args!r}")

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Leave out what a test itself does with secrets."""
        before = len(self.texts)
        yield
        del self.texts[before:]

    def see(self, *values: object) -> None:
        """Look at objects as they are printed."""
        for value in values:
            self.texts.append(f"{value} {value!r}")

    @contextmanager
    def error(self) -> Iterator[None]:
        """Look at an error with its causes, if one is raised, and at what another process gets."""
        try:
            yield
        except Exception as error:
            self.texts.append("".join(traceback.format_exception(error)))
            for each in (error, error.__cause__, error.__context__):
                self.see(each, getattr(each, "__dict__", None))
                with suppress(Exception):
                    self.texts.append(repr(pickle.dumps(each)))

    def check(self, *secrets: str) -> None:
        """Find none of the secrets, however it is spelled, and no signature that is valid."""
        assert self.texts
        for secret in secrets:
            encoded = base64.b64encode(secret.encode()).decode()
            for spelled in {secret, quote(secret), quote(secret, safe=""), encoded}:
                shown = [text for text in self.texts if spelled in text]
                assert not shown, f"a secret is shown: {shown[0][:3000]}"
        signed = [text for text in self.texts if LIVE_SIGNATURE.search(text)]
        assert not signed, f"a signature is shown: {signed[0][:3000]}"


@pytest.fixture
def heard() -> Iterator[Heard]:
    root, handler = logging.getLogger(), Heard()
    loggers = [root, *(logging.getLogger(name) for name in list(root.manager.loggerDict))]
    levels = [(each, each.level) for each in loggers]
    for each in loggers:
        each.setLevel(logging.DEBUG if each is root else logging.NOTSET)
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            yield handler
            handler.see(*warned)
    finally:
        root.removeHandler(handler)
        for each, level in levels:
            each.setLevel(level)


Secret = tuple[str, dict[str, Any], list[str]]
"""URL and settings of a store, and the secrets in them."""


def in_url(url: str, user: str) -> str:
    return url.replace("//", f"//{user}:{quote(WORD, safe='')}@", 1)


def secrets_of_sql(place: Any, heard: "Heard") -> Iterator[Secret]:
    url = make_url(place.url)
    if url.drivername == "mysql":
        name = f"user_{place.database[-16:]}"
        with heard.deaf():
            place.execute(f"CREATE USER {name} IDENTIFIED BY '{WORD}'")
            place.execute(f"GRANT ALL ON {place.database}.* TO {name}")
        url = url.set(username=name)
    yield url.set(password=WORD).render_as_string(hide_password=False), {}, [WORD]
    yield url.render_as_string(hide_password=False), {"credential": lambda: WORD}, [WORD]


def secrets_of_redis(place: Any, heard: "Heard") -> Iterator[Secret]:
    name = place.namespace
    place.raw.execute_command("ACL", "SETUSER", name, "reset", "on", f">{WORD}", "~*", "+@all")
    yield in_url(place.url, name), {}, [WORD]


def secrets_of_cassandra(place: Any, heard: "Heard") -> Iterator[Secret]:
    yield in_url(place.url, "app"), {}, [WORD]


def secrets_of_blob(place: Any, heard: "Heard") -> Iterator[Secret]:
    expiry = datetime.now(UTC) + timedelta(hours=1)
    sas = generate_container_sas(
        EMULATOR_ACCOUNT,
        place.url.rpartition("/")[2],
        EMULATOR_KEY,
        permission="racwdl",
        expiry=expiry,
    )
    signature = unquote(sas.rpartition("sig=")[2].partition("&")[0])
    yield f"{place.url}?{sas}", {}, [signature]
    yield place.url, {"credential": AzureSasCredential(sas)}, [signature]
    key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
    yield place.url, {"credential": key}, [EMULATOR_KEY]
    # A token is never sent over plain HTTP, to this address neither.
    yield place.url, {"credential": Token()}, [WORD]


class Token:
    """Credential with a token that nobody accepts."""

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(WORD, 2**31)


SECRETS_OF = {
    "blob": secrets_of_blob,
    "postgres": secrets_of_sql,
    "mysql": secrets_of_sql,
    "redis": secrets_of_redis,
    "cassandra": secrets_of_cassandra,
}
WITHOUT = {"memory", "sqlite"}


def test_every_backend_with_a_secret_is_tried() -> None:
    assert SECRETS_OF.keys() | WITHOUT == BACKENDS.keys()


def elsewhere(url: str, port: int) -> str:
    """The same URL, with another port of this machine."""
    return re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", url)


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as bound:  # nobody listens
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


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
            for address in (
                url,
                elsewhere(url, closed_port),
                url.replace(quote(WORD, safe=""), "x"),
            ):
                with heard.error():
                    store = opener(address, operation_timeout=1.0, write_timeout=1.0, **settings)
                    use(Client(store, scope, loop), heard)
            heard.check(*secrets)
            assert any("Connection" in text or "connect" in text for text in heard.texts)


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

    def on_poison(self, *letter: Any) -> Any:
        self.happened.set()
        return self.sink(*letter)


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
        assert ended.happened.wait(30)
        heard.see(processor, processor.stats())
    with heard.error():
        loop.finished(processor.stop())
    loop.finished(sink.close())
    heard.check(KEY, WRONG_KEY)


@pytest.mark.parametrize("path", ["fast", "public"])
def test_reading_and_sending_batches_show_nothing(
    path: Any, hub: LocalHub, heard: Heard, closed_port: int
) -> None:
    for string in strings(hub, closed_port):
        reads = ReadSettings(receive_path=path, operation_timeout=1, receiver_timeout=1)
        with heard.error(), read_batches(string, settings=reads) as batches:
            heard.see(batches)
            assert batches.to_table().num_rows == 10
        address = HubAddress.from_connection_string(string)
        heard.see(address)
        with heard.error():
            sends = SendSettings(send_path=path, operation_timeout=1)
            assert send_batches(address, [pa.record_batch({"body": ["event"]})], sends) == 1
    assert sum(hub.partition_properties("orders", id_).last_sequence_number for id_ in "01") == 9
    heard.check(KEY, WRONG_KEY)


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
