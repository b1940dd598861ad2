"""HTTP server with `/metrics`, `/lag.json` and `/health`.

It is that of the standard library: three GET requests with answers from memory need no framework,
the stores are synchronous, and the extra needs no web server. Each request has a thread.
"""

import json
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from eventhub_checkpoints._shared.listening import listening_on
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.lag import oldest
from eventhub_checkpoints.operations.monitor import Monitor, Status
from eventhub_checkpoints.operations.scale import number_in

log = logging.getLogger(__name__)

JSON = "application/json"
IDLE_SECONDS = 30.0
"""Seconds of silence after which a connection is closed."""
NAMES = {"namespace": "namespace", "hub": "eventhub", "group": "consumer_group"}
"""Parameters of a query that choose groups, and the arguments of `Monitor.find`."""
NUMBERS = ("target", "activation")

Answer = tuple[HTTPStatus, bytes, str]
"""Status, body and content type."""


class Pages:
    """Answers to requests, from what a monitor knows.

    Args:
        monitor: polls the groups.
        encode: returns the metrics; see `metrics.exposition`.
        target: unprocessed events for each replica, where the query names no other number.
    """

    def __init__(
        self, monitor: Monitor, encode: Callable[[str], tuple[bytes, str]], target: int
    ) -> None:
        self._monitor = monitor
        self._encode = encode
        self._target = target

    def answer_to(self, target: str, accept: str) -> Answer:
        """Return the answer to a GET request, whose path and query are not separated yet."""
        try:
            url = urlsplit(target)
            pairs = parse_qsl(url.query, keep_blank_values=True)
        except ValueError:
            return error(HTTPStatus.BAD_REQUEST, f"{quoted(target)} is not a path with a query")
        query = dict(pairs)
        if len(query) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            return error(
                HTTPStatus.BAD_REQUEST,
                f"the query has {quoted(twice)} twice; ask for each value by a request of its own",
            )
        return self.answer(url.path, query, accept)

    def answer(self, path: str, query: Mapping[str, str], accept: str) -> Answer:
        """Return the answer to a GET request."""
        if path == "/metrics":
            body, content_type = self._encode(accept)
            return HTTPStatus.OK, body, content_type
        if path == "/lag.json":
            return self._lag(query)
        if path == "/health":
            return self._health()
        return error(
            HTTPStatus.NOT_FOUND, f"there is no {path}; use /metrics, /lag.json or /health"
        )

    def _lag(self, query: Mapping[str, str]) -> Answer:
        unknown = query.keys() - {*NAMES, *NUMBERS}
        if unknown:
            return error(
                HTTPStatus.BAD_REQUEST,
                f"the query has {quoted(min(unknown))}; expected {', '.join([*NAMES, *NUMBERS])}",
            )
        scopes = self._monitor.find(**{NAMES[key]: query[key] for key in NAMES if key in query})
        if not scopes:
            served = ", ".join(str(scope) for scope in self._monitor.find())
            return error(HTTPStatus.NOT_FOUND, f"no such group is served; there is: {served}")
        try:
            target = number_in(query, "target", self._target, 1)
            activation = number_in(query, "activation", 0)
            groups = [lag_of(self._monitor.status(scope), target, activation) for scope in scopes]
        except ConfigurationError as refusal:
            return error(HTTPStatus.BAD_REQUEST, str(refusal))
        except CheckpointStoreError as failure:
            # KEDA takes any status but 200 for an error and keeps the number of replicas.
            return error(HTTPStatus.SERVICE_UNAVAILABLE, str(failure))
        return HTTPStatus.OK, *as_json(
            {
                **{
                    name: sum(each[name] for each in groups)
                    for name in ("lag", "lost", "scale", "replicas")
                },
                "lag_seconds": oldest(each["lag_seconds"] for each in groups),
                "active": any(each["active"] for each in groups),
                "groups": groups,
            }
        )

    def _health(self) -> Answer:
        """Return whether the process works; a restart would not bring back a hub or a store."""
        body, content_type = as_json(
            {
                "groups": [
                    {**status.scope.as_dict(), "up": not status.error, "error": status.error}
                    for status in self._monitor.statuses
                ]
            }
        )
        is_alive = self._monitor.is_alive
        status = HTTPStatus.OK if is_alive else HTTPStatus.SERVICE_UNAVAILABLE
        return status, body, content_type


def lag_of(status: Status, target: int, activation: int) -> dict[str, Any]:
    """Return the lag of a group for JSON.

    Raises:
        ConfigurationError: the target or the activation is out of range.
        CheckpointStoreError: the lag is unknown.
    """
    demand, sample = status.demand(target, activation), status.newest
    return {
        **sample.scope.as_dict(),
        "time": sample.time,
        "lag": sample.lag,
        "lag_seconds": sample.lag_seconds,
        "lost": sample.lost,
        "scale": demand.scale,
        "replicas": demand.replicas,
        "active": demand.is_active,
        "state": status.state,
    }


def as_json(value: Any) -> tuple[bytes, str]:
    """Return a value as a body and its content type."""
    return json.dumps(value).encode() + b"\n", JSON


def error(status: HTTPStatus, message: str) -> Answer:
    """Return an answer that explains an error."""
    return status, *as_json({"error": message})


class Server(ThreadingHTTPServer):
    """HTTP server on a host and a port; 0 takes a free one.

    Raises:
        ConfigurationError: the address is not available.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        with listening_on(host, port):
            super().__init__((host, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error instead of printing it; a client that goes away is not one."""
        if isinstance(sys.exception(), OSError):
            log.debug("a connection of %s has ended", client_address)
        else:
            log.exception("a request of %s failed", client_address)

    @property
    def url(self) -> str:
        """Return the address for clients."""
        host, port = self.server_address[:2]
        shown = host.decode() if isinstance(host, bytes) else host
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD requests."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def do_HEAD(self) -> None:
        """Answer a request without the body, as probes send it."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer a request."""
        status, body, content_type = self.server.pages.answer_to(
            self.path, self.headers.get("Accept", "")
        )
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """Return the value of the header `Server`, without the version of Python."""
        return "ehcp"

    def log_message(self, format: str, *args: Any) -> None:
        """Log a request at level DEBUG instead of printing it."""
        log.debug(format, *args)
