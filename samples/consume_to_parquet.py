"""Write a hub to Parquet files all day long, shared among the processes that run this.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

    python samples/consume_to_parquet.py FOLDER [ROWS]

needs the package eventhub-checkpoints[arrow,sql]. Each partition has a file at a time; it is
complete with so many rows (1,000,000) and when the partition is lost to another process. Then it is
named after its first and last event, and its partition is committed. So a process that is killed
loses nothing: the next owner writes the rows of its unfinished file, which ends in `.part`, again.
A row is in two files only if a process was killed between the name and the commit, or if its
partition was taken without being handed over. Start it twice to see the partitions being shared.
Without Azure: `python -m eventhub_checkpoints.localhub --hub orders=4 --events 5000` prints the
connection string of a local hub with events, and keeps it running.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eventhub_checkpoints import open_store
from eventhub_checkpoints.arrow import consume_batches


class Files:
    """The unfinished file of each partition.

    Args:
        folder: where they are.
        rows: with which a file is complete.
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self._folder, self._most = folder, rows
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._numbers: dict[str, tuple[int, int]] = {}
        self._rows: dict[str, int] = {}

    @property
    def open(self) -> list[str]:
        """Partitions that have an unfinished file."""
        return [*self._writers]

    def write(self, partition: str, batch: Any) -> bool:
        """Add a batch to the file of its partition; return whether that is complete."""
        first, last = batch["sequenceNumber"][0].as_py(), batch["sequenceNumber"][-1].as_py()
        if partition not in self._writers:
            path = self._unfinished(partition)
            self._writers[partition] = pq.ParquetWriter(path, batch.schema)
            self._numbers[partition], self._rows[partition] = (first, last), 0
        self._writers[partition].write_batch(batch)
        self._numbers[partition] = self._numbers[partition][0], last
        self._rows[partition] += batch.num_rows
        return self._rows[partition] >= self._most

    def complete(self, partition: str) -> None:
        """Close the file of a partition, if there is one, and give it its name."""
        if partition in self._writers:
            self._writers.pop(partition).close()
            first, last = self._numbers.pop(partition)
            # A name of the first event alone could replace a longer file of the next owner.
            file = self._folder / f"{partition}-{first:019}-{last:019}.parquet"
            self._unfinished(partition).replace(file)
            print(f"{file.name}: {self._rows.pop(partition)} rows", flush=True)

    def _unfinished(self, partition: str) -> Path:
        return self._folder / f"{partition}.{os.getpid()}.part"


def main(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = Files(folder, rows)

    def complete(partition: str) -> None:
        files.complete(partition)
        batches.commit([partition])  # not the others: their files are not complete

    with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        store.create()
        with consume_batches(
            os.environ["EVENTHUB_CONNECTION_STRING"], store=store, on_lost=complete
        ) as batches:
            for batch in batches:  # until Ctrl-C or SIGTERM
                partition = batch["partition"][0].as_py()
                if files.write(partition, batch):
                    complete(partition)
            for partition in files.open:
                complete(partition)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python samples/consume_to_parquet.py FOLDER [ROWS]")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
