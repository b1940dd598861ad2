"""Process of a Spark stream: `python -m crashes.processing.stream_driver` and four arguments.

They are the connection of the hub, the URL of the store, a folder, and the name of the checkpoint.
"""

import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_runs
from crashes.processing.stream import GROUP, READS
from crashes.workers.journal import Journal
from crashes.workers.orders import STORE
from eventhub_checkpoints import open_store
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import CheckpointPublisher

POLL_SECONDS = 0.1
EVENTS = 500
"""Of a batch, so that there are several."""


class RecordedStore:
    """Store that records the checkpoints of a publisher in the journal.

    Attributes:
        store: the store that keeps them.
    """

    def __init__(self, store: Any, journal: Journal) -> None:
        self.store = store
        self._journal = journal

    def list_checkpoints(self, *names: str) -> Any:
        """Return what is stored."""
        return self.store.list_checkpoints(*names)

    def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        partition, number = READS[checkpoint["partition_id"]], checkpoint["sequence_number"]
        self._journal.write("publishing", partition, 0, number)
        self.store.update_checkpoint(checkpoint, **kwargs)
        self._journal.write("published", partition, 0, number)


def started(
    spark: SparkSession, connection: str, url: str, checkpoint: Path, journal: Journal
) -> StreamingQuery:
    """Start the query; it records what it reads."""

    def sink(batch: DataFrame, _: int) -> None:
        for row in batch.select("partition", "sequenceNumber").collect():
            journal.write("read", READS[row["partition"]], 0, row["sequenceNumber"])

    options = {
        "connectionString": connection,
        "consumerGroup": GROUP,
        "checkpointStore": url,
        "maxEventsPerTrigger": str(EVENTS),
    }
    writer = spark.readStream.format("eventhubs").options(**options).load().writeStream
    writer = writer.queryName(GROUP).option("checkpointLocation", str(checkpoint))
    return writer.foreachBatch(sink).trigger(processingTime="0 seconds").start()


def main() -> None:
    """Run the query, again if it fails, until the folder has the file `stop`."""
    connection, url, folder, name = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    journal, stop, checkpoint = Journal(folder / "journal", GROUP), folder / "stop", folder / name
    scope = HubAddress.from_connection_string(connection).scope(GROUP)
    with (
        spark_runs.session(settings=spark_runs.killable(folder)) as spark,
        open_store(url, **STORE) as store,
        CheckpointPublisher(
            cast("Any", RecordedStore(store, journal)), scope, query_name=GROUP
        ) as publisher,
    ):
        publisher.catch_up(checkpoint)
        publisher.attach(spark)
        while not stop.exists():
            try:
                query = started(spark, connection, url, checkpoint, journal)
                while query.isActive and not stop.exists():
                    time.sleep(POLL_SECONDS)
                query.processAllAvailable()  # raises what has ended it
                query.stop()
            except PySparkException as error:
                # Without its hub or its store a query ends; an operator starts it again.
                logging.getLogger(GROUP).warning("the query has ended: %s", error)
        publisher.catch_up(checkpoint)
        publisher.flush()


if __name__ == "__main__":
    main()
