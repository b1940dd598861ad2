"""Matrix of stages, routes and checkpoints, and where a query of each combination dies."""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Stage = Literal["in the first batch", "in the sink", "before the commit", "after the commit"]
Route = Literal["publisher", "flushed publisher", "exactly once"]
Checkpoint = Literal["kept", "deleted"]
Moment = Literal["begin", "half", "end"]
"""Progress of a sink: nothing, half or all of the batch is written."""

STAGES: tuple[Stage, ...] = get_args(Stage)
ROUTES: tuple[Route, ...] = get_args(Route)
"""A publisher; one that each batch waits for; results and positions in one transaction."""
CHECKPOINTS: tuple[Checkpoint, ...] = get_args(Checkpoint)
MOMENTS: tuple[Moment, ...] = get_args(Moment)

RECEIVE_PATHS = ("fast", "public")

HUB = "Orders"
PARTITIONS = [str(number) for number in range(3)]
LATEST_BATCH = 3
"""Last batch in which a query dies."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the matrix."""

    stage: Stage
    route: Route
    checkpoint: Checkpoint

    def __str__(self) -> str:
        return f"{self.stage}, {self.route}, checkpoint {self.checkpoint}"

    @property
    def is_bounded(self) -> bool:
        """Return whether at most one batch may be doubled.

        A publisher alone may lag by some batches, which a query that begins at the store must read
        again.
        """
        return self.checkpoint == "kept" or self.route != "publisher"


ALL = [Cell(*one) for one in itertools.product(STAGES, ROUTES, CHECKPOINTS)]
FEW = [
    Cell("in the first batch", "flushed publisher", "kept"),
    Cell("in the sink", "publisher", "deleted"),
    Cell("in the sink", "exactly once", "deleted"),
    Cell("before the commit", "exactly once", "kept"),
    Cell("before the commit", "publisher", "kept"),
    Cell("after the commit", "flushed publisher", "deleted"),
]
"""Each stage, and each route with and without Spark's checkpoint."""


@dataclass(frozen=True, slots=True)
class Death:
    """Point at which a query waits to be killed.

    Attributes:
        batch: Spark's id of the batch.
        moment: progress of its sink.
        heard: number of checkpoints that the store still accepts once the sink of the previous
            batch is done, as if it was slow; None: all.
    """

    batch: int
    moment: Moment
    heard: int | None

    @classmethod
    def of(cls, cell: Cell, chosen: random.Random) -> "Death":
        """Choose one of the points that a stage has."""
        batch, moment = place(cell.stage, chosen)
        # A batch that waits for the publisher would wait for a store that accepts nothing.
        is_slow = cell.route == "publisher" or moment == "begin"
        return cls(batch, moment, chosen.choice((0, 1, 2, None)) if is_slow else None)


def place(stage: Stage, chosen: random.Random) -> tuple[int, Moment]:
    """Choose a batch and a moment. Spark commits a batch before the next one's sink begins."""
    batch = chosen.randint(1, LATEST_BATCH)
    if stage == "in the first batch":
        return 0, chosen.choice(MOMENTS)
    if stage == "in the sink":
        return batch, "half"
    return batch, "end" if stage == "before the commit" else "begin"


@dataclass(frozen=True, slots=True)
class Job:
    """Description of one query for a driver.

    Attributes:
        name: the query's name, and its consumer group.
        route: how its positions reach the store.
        hub: connection string.
        url: of the database, for a store of positions.
        engine_url: of the same database, for SQLAlchemy.
        table: of the results, as SQL identifier.
        checkpoint: Spark's folder.
        waiting: file that exists once the query waits to be killed.
        attempt: 0 for the driver that is killed, 1 for the next one.
        limit: events of a batch.
        receive_path: the source's option.
        death: where it waits; None if it reads what is there and ends.
    """

    name: str
    route: Route
    hub: str
    url: str
    engine_url: str
    table: str
    checkpoint: Path
    waiting: Path
    attempt: int
    limit: int
    receive_path: str
    death: Death | None
