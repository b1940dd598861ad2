"""Links of events, attributes and switches of OpenTelemetry, without a client."""

from datetime import UTC, datetime
from typing import Any

import pytest
from azure.eventhub import EventData
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import metrics, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared.telemetry import (
    DISABLED,
    ENQUEUED_TIME,
    Telemetry,
    attributes_of,
    histogram,
    links_of,
    producer_context,
    type_of,
)
from eventhub_checkpoints.errors import StoreError
from telemetry_records import recording

NAMES = ("ns.servicebus.windows.net", "orders", "$Default", "3")
TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
HEADER = f"00-{TRACE:032x}-{SPAN:016x}-01"


class Event:
    """What a span reads of an event."""

    sequence_number, offset = 7, "7"

    def __init__(self, properties: Any, enqueued_time: datetime | None = None) -> None:
        self.properties = properties
        self.enqueued_time = enqueued_time


def span_ids(*events: Any) -> list[int]:
    return [link.context.span_id for link in links_of(events)]


@pytest.mark.parametrize("key", ["traceparent", b"traceparent", "Diagnostic-Id", b"Diagnostic-Id"])
@pytest.mark.parametrize("value", [HEADER, HEADER.encode()])
def test_a_producer_is_found_in_every_spelling_of_its_property(key: Any, value: Any) -> None:
    (link,) = links_of([Event({key: value, b"tracestate": b"vendor=1"})])
    assert (link.context.trace_id, link.context.span_id) == (TRACE, SPAN)
    assert link.context.is_remote
    assert link.context.trace_state.get("vendor") == "1"


@pytest.mark.parametrize(
    "properties",
    [
        None,
        {},
        {b"traceparent": b""},
        {b"traceparent": 7},
        {b"traceparent": b"\xff\xfe"},
        {b"Diagnostic-Id": b"|7b0e.1."},  # the form before W3C trace context
        {b"traceparent": f"00-{0:032x}-{SPAN:016x}-01".encode()},
        {"other": "x"},
    ],
)
def test_an_event_without_a_usable_context_has_no_link(properties: Any) -> None:
    assert links_of([Event(properties)]) == []


def test_an_unusable_newer_property_does_not_hide_the_older_one() -> None:
    assert span_ids(Event({b"traceparent": b"unusable", b"Diagnostic-Id": HEADER.encode()})) == [
        SPAN
    ]


def test_events_of_the_client_are_read() -> None:
    event = EventData("body")
    event.properties = {b"traceparent": HEADER.encode()}
    assert span_ids(event) == [SPAN]


def test_events_that_were_created_in_one_span_have_one_link() -> None:
    other = f"00-{TRACE:032x}-{SPAN + 1:016x}-01"
    events = [Event({"traceparent": header}) for header in (HEADER, other, HEADER)]
    assert span_ids(*events) == [SPAN, SPAN + 1]


def test_a_link_has_the_time_at_which_the_event_was_stored() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    (link,) = links_of([Event({"traceparent": HEADER}, at)])
    assert dict(link.attributes or {}) == {ENQUEUED_TIME: int(at.timestamp())}


hexadecimal = st.text("0123456789abcdef", min_size=0, max_size=34)
shaped = st.builds(
    "-".join,
    st.tuples(
        st.sampled_from(["00", "01", "cc", "ff", "0"]),
        st.one_of(st.just(f"{TRACE:032x}"), st.just("0" * 32), hexadecimal),
        st.one_of(st.just(f"{SPAN:016x}"), st.just("0" * 16), hexadecimal),
        st.sampled_from(["00", "01", "ff", "1", "01-more", "01-", "0g"]),
    ),
)


@given(st.one_of(shaped, st.text(max_size=80)))
def test_trace_context_is_read_as_the_api_reads_it(header: str) -> None:
    context = TraceContextTextMapPropagator().extract({"traceparent": header})
    expected = trace.get_current_span(context).get_span_context()
    found = producer_context(header, "")
    if not expected.is_valid:
        assert found is None
    else:
        assert found is not None
        assert (found.trace_id, found.span_id) == (expected.trace_id, expected.span_id)
        assert found.trace_flags == expected.trace_flags


def test_the_attributes_are_those_of_the_conventions() -> None:
    assert attributes_of("process", NAMES) == {
        "messaging.system": "eventhubs",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "3",
        "messaging.consumer.group.name": "$Default",
        "server.address": "ns.servicebus.windows.net",
    }


def test_a_port_is_an_attribute_of_its_own() -> None:
    attributes = attributes_of("checkpoint", ("127.0.0.1:5672", *NAMES[1:]))
    assert (attributes["server.address"], attributes["server.port"]) == ("127.0.0.1", 5672)
    assert attributes["messaging.operation.type"] == "settle"


def test_the_type_of_an_error_is_its_class() -> None:
    assert type_of(ValueError("x")) == "ValueError"
    assert type_of(StoreError("x")) == "eventhub_checkpoints.errors.StoreError"
    assert type_of(None) == "_OTHER"


def test_an_operation_ends_once() -> None:
    with recording() as records:
        operation = tracing.process_event(NAMES, Event({}))
        operation.fail(ValueError("first"))
        operation.end()
        operation.fail(None)
    (span,) = records.spans()
    assert (span.attributes or {})["error.type"] == "ValueError"
    (point,) = records.points("messaging.process.duration")
    assert point.count == 1


def test_a_secret_in_an_exception_is_masked_in_its_span() -> None:
    with recording() as records:
        operation = tracing.process_event(NAMES, Event({}))
        try:
            raise ValueError("refused: SharedAccessKey=S3CR3T;EntityPath=orders, order 7")
        except ValueError as error:
            operation.fail(error)
    (span,) = records.spans()
    assert span.status.description == "refused: SharedAccessKey=***;EntityPath=orders, order 7"
    shown = dict(span.events[0].attributes or {})
    assert shown["exception.type"] == "ValueError"
    assert shown["exception.message"] == span.status.description
    assert "test_telemetry.py" in str(shown["exception.stacktrace"])
    assert str(shown["exception.stacktrace"]).endswith(f"{span.status.description}\n")
    # A traceback may show the line of the source that made the message.
    assert "S3CR3T" not in records.text()


def test_without_a_provider_of_spans_only_metrics_are_reported() -> None:
    with recording(with_spans=False) as records:
        with tracing.process_batch(NAMES, [Event({"traceparent": HEADER})]) as operation:
            assert operation.context is None
        with tracing.checkpoint(NAMES, 7), tracing.child_of(operation.context):
            pass
    assert records.spans() == []
    assert records.points("messaging.process.duration")
    assert records.points("messaging.client.operation.duration")


def test_durations_have_the_buckets_of_the_conventions() -> None:
    with recording() as records, tracing.checkpoint(NAMES, 7):
        pass
    (point,) = records.points("messaging.client.operation.duration")
    assert list(point.explicit_bounds)[:2] == [0.005, 0.01]


def test_an_older_api_without_advice_on_buckets_is_served() -> None:
    class OldMeter:
        def create_histogram(self, name: str, unit: str = "", description: str = "") -> Any:
            return metrics.NoOpMeter("old").create_histogram(name, unit, description)

    old: Any = OldMeter()
    assert isinstance(histogram(old, "name", ""), metrics.Histogram)


@pytest.mark.parametrize(
    ("value", "is_enabled"),
    [("", True), ("requests,kafka", True), ("kafka, eventhub_checkpoints", False), ("*", False)],
)
def test_the_environment_switches_it_off(
    monkeypatch: pytest.MonkeyPatch, value: str, is_enabled: bool
) -> None:
    monkeypatch.setenv(DISABLED, value)
    assert Telemetry.is_enabled() is is_enabled
    tracing.telemetry.cache_clear()
    try:
        assert (tracing.telemetry() is not None) is is_enabled
    finally:
        tracing.telemetry.cache_clear()


def test_an_empty_batch_has_no_span() -> None:
    with recording() as records, tracing.process_batch(NAMES, []):
        pass
    assert records.spans() == []
