"""Requests with a body, for services that need one, in both variants."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

import pytest

from eventhub_checkpoints.stores.azure_storage.authorization import (
    Sas,
    SharedKey,
    text_to_sign,
)
from eventhub_checkpoints.stores.azure_storage.connection_options import ConnectionOptions
from eventhub_checkpoints.stores.azure_storage.messages import (
    Refusal,
    Request,
    Response,
    common_headers,
)

ROOM = "eventhub_checkpoints.stores.azure_storage"
KEY = SharedKey(lambda: ("orders", "c2VjcmV0"), text_to_sign)
SAS = Sas(lambda: "sig=c2VjcmV0")


class Echo(BaseHTTPRequestHandler):
    """Sends back what it was sent, and in a header how it was authorised."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(409 if body == b"twice" else 201)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-ms-error-code", "EntityAlreadyExists" if body == b"twice" else "")
        self.send_header("Seen", f"{self.headers['Authorization']} {self.path}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("folder", ["_sync", "_async"])
@pytest.mark.parametrize("authorization", [KEY, SAS], ids=["key", "SAS"])
def test_a_body_is_sent_and_a_status_is_returned(
    address: str, loop: Any, folder: str, authorization: Any
) -> None:
    http = import_module(f"{ROOM}.{folder}.http")
    options = ConnectionOptions.of({"use_env_settings": False}, address)
    connections = import_module(f"{ROOM}.{folder}.authorized").AuthorizedConnections(
        authorization, lambda: http.HttpConnections(options, 4)
    )

    def answer(body: bytes) -> Response | Refusal:
        headers = {**common_headers("2019-07-07", "application/json"), "Content-Type": "text/plain"}
        url = f"{address}/table"
        request = Request("insert", "POST", url, {"a": "b c"}, headers, 201, body)
        answered: Response | Refusal = loop.finished(connections.send(request))
        return answered

    carried_out = answer(b"entity")
    assert isinstance(carried_out, Response)
    assert (carried_out.status_code, carried_out.body) == (201, b"entity")
    seen = {
        KEY: "SharedKey orders:",
        SAS: "None /table?a=b%20c&sig=c2VjcmV0",
    }
    assert carried_out.headers["seen"].startswith(seen[authorization])
    refused = answer(b"twice")
    assert isinstance(refused, Refusal)
    assert (refused.operation, refused.status, refused.code) == (
        *("insert", 409, "EntityAlreadyExists"),
    )
    loop.finished(connections.close())
