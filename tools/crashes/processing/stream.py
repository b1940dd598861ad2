"""Spark stream beside the workers of a round, with a consumer group of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from crashes.drivers import driver
from crashes.workers.diary import PARTITIONS
from eventhub_checkpoints.cli.demo.children import Child, ChildError

GROUP = "spark"
END_SECONDS = 90.0
READS = {partition: f"{GROUP}-{partition}" for partition in PARTITIONS}
"""Names under which the journal has its partitions."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What happens to the stream of a round.

    Attributes:
        name: for `--without`.
        is_killed: whether its driver is killed after the first life, and started again.
        from_store: whether it then begins at the published checkpoints, without Spark's own.
    """

    name: str
    is_killed: bool
    from_store: bool


class Streaming:
    """Driver of a stream, and the one that follows it.

    Args:
        connection: of the hub.
        url: of the store.
        folder: for the journal, the log and Spark's files.
    """

    def __init__(self, connection: str, url: str, folder: Path) -> None:
        self._words = [connection, url, str(folder)]
        self._folder = folder
        self._number = 0
        self._child = self._start()

    def _start(self) -> Child:
        return driver(
            "crashes.processing.stream_driver",
            *self._words,
            f"query-{self._number}",
            log=self._folder / f"{GROUP}.log",
        )

    def kill(self, stream: Stream) -> None:
        """Kill the driver, with all of Spark, and start another one."""
        self._child.kill()
        self._number += stream.from_store
        self._child = self._start()

    def ended(self) -> int | None:
        """Return the exit status of the driver, negative for a signal; None while it runs."""
        return self._child.poll()

    def end(self) -> str:
        """Stop it gracefully; return a description of the problem, if there is one."""
        (self._folder / "stop").touch()
        try:
            status = self._child.wait(END_SECONDS)
        except ChildError as error:
            return str(error)
        return f"{GROUP} ended with {status}: {self._child.tail()}" if status else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
