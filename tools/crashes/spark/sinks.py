"""Sink that records which event came in which batch, and waits where it is to be killed."""

import threading
from collections.abc import Callable, Sequence

from pyspark.sql import Row
from sqlalchemy import Connection, NullPool, create_engine, text

from crashes.spark.cells import Job, Moment
from eventhub_checkpoints.base import Checkpoint, Conflict, Seen, Written
from eventhub_checkpoints.sql import SqlCheckpointStore


class SlowStore(SqlCheckpointStore):
    """Store that at some point accepts only a few more checkpoints and then does not answer.

    Attributes:
        left: number of checkpoints that it still accepts; None: all.
    """

    left: int | None = None

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        """Store the checkpoint, or never return."""
        if self.left == 0:
            threading.Event().wait()
        if self.left is not None:
            self.left -= 1
        return super().write_checkpoint(checkpoint, seen)


class Recorder:
    """Writes rows into the table of results, which has no key: repeated events appear twice.

    Args:
        job: of the query.
        slow_down: called with the number of checkpoints that its store still accepts.
    """

    def __init__(self, job: Job, slow_down: Callable[[int | None], None]) -> None:
        self._job = job
        self._slow_down = slow_down
        self._engine = create_engine(job.engine_url, poolclass=NullPool)

    def at(self, moment: Moment, batch_id: int) -> None:
        """Report the progress of a batch's sink; wait to be killed if this is the place."""
        death = self._job.death
        if death is None:
            return
        if (batch_id, moment) == (death.batch - 1, "end"):
            self._slow_down(death.heard)
        if (batch_id, moment) == (death.batch, death.moment):
            self._job.waiting.touch()
            threading.Event().wait()

    def append(self, rows: Sequence[Row], batch_id: int) -> None:
        """Write a batch in two transactions."""
        for number, some in enumerate(halves(rows)):
            with self._engine.begin() as connection:
                self._insert(connection, some, batch_id)
            if number == 0:
                self.at("half", batch_id)

    def write(self, connection: Connection, rows: Sequence[Row], batch_id: int) -> None:
        """Write a batch in the transaction of another writer."""
        first, second = halves(rows)
        self._insert(connection, first, batch_id)
        self.at("half", batch_id)
        self._insert(connection, second, batch_id)

    def _insert(self, connection: Connection, rows: Sequence[Row], batch_id: int) -> None:
        insert = text(f"INSERT INTO {self._job.table} VALUES (:part, :number, :attempt, :batch)")
        same = {"attempt": self._job.attempt, "batch": batch_id}
        values = [{"part": row.partition, "number": row.sequenceNumber, **same} for row in rows]
        # SQLAlchemy takes an empty list of rows for one row of defaults.
        if values:
            connection.execute(insert, values)


def halves(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the first half of a batch, and the rest."""
    middle = len(rows) // 2
    return rows[:middle], rows[middle:]
