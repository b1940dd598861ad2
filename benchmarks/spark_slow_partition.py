"""What one slow partition costs a stream, and what a smaller share of it in each batch changes.

`python -m benchmarks.spark_slow_partition`. The local hub delivers one of four partitions at 500
events a second, the others as fast as it can. The source plans micro-batches, and its tasks read
them in threads, without Spark: what Spark adds to each batch comes on top. Prints how long a batch
took, when the other partitions and when all had been read, with and without a limit of the slow
one (`maxRatesPerPartition`), which is what a slow-partition adjustment sets.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import patch

from pyspark.sql.datasource import InputPartition

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.delivery import EventLink
from eventhub_checkpoints.spark.source.options import SourceOptions
from eventhub_checkpoints.spark.source.stream import EventHubStreamReader

HUB, PARTITIONS, SLOW = "orders", 4, "0"
EVENTS = 8000
"""Events that each partition holds before the stream begins."""
PIECE, PAUSE = 10, 0.02
"""Events that the slow partition sends at once, and seconds before the next."""
BATCH = 4000
SHARES = (None, 400, 100)
"""Limits of the slow partition in a batch; None: an equal share, 1000 events."""


@contextmanager
def slow_partition() -> Iterator[None]:
    """Deliver the events of one partition slowly, whatever the receiver's credit."""
    plain, due = EventLink.turn, dict[int, float]()

    def turn(link: EventLink) -> bool:
        if link.partition_id != SLOW:
            return plain(link)
        left = due.get(id(link), 0.0) - time.monotonic()
        if left <= 0 and link.credit:
            credit, link.credit = link.credit, min(link.credit, PIECE)
            plain(link)
            link.credit += credit - min(credit, PIECE)
            due[id(link)], left = time.monotonic() + PAUSE, PAUSE
        if left > 0:
            asyncio.get_running_loop().call_later(left, link.pump)
        return False

    with patch.object(EventLink, "turn", turn):
        yield


def read_all(hub: LocalHub, share: int | None) -> str:
    """Read the hub in micro-batches; return the figures, in seconds."""
    options = {"connectionString": hub.connection_string(HUB), "maxEventsPerTrigger": str(BATCH)}
    if share is not None:
        key = json.dumps({"ehName": HUB, "partitionId": int(SLOW)})
        options["maxRatesPerPartition"] = json.dumps({key: share})
    stream = EventHubStreamReader(SourceOptions.parse(options))

    def read(task: InputPartition) -> int:
        return sum(batch.num_rows for batch in stream.read(task))

    begin, others, took, rows = time.monotonic(), 0.0, list[float](), 0
    before, after = {}, stream.initialOffset()
    with ThreadPoolExecutor(PARTITIONS) as pool:
        while after != before:
            before, after = after, stream.latestOffset(after, stream.getDefaultReadLimit())
            started = time.monotonic()
            rows += sum(pool.map(read, stream.partitions(before, after)))
            took.append(time.monotonic() - started)
            fast = (after[str(each)] for each in range(PARTITIONS) if str(each) != SLOW)
            if not others and all(end == EVENTS for end in fast):
                others = time.monotonic() - begin
            if rows == PARTITIONS * EVENTS:
                break
    return (
        f"{len(took)} batches of {statistics.median(took):.2f} (median), the other partitions read "
        f"after {others:.1f}, all after {time.monotonic() - begin:.1f}"
    )


def main() -> None:
    """Print one line for each share."""
    with slow_partition(), LocalHub({HUB: PARTITIONS}) as hub:
        for partition in map(str, range(PARTITIONS)):
            hub.publish(HUB, partition, [b"x" * 200] * EVENTS)
        for share in SHARES:
            print(f"limit of the slow partition: {share}: {read_all(hub, share)}", flush=True)


if __name__ == "__main__":
    main()
