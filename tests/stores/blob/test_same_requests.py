"""What the store sends itself is what it sends through the driver: requests, logs and tokens."""

import logging
import random
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from azure.core.settings import settings as azure_settings
from azure.core.tracing import SpanKind

import campaigns
from eventhub_checkpoints._shared.deadline import deadline
from eventhub_checkpoints.errors import StoreAccessError
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.azure_storage.messages import Refusal
from eventhub_checkpoints.stores.blob.rest import Blob
from waiting import LIMIT

OF_THE_CLIENT = {
    *("user-agent", "accept-encoding", "connection", "host", "accept"),
    *("authorization", "x-ms-date", "x-ms-client-request-id"),
}
"""Headers that differ between two requests or two clients and decide nothing."""
ODD = "abcXYZ019 $-._~!'()*,;:@&=+?#%[]{}|^`\"<>\\äß€漢😀"
CONTENT_LENGTH = "content-length"


def plain(request: Any) -> tuple[Any, ...]:
    """A request as the service understands it."""
    target = urlsplit(request.target)
    lines = request.head.decode().split("\r\n")[1:]
    headers = {
        name.lower(): value
        for name, _, value in (line.partition(": ") for line in lines if line)
        if name.lower() not in OF_THE_CLIENT
    }
    headers.setdefault(CONTENT_LENGTH, "0")
    # yarl sends some characters without the percent encoding that urllib3 sends.
    query = sorted(parse_qsl(target.query, keep_blank_values=True))
    return request.method, unquote(target.path), query, headers


Call = tuple[str, tuple[Any, ...]]


def calls(chance: random.Random) -> list[Call]:
    """Calls of every request, with one odd name; some find no blob."""
    name = f"{odd_name(chance)}/{chance.randrange(100)}"
    owner = "".join(chance.choices("abc-0 ", k=5)).strip()
    etag = chance.choice([None, "0x8DOTHER"])
    return [
        ("create_container", ()),
        ("create", (name, {"ownerid": owner}, True)),
        ("create", (name, {"ownerid": owner})),
        ("update", (name, {"offset": owner, "sequencenumber": "7"}, etag)),
        ("read", (name,)),
        ("download", (name, 100)),
        ("list_blobs", (name[:3],)),
        ("list_below", (name[:3],)),
        ("read", (f"{name}/missing",)),
        ("update", (f"{name}/missing", {"ownerid": owner}, etag)),
        ("delete", (f"{name}/missing",)),
    ]


def odd_name(chance: random.Random) -> str:
    """Not `.` or `..`: the driver resolves them, and no entity of Event Hubs has such a name."""
    name = "".join(chance.choices(ODD, k=chance.randint(1, 12)))
    return odd_name(chance) if name in {".", ".."} else name


@pytest.mark.parametrize("variant", ["sync", "aio"], indirect=True)
def test_every_request_is_that_of_the_driver(variant: Any, proxied: Any, proxy: Any) -> None:
    seed = campaigns.seed(0)
    chance = random.Random(seed)
    paths = [variant.open(proxied, lean=lean).store._requests for lean in (True, False)]
    names = [type(each.transport).__name__ for each in paths]
    assert names == ["RestTransport", "DriverTransport"]

    def sent_by(path: Any, call: Call) -> tuple[Any, Any]:
        proxy.forget()
        name, args = call
        with deadline(LIMIT):
            try:
                answer = variant.finished(getattr(path, name)(*args))
            except Exception as error:
                answer = str(error)
        if isinstance(answer, Blob):
            answer = (answer.name, answer.metadata)
        if isinstance(answer, Refusal):
            answer = (answer.operation, answer.status, answer.code)
        return [plain(request) for request in proxy.requests], answer

    compared = 0
    for _ in range(campaigns.rounds(10, 250)):
        for call in calls(chance):
            (lean, answer), (driver, expected) = (sent_by(path, call) for path in paths)
            assert lean == driver, f"seed {seed}: {call}"
            if call[0] == "list_blobs":  # the times of the two responses may differ
                answer, expected = answer[0], expected[0]
            if not isinstance(answer, str):  # each write has its own etag
                assert answer == expected, f"seed {seed}: {call}"
            compared += len(lean)
    print(f"{compared} requests compared, 0 differences")
    assert compared > 80


@pytest.mark.parametrize("variant", ["sync", "aio"], indirect=True)
def test_a_list_in_pages_is_whole(variant: Any, client: Any, blob_container: Any) -> None:
    requests = client.store._requests
    container = requests.transport._container
    build = container.list

    def in_threes(*args: Any, **kwargs: Any) -> Any:
        request = build(*args, **kwargs)
        request.query = {**request.query, "maxresults": "3"}
        return request

    client.claim_ownership([client.proposal(str(n), "owner-1") for n in range(10)])
    container.list = in_threes
    assert sorted(row["partition_id"] for row in client.list_ownership()) == [*"0123456789"]


def test_requests_are_logged_as_the_driver_logs_them(
    variant: Any, blob_container: Any, sas: Callable[[str], str], caplog: Any
) -> None:
    logger = "azure.core.pipeline.policies.http_logging_policy"
    url = f"{blob_container.url}?{sas('racwl')}"
    client = variant.client(variant.open_store(url))
    with caplog.at_level(logging.INFO, logger):
        client.take("0", "owner-1")
    text = "\n".join(each.getMessage() for each in caplog.records if each.name == logger)
    for part in ("Request method: 'PUT'", "'x-ms-blob-type': 'REDACTED'", "Response status: 201"):
        assert part in text
    assert "sig=" not in text.replace("sig=REDACTED", "")
    assert "owner-1" not in text


def test_with_tracing_the_driver_makes_the_spans(variant: Any, client: Any) -> None:
    names: list[str] = []

    class Span:
        """What azure-core asks of a span."""

        def __init__(self, span: Any = None, name: str = "", **_: Any) -> None:
            names.append(name)
            self.kind: Any = SpanKind.CLIENT
            self.span_instance = self

        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: None

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: Any) -> None: ...

        def to_header(self) -> dict[str, str]:
            return {}

        @classmethod
        def get_current_span(cls) -> Any:
            return None

        @classmethod
        def change_context(cls, span: Any) -> Any:
            return cls()

    azure_settings.tracing_implementation = Span
    try:
        client.take("0", "owner-1")
    finally:
        azure_settings.tracing_implementation.unset_value()
    assert any("upload_blob" in name for name in names)


@pytest.fixture
def tenant_server() -> Iterator[SimpleNamespace]:
    """A service over TLS that takes tokens of one tenant, and lists no blobs."""
    authority = SelfMadeAuthority(["127.0.0.1"])
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            token = self.headers["Authorization"]
            seen.append(token)
            if token != "Bearer of tenant-1":
                self.send_response(401)
                challenge = (
                    "Bearer authorization_uri=https://login.microsoftonline.com/tenant-1/oauth2 "
                    "resource_id=https://storage.azure.com"
                )
                self.send_header("WWW-Authenticate", challenge)
                body = b""
            else:
                self.send_response(200)
                self.send_header("Content-Type", "application/xml")
                body = b"<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>"
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = authority.context().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield SimpleNamespace(
        url=f"https://127.0.0.1:{server.server_port}/orders", ca_file=authority.ca_file, seen=seen
    )
    server.shutdown()
    thread.join()
    server.server_close()
    authority.close()


def test_a_token_of_the_tenant_that_the_service_names_is_sent(
    variant: Any, tenant_server: Any
) -> None:
    asked: list[tuple[Any, ...]] = []

    class Credential:
        def get_token(self, *scopes: str, tenant_id: str = "", **_: Any) -> Any:
            asked.append((scopes, tenant_id))
            token = SimpleNamespace(token=f"of {tenant_id or 'nobody'}", expires_on=9_999_999_999)
            return awaited(token) if variant.name == "aio" else token

    async def awaited(token: Any) -> Any:
        return token

    store = variant.store(
        tenant_server.url, "positions", Credential(), connection_verify=tenant_server.ca_file
    )
    client = variant.client(store, Scope("ns", "orders", "$Default"))
    assert client.list_ownership() == []
    assert client.list_ownership() == []
    first = ("https://storage.azure.com/.default",)
    assert asked == [(first, ""), (first, "tenant-1")]
    assert tenant_server.seen == ["Bearer of nobody", *["Bearer of tenant-1"] * 2]


def test_a_certificate_that_is_not_trusted_is_refused(variant: Any, tenant_server: Any) -> None:
    store = variant.store(tenant_server.url, "positions", operation_timeout=LIMIT)
    with pytest.raises(StoreAccessError, match="its certificate is not trusted"):
        variant.client(store).list_ownership()
