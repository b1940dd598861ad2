"""The proxy that other tests trust: what it passes on, what it counts, how it misbehaves."""

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import (
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import ContainerClient

import fault_proxy
from fault_proxy import FaultProxy
from waiting import LIMIT, eventually

LOST = (ServiceRequestError, ServiceResponseError)


class Echo(BaseHTTPRequestHandler):
    """Answers with the request's body, in chunks if asked to; keeps what it was asked."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append(f"{self.command} {self.path}")
        self.send_response(200)
        if "chunked" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(body), 3):
                part = body[at : at + 3]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\nX-Trailer: yes\r\n\r\n")
        elif "until-closed" in self.path:
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

    do_GET = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error quiet."""


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def echo(asked: list[str]) -> Iterator[FaultProxy]:
    handler = type("Recorded", (Echo,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with FaultProxy(f"http://127.0.0.1:{server.server_port}/account") as proxy:
            yield proxy
        server.shutdown()
        thread.join()


@pytest.fixture
def connection(echo: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(echo.endpoint)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=LIMIT)
    yield connection
    connection.close()


def ask(connection: http.client.HTTPConnection, method: str, target: str, body: str = "") -> str:
    connection.request(method, target, body)
    return connection.getresponse().read().decode()


@pytest.mark.parametrize("target", ["/plain", "/chunked", "/until-closed"])
@pytest.mark.parametrize("body", ["", "x", "a longer body\r\n\r\n" * 5000])
def test_bodies_come_back_unchanged(
    connection: http.client.HTTPConnection, target: str, body: str
) -> None:
    assert ask(connection, "PUT", target, body) == body
    assert ask(connection, "PUT", target, body) == body


def test_an_answer_to_head_has_no_body_to_wait_for(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "HEAD", "/plain", "three") == ""
    assert ask(connection, "GET", "/plain", "four") == "four"


def test_a_request_in_chunks_is_passed_on(
    echo: FaultProxy, connection: http.client.HTTPConnection, asked: list[str]
) -> None:
    connection.request("DELETE", "/c", iter([b"ab", b"cde"]), encode_chunked=True)
    assert connection.getresponse().status == 200
    assert asked == ["DELETE /c"]


def test_requests_are_kept_with_their_status(
    echo: FaultProxy, connection: http.client.HTTPConnection
) -> None:
    ask(connection, "GET", "/a?comp=list")
    ask(connection, "PUT", "/b")
    assert [(r.method, r.target, r.status) for r in echo.requests] == [
        ("GET", "/a?comp=list", 200),
        ("PUT", "/b", 200),
    ]
    assert (echo.count(), echo.count("PUT"), echo.count(path="comp=list")) == (2, 1, 1)
    echo.forget()
    assert echo.count() == 0


def test_a_connection_is_kept_alive_on_both_sides(
    connection: http.client.HTTPConnection, echo: FaultProxy
) -> None:
    ask(connection, "GET", "/a")
    kept = connection.sock
    ask(connection, "GET", "/b")
    assert connection.sock is kept


@pytest.mark.long
def test_answers_are_delayed_all_at_once(echo: FaultProxy) -> None:
    echo.delay = 0.2
    address = urlsplit(echo.endpoint)

    def once(_: int) -> None:
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=LIMIT)
        ask(connection, "GET", "/a")
        connection.close()

    started = time.monotonic()
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(once, range(10)))
    assert 0.2 <= time.monotonic() - started < 2.0  # one after another they take that
    assert 1 < echo.busiest <= 10


def test_a_fault_meets_only_the_requests_it_is_meant_for(
    echo: FaultProxy, connection: http.client.HTTPConnection
) -> None:
    fault = echo.on("PUT", "/checkpoint/", times=1).refuse(503, "ServerBusy")
    for method, target in [("GET", "/checkpoint/0"), ("PUT", "/ownership/0")]:
        ask(connection, method, target)
    for _ in range(2):
        ask(connection, "PUT", "/checkpoint/0")
    statuses = [request.status for request in echo.requests]
    assert statuses == [200, 200, 503, 200]
    assert fault.hits == 1


def test_a_refused_request_never_reaches_the_server(
    echo: FaultProxy, connection: http.client.HTTPConnection, asked: list[str]
) -> None:
    echo.on().refuse(403, "AuthorizationPermissionMismatch")
    assert "<Code>AuthorizationPermissionMismatch</Code>" in ask(connection, "PUT", "/a")
    assert asked == []


def test_a_dropped_request_never_reaches_the_server(
    echo: FaultProxy, connection: http.client.HTTPConnection, asked: list[str]
) -> None:
    echo.on().drop()
    with pytest.raises(http.client.RemoteDisconnected):
        ask(connection, "PUT", "/a")
    assert (asked, echo.requests[0].status) == ([], None)


def test_a_lost_answer_was_executed(
    echo: FaultProxy, connection: http.client.HTTPConnection, asked: list[str]
) -> None:
    echo.on().lose_answer()
    with pytest.raises(http.client.RemoteDisconnected):
        ask(connection, "PUT", "/a")
    assert (asked, echo.requests[0].status) == (["PUT /a"], None)


@pytest.mark.parametrize("executed", [True, False])
def test_a_hanging_request_gets_no_answer(
    echo: FaultProxy, connection: http.client.HTTPConnection, asked: list[str], executed: bool
) -> None:
    echo.on().hang(executed=executed)
    connection.connect()
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        ask(connection, "PUT", "/a")
    eventually(lambda: asked == (["PUT /a"] if executed else []))


@pytest.mark.long
def test_a_dripping_answer_arrives_byte_by_byte(
    echo: FaultProxy, connection: http.client.HTTPConnection
) -> None:
    echo.on().drip(0.001)
    connection.request("PUT", "/a", "whole")
    pieces = []
    while not b"".join(pieces).endswith(b"whole"):
        pieces.append(connection.sock.recv(10))
    # On a busy machine some bytes wait for one another.
    assert len(pieces) > len(b"".join(pieces)) / 2


@pytest.mark.long
def test_a_held_back_answer_was_executed_at_once(
    echo: FaultProxy, connection: http.client.HTTPConnection, asked: list[str]
) -> None:
    echo.on().wait(2.0)
    began = time.monotonic()
    connection.request("PUT", "/a")
    eventually(lambda: asked == ["PUT /a"])
    executed = time.monotonic()
    assert connection.getresponse().status == 200
    assert executed - began < 2.0 <= time.monotonic() - began


def test_headers_are_set_removed_and_computed(
    echo: FaultProxy, connection: http.client.HTTPConnection
) -> None:
    echo.rewrite("server", None)
    echo.rewrite("Date", lambda old: f"not {old}")
    echo.rewrite("X-New", "yes")
    connection.request("GET", "/a")
    answer = connection.getresponse()
    assert answer.read() == b""
    assert (answer.headers["Server"], answer.headers["X-New"]) == (None, "yes")
    assert answer.headers.get_all("Date")[0].startswith("not ")


def test_healing_ends_all_faults(echo: FaultProxy, connection: http.client.HTTPConnection) -> None:
    echo.on().refuse(500, "InternalError")
    echo.rewrite("X-New", "yes")
    echo.heal()
    connection.request("GET", "/a")
    assert connection.getresponse().headers["X-New"] is None


def test_a_server_that_is_down_breaks_connections_and_comes_back(
    echo: FaultProxy, connection: http.client.HTTPConnection
) -> None:
    ask(connection, "GET", "/a")
    echo.down()
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        ask(connection, "GET", "/b")
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        connection.connect()
    with pytest.raises(OSError, match="in use"):  # nobody else gets its port meanwhile
        socket.create_server(("127.0.0.1", echo.port))
    echo.up()
    assert ask(connection, "GET", "/d", "back") == "back"


def test_a_server_that_is_not_there_closes_the_clients_connection(closed_port: int) -> None:
    with FaultProxy(f"http://127.0.0.1:{closed_port}") as proxy:
        connection = http.client.HTTPConnection(str(urlsplit(proxy.endpoint).netloc), timeout=LIMIT)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(connection, "GET", "/")
        connection.close()


@pytest.fixture
def blobs(proxy: FaultProxy, blob_container) -> Iterator[ContainerClient]:
    with ContainerClient.from_connection_string(
        blob_container.through(proxy.endpoint).connection_string, blob_container.name, retry_total=0
    ) as client:
        yield client


def test_a_shared_key_holds_at_the_proxys_address(
    blobs: ContainerClient, proxy: FaultProxy
) -> None:
    blobs.upload_blob("a", b"text")
    assert blobs.download_blob("a").readall() == b"text"
    assert [blob.name for blob in blobs.list_blobs()] == ["a"]
    assert [(r.method, r.status) for r in proxy.requests] == [
        ("PUT", 201),
        ("GET", 206),
        ("GET", 200),
    ]


def test_the_storage_client_sees_each_fault_as_the_real_one(
    blobs: ContainerClient, proxy: FaultProxy
) -> None:
    proxy.on("PUT", times=1).refuse(503, "ServerBusy")
    with pytest.raises(HttpResponseError) as busy:
        blobs.upload_blob("a", b"")
    assert (busy.value.status_code, busy.value.error_code) == (503, "ServerBusy")
    proxy.on("PUT", times=1).lose_answer()
    with pytest.raises(LOST):
        blobs.upload_blob("b", b"")
    assert [blob.name for blob in blobs.list_blobs()] == ["b"]


def test_it_runs_as_a_process_of_its_own(azurite) -> None:
    command = [sys.executable, fault_proxy.__file__, azurite.endpoint, "--delay-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        endpoint = process.stdout.readline().strip()
        address = urlsplit(endpoint)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=LIMIT)
        connection.request("GET", f"{address.path}?comp=list")
        assert connection.getresponse().status == 403
        connection.close()
        process.terminate()
        assert process.wait(LIMIT) == 0
