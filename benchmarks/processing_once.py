"""Consume a hub's events once, with checkpoints of one kind or none, and print what that cost."""

import argparse
import asyncio

from azure.eventhub.extensions import checkpointstoreblob, checkpointstoreblobaio

from benchmarks._async import consumer as aio_consumer
from benchmarks._sync import consumer as sync_consumer
from benchmarks.processing_meter import WAYS, WITHOUT, Meter


def main() -> None:
    """Consume; print events, seconds on the clock and of the processor, and writes, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hub", help="its connection string")
    parser.add_argument("container", help="its URL")
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--aio", action="store_true", help="by the client of event loops")
    parser.add_argument("--events", type=int, required=True)
    options = parser.parse_args()
    meter = Meter(options.events, options.way not in WITHOUT)
    consumes = options.hub, options.container, options.way, meter
    if options.aio:
        official = checkpointstoreblobaio.BlobCheckpointStore
        asyncio.run(aio_consumer.Consumer(*consumes, official).consume())
    else:
        sync_consumer.Consumer(*consumes, checkpointstoreblob.BlobCheckpointStore).consume()


if __name__ == "__main__":
    main()
