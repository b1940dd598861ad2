"""Write a hub to Parquet files, one day at a time, and query them with DuckDB; without Spark.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

    python samples/hub_to_parquet.py 2026-11-21 events

needs the packages duckdb and eventhub-checkpoints[arrow,sql]. It writes the events that the hub
received until the end of that day (UTC) to the folder, one file per partition, and prints their
number by hour. The first run starts at the first event of that day; later runs start at the first
event that is not committed, whatever its day.
Without Azure: `python -m eventhub_checkpoints.localhub --hub orders=4 --events 5000` prints the
connection string of a local hub with events of today, and keeps it running.

Run it every night: it continues after the last commit and adds files. A file is named after its
first event. If a run is killed after it wrote files and before it committed, the next run starts
at the same events and overwrites these files.
"""

import os
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from eventhub_checkpoints import open_store
from eventhub_checkpoints.arrow import Batches, read_batches

BY_HOUR = """
    select strftime(make_timestamp(epoch_us(enqueuedTime)), '%Y-%m-%d %H:00') as hour,
           count(*) as events, sum(octet_length(body)) as bytes
    from read_parquet($files) group by hour order by hour
"""


def write(batches: Batches, folder: Path) -> int:
    """Write the batches to files, which are renamed when they are complete."""
    files: dict[str, Path] = {}
    writers: dict[str, pq.ParquetWriter] = {}
    rows = 0
    with ExitStack() as stack:
        for batch in batches:
            partition = batch["partition"][0].as_py()
            if partition not in files:
                first = batch["sequenceNumber"][0].as_py()
                files[partition] = folder / f"{partition}-{first:019}.parquet"
                writer = pq.ParquetWriter(unfinished(files[partition]), batches.schema)
                writers[partition] = stack.enter_context(writer)
            writers[partition].write_batch(batch)
            rows += batch.num_rows
    for file in files.values():
        unfinished(file).replace(file)
    return rows


def unfinished(file: Path) -> Path:
    return file.with_suffix(".part")


def main(day: str, into: str) -> None:
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    folder = Path(into)
    folder.mkdir(parents=True, exist_ok=True)
    with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        store.create()
        with read_batches(
            os.environ["EVENTHUB_CONNECTION_STRING"],
            store=store,
            start=begin,
            until=begin + timedelta(days=1),
        ) as batches:
            print(f"{write(batches, folder)} events more in {folder}")
            batches.commit()  # only now: committed events are not read again
    if files := sorted(map(str, folder.glob("*.parquet"))):
        for hour, events, size in duckdb.execute(BY_HOUR, {"files": files}).fetchall():
            print(f"{hour}: {events} events, {size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python samples/hub_to_parquet.py DAY FOLDER, such as 2026-11-21 events")
    main(*sys.argv[1:3])
