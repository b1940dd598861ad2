"""Aggregate what a hub receives with DuckDB, every ten seconds, without Spark.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

    python samples/consume_with_duckdb.py [SECONDS]

needs the packages duckdb and eventhub-checkpoints[arrow,sql]. Every so many seconds (10) it prints
the events and bytes of each partition that have come since, and then commits them: a run that is
killed in between counts them again.
Without Azure: `python -m eventhub_checkpoints.localhub --hub orders=4 --events 5000` prints the
connection string of a local hub with events, and keeps it running.
"""

import os
import sys
import time

import duckdb
import pyarrow as pa

from eventhub_checkpoints import open_store
from eventhub_checkpoints.arrow import consume_batches

BY_PARTITION = """
    select partition, count(*) as events, sum(octet_length(body)) as bytes
    from rows group by partition order by partition
"""


def main(seconds: float) -> None:
    collected: list[pa.RecordBatch] = []
    due = time.monotonic() + seconds
    with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        store.create()
        with consume_batches(
            os.environ["EVENTHUB_CONNECTION_STRING"],
            store=store,
            columns=["partition", "body"],  # the others are not decoded
            max_idle=seconds,  # a quiet hub has an end of the period, too
        ) as batches:
            for batch in batches:  # until Ctrl-C or SIGTERM
                collected.append(batch)
                if time.monotonic() < due:
                    continue
                rows = pa.Table.from_batches(collected, batches.schema)
                for partition, events, size in duckdb.connect().execute(BY_PARTITION).fetchall():
                    print(f"{partition}: {events} events, {size} bytes", flush=True)
                print(f"{rows.num_rows} events in all", flush=True)
                batches.commit()
                collected.clear()
                due = time.monotonic() + seconds


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
