"""A collector that keeps what programs export by OTLP over HTTP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Handler(BaseHTTPRequestHandler):
    """Decodes and accepts each request."""

    server: "Collector"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(REQUESTS[self.path].FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Collector(ThreadingHTTPServer):
    """Listens on a free port while its block runs."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Any] = []

    @property
    def endpoint(self) -> str:
        """Value of `OTEL_EXPORTER_OTLP_ENDPOINT`."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def spans(self, name: str) -> list[Any]:
        """Spans of a name, as they were encoded."""
        return [span for span in self._items("resource_spans") if span.name == name]

    def metrics(self) -> set[str]:
        """Names of metrics."""
        return {metric.name for metric in self._items("resource_metrics")}

    def _items(self, kind: str) -> Iterator[Any]:
        part = kind.removeprefix("resource_")
        for request in self.requests:
            for resource in getattr(request, kind, ()):
                for scope in getattr(resource, f"scope_{part}"):
                    yield from getattr(scope, part)


def attributes(span: Any) -> dict[str, Any]:
    """Attributes of a span or link."""
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }
