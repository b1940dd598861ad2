"""What one slow partition costs a stream, and what a smaller share of it in each batch changes.

`python -m benchmarks.spark_slow_partition`. The local hub delivers one of four partitions at 50
events a second. Prints when the others, and when all had been read, with and without a limit of
the slow one (`maxRatesPerPartition`), which is what a slow-partition adjustment sets.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch

import spark_runs
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.localhub.delivery import EventLink

HUB, PARTITIONS, SLOW = "orders", 4, "0"
EVENTS = 1000
"""Events that each partition holds before the stream begins."""
PIECE, PAUSE = 1, 0.02
"""Events that the slow partition sends at once, and seconds before the next."""
BATCH = 1000
SHARES = (None, 25)
"""Limits of the slow partition in a batch; None: an equal share, 250 events."""


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


def read_all(spark: Any, hub: LocalHub, share: int | None) -> dict[str, float]:
    """Read the hub by a stream; return seconds, counted from the first batch's begin."""
    options = {"maxEventsPerTrigger": str(BATCH)}
    if share is not None:
        key = json.dumps({"ehName": HUB, "partitionId": int(SLOW)})
        options["maxRatesPerPartition"] = json.dumps({key: share})
    frame = spark.readStream.format("eventhubs").options(**options)
    query = (
        frame.option("connectionString", hub.connection_string(HUB))
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", tempfile.mkdtemp())
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [each for each in query.recentProgress if each["numInputRows"]]
    took = [each["durationMs"]["triggerExecution"] / 1000 for each in batches]
    ends = [
        datetime.fromisoformat(each["timestamp"]).timestamp() + seconds
        for each, seconds in zip(batches, took, strict=True)
    ]
    offsets = [json.loads(each["sources"][0]["endOffset"]) for each in batches]
    others = [str(each) for each in range(PARTITIONS) if str(each) != SLOW]
    read = next(
        end
        for end, offset in zip(ends, offsets, strict=True)
        if all(offset[each] == EVENTS for each in others)
    )
    begin = ends[0] - took[0]
    return {
        "batches": len(batches),
        "median of a batch": statistics.median(took),
        "others read after": read - begin,
        "all read after": ends[-1] - begin,
    }


def main() -> None:
    """Print one line for each share."""
    settings = {
        **spark_runs.QUICK,
        "spark.master": f"local[{PARTITIONS}]",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with (
        slow_partition(),
        LocalHub({HUB: PARTITIONS}) as hub,
        spark_runs.session(settings=settings) as spark,
    ):
        for partition in map(str, range(PARTITIONS)):
            hub.publish(HUB, partition, [b"x" * 200] * EVENTS)
        for share in SHARES:
            figures = read_all(spark, hub, share)
            shown = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
            print(f"slow partition limited to {share}: {shown}", flush=True)


if __name__ == "__main__":
    main()
