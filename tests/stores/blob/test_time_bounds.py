"""Where the time of one call is spent on several requests, or on connecting."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from eventhub_checkpoints._shared._sync.compat import bounded
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from waiting import takes

LIMIT = 1.0
SLACK = 1.2
"""Seconds that a busy machine may add; a call that forgot the time to connect would add more."""


@pytest.mark.long
def test_all_pages_of_a_list_share_one_bound(variant, client, proxied, proxy) -> None:
    for number in range(5):
        client.take(str(number), "owner-1")
    paged = variant.store(connect=variant.in_pages(proxied, 1), operation_timeout=LIMIT)
    proxy.delay = 0.6 * LIMIT / 2  # one page is in time for an attempt, two are not
    reader = variant.client(paged)
    # The last pause may be too long for what is left of the time.
    with takes(LIMIT / 2, LIMIT / 2 + SLACK), pytest.raises(StoreUnavailableError):
        reader.list_ownership()


def test_a_request_for_which_no_time_is_left_is_not_begun(variant, watched, proxy) -> None:
    row = watched.take("0", "owner-1")
    proxy.forget()
    requests = watched.store._requests
    for request in (
        lambda: requests.read("any"),
        lambda: requests.create("any", {}),
        lambda: requests.update("any", {}, row["etag"]),
        lambda: requests.list_blobs("any"),
    ):
        with pytest.raises(TimeoutError):
            bounded(0.0, lambda request=request: variant.finished(request()))
    assert proxy.requests == []


@pytest.fixture
def silent_server() -> Iterator[Callable[[float], tuple[str, str]]]:
    """Makes a server that takes its time for the TLS handshake and then says nothing."""
    with ExitStack() as stack:
        authority = SelfMadeAuthority(["127.0.0.1"])
        stack.callback(authority.close)
        over = threading.Event()

        def start(handshake: float) -> tuple[str, str]:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            accepting = threading.Thread(target=accept, args=[server, handshake])
            accepting.start()
            stack.callback(accepting.join)
            stack.callback(server.shutdown, socket.SHUT_RDWR)
            return f"https://127.0.0.1:{server.getsockname()[1]}", authority.ca_file

        def accept(server: socket.socket, handshake: float) -> None:
            talking = []
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    break
                talking.append(threading.Thread(target=talk, args=[connection, handshake]))
                talking[-1].start()
            for thread in talking:
                thread.join()

        def talk(connection: socket.socket, handshake: float) -> None:
            over.wait(handshake)
            connection.settimeout(5)
            try:
                with authority.context().wrap_socket(connection, server_side=True):
                    over.wait(10)
            except (OSError, ssl.SSLError):
                connection.close()

        stack.callback(over.set)
        yield start
        over.set()


@pytest.mark.long
def test_connecting_counts_into_the_bound(variant, silent_server) -> None:
    limit = 4 * LIMIT
    address, ca_file = silent_server(0.4 * limit)
    store = variant.store(
        f"{address}/{EMULATOR_ACCOUNT}",
        "positions",
        EMULATOR_KEY,
        connection_verify=ca_file,
        operation_timeout=limit,
    )
    with takes(limit / 2, limit / 2 + SLACK), pytest.raises(StoreUnavailableError):
        variant.client(store).list_ownership()
