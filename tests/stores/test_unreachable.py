"""Servers that cannot be reached: every store says what happened, where, and what to do."""

import importlib
import re
import socket
import ssl
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreAccessError, StoreError, StoreUnavailableError
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority
from eventhub_checkpoints.records import Scope
from refusals import says
from waiting import LIMIT

pytestmark = pytest.mark.waits

SECRET = "c2VjcmV0"
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
REGISTRIES = {"sync": "eventhub_checkpoints.registry", "aio": "eventhub_checkpoints.aio.registry"}
URLS = {
    "blob": "http://{place}/devstoreaccount1/container",
    "blob with a SAS": "https://{place}/devstoreaccount1/container?sv=2022-11-02&sig={secret}",
    "table": "table+http://{place}/devstoreaccount1/table",
    "table with a SAS": "table+https://{place}/devstoreaccount1/table?sv=2022-11-02&sig={secret}",
    "postgresql": "postgresql://app:{secret}@{place}/checkpoints",
    "asyncpg": "postgresql+asyncpg://app:{secret}@{place}/checkpoints",
    "redis": "redis://app:{secret}@{place}/0",
    "rediss": "rediss://:{secret}@{place}/0",
    "cassandra": "cassandra://app:{secret}@{place}/checkpoints",
}
CASES = [
    (variant, name)
    for variant in REGISTRIES
    for name in URLS
    if (variant, name) != ("sync", "asyncpg")
]


def failure(
    loop: Loop,
    variant: str,
    name: str,
    place: str,
    said: str,
    kind: type[StoreError] = StoreUnavailableError,
) -> str:
    """What a store of a URL raises, once that says what is to be said."""
    url = URLS[name].format(place=place, secret=SECRET)
    opened: Any = importlib.import_module(REGISTRIES[variant])
    store = opened.open_store(url, operation_timeout=0.5)
    client = Client(store, SCOPE, loop)
    try:
        refused = says(lambda: client.call("list_checkpoints", *SCOPE), kind, re.escape(said))
    finally:
        client.close()
    assert SECRET not in "".join(traceback.format_exception(refused))
    assert SECRET not in repr(store)
    return str(refused)


@pytest.mark.parametrize(("variant", "name"), CASES)
def test_a_refused_port_is_named(variant: str, name: str, loop: Loop, closed_port: int) -> None:
    place = f"127.0.0.1:{closed_port}"
    said = failure(loop, variant, name, place, "refused")
    assert place in said
    assert "check host" in said
    assert "include=metadata" not in said


@pytest.mark.parametrize(("variant", "name"), CASES)
def test_a_name_that_does_not_resolve_is_named(variant: str, name: str, loop: Loop) -> None:
    place = "nosuch.invalid"
    said = failure(loop, variant, name, place, "cannot be resolved")
    assert place in said
    assert "DNS" in said
    assert "include=metadata" not in said


class Listener:
    """A server that accepts connections: with TLS of an unknown authority, or mute."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                accepted, _ = self._socket.accept()
                self._accepted.append(accepted)
                if self._context is not None:
                    with suppress(OSError), accepted:
                        accepted.settimeout(LIMIT)
                        self._context.wrap_socket(accepted, server_side=True).close()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for one in self._accepted:
            one.close()


@pytest.fixture(scope="module")
def with_tls() -> Iterator[Listener]:
    authority = SelfMadeAuthority(["127.0.0.1"])
    listener = Listener(authority.context())
    yield listener
    listener.close()
    authority.close()


@pytest.fixture
def mute() -> Iterator[Listener]:
    listener = Listener(None)
    yield listener
    listener.close()


@pytest.mark.parametrize("variant", REGISTRIES)
@pytest.mark.parametrize("name", ["blob with a SAS", "rediss"])
def test_a_certificate_that_is_not_trusted_is_told_with_what_to_do(
    variant: str, name: str, loop: Loop, with_tls: Listener
) -> None:
    not_trusted = "its certificate is not trusted: name the file of its authority"
    said = failure(loop, variant, name, with_tls.place, not_trusted, StoreAccessError)
    assert with_tls.place in said


@pytest.mark.parametrize("variant", REGISTRIES)
def test_a_redis_port_that_wants_tls_is_asked_about(
    variant: str, loop: Loop, with_tls: Listener
) -> None:
    asked = "does this port want TLS? Then the URL begins with rediss://"
    failure(loop, variant, "redis", with_tls.place, asked)


@pytest.mark.parametrize("variant", REGISTRIES)
def test_a_redis_port_without_tls_is_asked_about(variant: str, loop: Loop, mute: Listener) -> None:
    asked = "does this port speak TLS? Else the URL begins with redis://"
    failure(loop, variant, "rediss", mute.place, asked)
