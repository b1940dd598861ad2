"""Creates spans and metrics by OpenTelemetry's conventions for messaging.

Source: open-telemetry/semantic-conventions 1.44, `docs/messaging/azure-messaging.md` and
`messaging-metrics.md`; azure-eventhub 5.15.1, `_tracing.py`, for the properties of events.
"""

import os
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState

from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.tracing import Names, Operation

NAME = "eventhub_checkpoints"
SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
DISABLED = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
"""Environment variable with the names of instrumentations that are switched off."""
BOUNDARIES = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Upper bounds of the buckets of a duration, in seconds."""

ENQUEUED_TIME = "messaging.eventhubs.message.enqueued_time"
TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
KEYS: tuple[tuple[str, bytes], ...] = (
    ("traceparent", b"traceparent"),
    ("Diagnostic-Id", b"Diagnostic-Id"),
)
"""Properties with the context of the producer, the newer first; clients deliver str or bytes."""

OPERATION_TYPES = {"process": "process", "checkpoint": "settle"}

Attributes = dict[str, str | int]


def attributes_of_scope(names: Names) -> Attributes:
    """Return the attributes of a hub and a consumer group."""
    address, _, port = names[0].partition(":")
    attributes: Attributes = {
        "messaging.system": "eventhubs",
        "messaging.destination.name": names[1],
        "messaging.consumer.group.name": names[2],
        "server.address": address,
    }
    if port.isdigit():
        attributes["server.port"] = int(port)
    return attributes


@lru_cache(maxsize=4096)
def attributes_of(operation: str, names: Names) -> Attributes:
    """Return the attributes of an operation on a partition; callers must not modify them."""
    attributes = attributes_of_scope(names) | {"messaging.operation.name": operation}
    if operation in OPERATION_TYPES:
        attributes["messaging.operation.type"] = OPERATION_TYPES[operation]
    if len(names) > 3:
        attributes["messaging.destination.partition.id"] = names[3]
    return attributes


def text_of(properties: Mapping[Any, Any], keys: tuple[str, bytes]) -> str:
    """Return a property of an event as a string; an empty one if there is none."""
    value = properties.get(keys[1]) or properties.get(keys[0])
    if isinstance(value, bytes):
        return value.decode("ascii", "replace")
    return value if isinstance(value, str) else ""


def producer_context(traceparent: str, tracestate: str) -> SpanContext | None:
    """Read W3C trace context; return None if it is invalid.

    The API's propagator reads the same in twice the time, for every event.
    """
    match = TRACEPARENT.fullmatch(traceparent.strip())
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    context = SpanContext(
        trace_id=int(match[2], 16),
        span_id=int(match[3], 16),
        is_remote=True,
        trace_flags=TraceFlags(int(match[4], 16)),
        trace_state=TraceState.from_header([tracestate]) if tracestate else None,
    )
    return context if context.is_valid else None


def enqueued_time(event: Any) -> int | None:
    """Return when the hub has stored an event, in seconds since the epoch; None if unknown."""
    time = getattr(event, "enqueued_time", None)
    return None if time is None else int(time.timestamp())


def links_of(events: Sequence[Any]) -> list[Link]:
    """Return a link to each span in which an event was created, in the order of the events."""
    links: dict[str, Link] = {}
    for event in events:
        properties = getattr(event, "properties", None)
        if not properties:
            continue
        for keys in KEYS:
            header = text_of(properties, keys)
            if header in links:
                break
            state = text_of(properties, ("tracestate", b"tracestate"))
            if header and (context := producer_context(header, state)) is not None:
                at = enqueued_time(event)
                links[header] = Link(context, None if at is None else {ENQUEUED_TIME: at})
                break
    return list(links.values())


def type_of(error: BaseException | None) -> str:
    """Return the value of `error.type`."""
    if error is None:
        return "_OTHER"
    kind = type(error)
    is_builtin = kind.__module__ == "builtins"
    return kind.__qualname__ if is_builtin else f"{kind.__module__}.{kind.__qualname__}"


def masked_exception(error: BaseException) -> dict[str, str]:
    """Return the attributes of an exception event, without secrets.

    Each entry of the traceback is masked on its own: one is an exception's whole message, which may
    have megabytes, and the end of the traceback says more than its beginning.

    Source: open-telemetry/semantic-conventions 1.44, `docs/exceptions/exceptions-spans.md`.
    """
    return {
        "exception.type": type_of(error),
        "exception.message": message_of(error),
        "exception.stacktrace": "".join(map(masked_entry, traceback.format_exception(error))),
    }


def masked_entry(entry: str) -> str:
    """Return an entry of a traceback without secrets, with the end of its line."""
    return masked(entry.removesuffix("\n")) + "\n"


class TracedOperation(Operation):
    """Span of an operation, and its duration as a metric.

    Args:
        duration: records how long it took.
        attributes: of the metric.
        span: None if no provider of spans is configured.
    """

    __slots__ = ("_attributes", "_began", "_duration", "_has_ended", "_span", "_token", "context")

    def __init__(
        self, duration: metrics.Histogram, attributes: Attributes, span: trace.Span | None
    ) -> None:
        self._duration = duration
        self._attributes = attributes
        self._span = span
        self.context = None if span is None else trace.set_span_in_context(span)
        self._token: Any = None
        self._has_ended = False
        self._began = time.perf_counter()

    def attach(self) -> None:
        if self.context is not None:
            self._token = attach(self.context)

    def detach(self) -> None:
        if self._token is not None:
            detach(self._token)
            self._token = None

    def set(self, name: str, value: int) -> None:
        if self._span is not None:
            self._span.set_attribute(f"{NAME}.{name}", value)

    def end(self) -> None:
        if not self._has_ended:
            self._end(self._attributes)

    def fail(self, error: BaseException | None) -> None:
        if self._has_ended:
            return
        if self._span is not None:
            self._span.set_attribute("error.type", type_of(error))
            shown = {} if error is None else masked_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, shown.get("exception.message")))
            if error is not None:
                # Not `record_exception`, which calls the `__str__` of the exception itself.
                self._span.add_event("exception", shown)
        self._end({**self._attributes, "error.type": type_of(error)})

    def _end(self, attributes: Attributes) -> None:
        self._has_ended = True
        self._duration.record(time.perf_counter() - self._began, attributes)
        if self._span is not None:
            self._span.end()


class Telemetry:
    """Tracer and instruments of this package.

    Args:
        tracer_provider: where spans go; None: to what the program has configured, now or later.
        meter_provider: where metrics go; likewise.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._provider = tracer_provider
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider, schema_url=SCHEMA)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider, schema_url=SCHEMA)
        self._process_duration = histogram(
            meter, "messaging.process.duration", "Duration of processing operation."
        )
        self._request_duration = histogram(
            meter,
            "messaging.client.operation.duration",
            "Duration of messaging operation initiated by a producer or consumer client.",
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages",
            "{message}",
            "Number of messages that were delivered to the application.",
        )
        self._behind: dict[Names, Mapping[str, float]] = {}
        for figure in ("min", "avg", "max"):
            meter.create_observable_gauge(
                f"{NAME}.behind_latest.{figure}",
                [partial(self._observe_behind, figure)],
                "{event}",
                f"Events of a partition that a Spark query has not committed ({figure}).",
            )

    @staticmethod
    def is_enabled() -> bool:
        """Return whether the environment does not switch this instrumentation off."""
        names = os.environ.get(DISABLED, "").split(",")
        return not {"*", NAME} & {name.strip() for name in names}

    @property
    def _has_provider(self) -> bool:
        """Return whether it is known where spans go: otherwise, building them is useless."""
        provider = self._provider or trace.get_tracer_provider()
        return not isinstance(provider, trace.ProxyTracerProvider)

    def received(self, names: Names, count: int) -> None:
        """Count events that the client has delivered."""
        self._consumed.add(count, attributes_of("process", names))

    def process(self, names: Names, events: Sequence[Any], *, is_batch: bool) -> Operation:
        """Start the processing of events."""
        attributes = attributes_of("process", names)
        span = None
        if self._has_provider:
            details = attributes | sequence_numbers(events)
            at = None if is_batch else enqueued_time(events[0])
            if is_batch:
                details["messaging.batch.message_count"] = len(events)
            if at is not None:
                details[ENQUEUED_TIME] = at
            span = self._tracer.start_span(
                f"process {names[1]}",
                kind=SpanKind.CONSUMER,
                attributes=details,
                links=links_of(events),
            )
        return TracedOperation(self._process_duration, attributes, span)

    def request(self, operation: str, names: Names, details: Mapping[str, int]) -> Operation:
        """Start a request to the store."""
        attributes = attributes_of(operation, names)
        span = None
        if self._has_provider:
            span = self._tracer.start_span(
                f"{operation} {names[1]}",
                kind=SpanKind.CLIENT,
                attributes=attributes | {f"{NAME}.{name}": details[name] for name in details},
            )
        return TracedOperation(self._request_duration, attributes, span)

    def behind_latest(self, names: Names, figures: Mapping[str, float] | None) -> None:
        """Set the gauges of a query, or remove them."""
        if figures is None:
            self._behind.pop(names, None)
        else:
            self._behind[names] = figures

    def _observe_behind(
        self, figure: str, _: metrics.CallbackOptions
    ) -> Iterator[metrics.Observation]:
        for names, figures in list(self._behind.items()):
            yield metrics.Observation(figures[figure], attributes_of_scope(names))

    @contextmanager
    def child_of(self, context: Context) -> Iterator[None]:
        """Make the spans of the block children of another operation's."""
        token = attach(context)
        try:
            yield
        finally:
            detach(token)

    def current_context(self) -> Context:
        """Return the context of the current span."""
        return get_current()


def sequence_numbers(events: Sequence[Any]) -> Attributes:
    """Return the attributes that tell which events a span is about."""
    first, last = events[0].sequence_number, events[-1].sequence_number
    if len(events) == 1:
        return {f"{NAME}.sequence_number": first or 0}
    return {f"{NAME}.first_sequence_number": first or 0, f"{NAME}.last_sequence_number": last or 0}


def histogram(meter: metrics.Meter, name: str, description: str) -> metrics.Histogram:
    """Create a histogram of durations."""
    create = partial(meter.create_histogram, name, "s", description)
    try:
        return create(explicit_bucket_boundaries_advisory=BOUNDARIES)
    except TypeError:  # before opentelemetry-api 1.30, the buckets are the SDK's choice
        return create()
