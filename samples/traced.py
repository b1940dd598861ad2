"""Prints a trace from the producer of events to the checkpoint after them.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server
    OTEL_EXPORTER_OTLP_ENDPOINT  optional: a collector that gets the spans and metrics as well

It sends three events with the SDK's tracing, processes them, and prints all spans as trees, with
links. It needs the packages opentelemetry-sdk, opentelemetry-exporter-otlp-proto-http and
azure-core-tracing-opentelemetry. Missing tables or containers are created. Without Azure:
`ehcp demo --keep` fills a local hub, prints the variables and keeps the hub running.
"""

import asyncio
import os
from functools import partial

from azure.core.settings import settings
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import EventProcessor, PartitionProcessor, open_store

HUB = os.environ["EVENTHUB_CONNECTION_STRING"]
COUNT = 3
done = asyncio.Event()
tracer = trace.get_tracer("orders")


class Orders(PartitionProcessor):
    """Processes the events of one partition in spans of its own."""

    async def process_events(self, events: list[EventData]) -> None:
        for event in events:
            with tracer.start_as_current_span(f"ship {event.body_as_str()}"):
                await asyncio.sleep(0)
            if event.body_as_str() == f"order {COUNT}":
                done.set()


async def send() -> None:
    """Send the events in one batch; the SDK creates a span for each of them."""
    settings.tracing_implementation.set_value("opentelemetry")
    async with EventHubProducerClient.from_connection_string(HUB) as producer:
        with tracer.start_as_current_span("shop"):
            batch = await producer.create_batch(partition_id="0")
            for number in range(COUNT):
                batch.add(EventData(f"order {number + 1}"))
            await producer.send_batch(batch)
    # In one program with the producer, the client would create spans for the consumer as well.
    settings.tracing_implementation.unset_value()


async def process() -> None:
    """Process the events, and save the position."""
    connect = partial(EventHubConsumerClient.from_connection_string, HUB, "$Default")
    async with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        await store.create()
        async with EventProcessor(connect, Orders, store=store, policy=every(seconds=5)):
            await done.wait()


def trees(spans: list[ReadableSpan]) -> list[str]:
    """Return the spans as lines of text: children are indented, links are below their span."""
    spans = sorted(spans, key=lambda span: span.start_time or 0)
    names = {span.context.span_id: span.name for span in spans if span.context}
    lines: list[str] = []

    def add(span: ReadableSpan, depth: int) -> None:
        assert span.context is not None
        margin = "  " * depth
        milliseconds = ((span.end_time or 0) - (span.start_time or 0)) / 1e6
        lines.append(f"{margin}{span.name}  {span.kind.name}  {milliseconds:.1f} ms")
        lines.extend(
            f"{margin}  . {name} = {value!r}"
            for name, value in (span.attributes or {}).items()
            if name.startswith(("eventhub_checkpoints.", "messaging.destination.partition"))
        )
        for link in span.links:
            number = link.context.span_id
            lines.append(f"{margin}  -> {names.get(number, 'elsewhere')} {number:016x}")
        if span.kind is trace.SpanKind.PRODUCER:
            lines[-1] += f"  {span.context.span_id:016x}"
        for child in spans:
            if child.parent and child.parent.span_id == span.context.span_id:
                add(child, depth + 1)

    for span in spans:
        if span.parent is None:
            add(span, 0)
    return lines


async def main() -> None:
    memory = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(memory))
    trace.set_tracer_provider(tracers)
    if "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        metrics.set_meter_provider(
            MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
        )
    await send()
    await process()
    print("\n".join(trees([*memory.get_finished_spans()])))


if __name__ == "__main__":
    asyncio.run(main())
