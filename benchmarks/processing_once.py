"""Consume a hub's events once, with checkpoints of one kind or none, and print what that cost."""

import argparse
import asyncio
import os
from collections.abc import Sequence

from azure.eventhub.extensions import checkpointstoreblob, checkpointstoreblobaio

from benchmarks._async import consumer as aio_consumer
from benchmarks._sync import consumer as sync_consumer
from benchmarks.processing_meter import API, OFF, SDK, WAYS, WITHOUT, Meter
from eventhub_checkpoints._shared.telemetry import DISABLED, NAME


def configure(telemetry: str) -> None:
    """Switch spans and metrics off, or have the SDK keep them in batches and discard them."""
    if telemetry == OFF:
        os.environ[DISABLED] = NAME
    if telemetry != SDK:
        return
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Discarding(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Discarding()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False))


def main() -> None:
    """Consume; print events, seconds on the clock and of the processor, and writes, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hub", help="its connection string")
    parser.add_argument("container", help="its URL")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--aio", action="store_true", help="by the client of event loops")
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--telemetry", choices=(OFF, API, SDK), default=OFF)
    options = parser.parse_args()
    configure(options.telemetry)
    meter = Meter(options.events, options.way not in WITHOUT)
    consumes = options.hub, options.container, options.way, meter
    if options.aio:
        official = checkpointstoreblobaio.BlobCheckpointStore
        asyncio.run(aio_consumer.Consumer(*consumes, official).consume())
    else:
        sync_consumer.Consumer(*consumes, checkpointstoreblob.BlobCheckpointStore).consume()


if __name__ == "__main__":
    main()
