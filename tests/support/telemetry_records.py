"""Spans and metrics of a test, in the real SDK's in-memory exporters."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eventhub_checkpoints._shared import telemetry, tracing


class Records:
    """What this package and the test have reported, through providers of their own.

    The process's providers stay as they are: they can be set only once.
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = self.tracers.get_tracer("test")

    def spans(self, name: str = "") -> list[ReadableSpan]:
        """Ended spans whose names begin so, in the order in which they began."""
        found = [span for span in self._exporter.get_finished_spans() if span.name.startswith(name)]
        return sorted(found, key=lambda span: span.start_time or 0)

    def points(self, name: str) -> list[Any]:
        """Data points of a metric."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def text(self) -> str:
        """Everything that was exported, as JSON."""
        data = self._reader.get_metrics_data()
        return "".join(span.to_json() for span in self.spans()) + (data.to_json() if data else "")


@contextmanager
def recording(*, with_spans: bool = True) -> Iterator[Records]:
    """Have this package report to new records while the block runs."""
    records, before = Records(), tracing.telemetry
    tracers = records.tracers if with_spans else None
    made = telemetry.Telemetry(tracers, records.meters)
    tracing.telemetry = lambda: made  # type: ignore[assignment]
    try:
        yield records
    finally:
        tracing.telemetry = before


def id_of(span: ReadableSpan | None) -> tuple[int, int]:
    """Trace and span id."""
    context = None if span is None else span.context
    assert context is not None
    return context.trace_id, context.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    """Trace and span id of a span's parent; None if it is a root."""
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    """Trace and span ids that a span is linked to."""
    return [(link.context.trace_id, link.context.span_id) for link in span.links]
