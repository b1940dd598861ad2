"""Kill a pipeline from hub to hub at random times.

Killed are the driver with all of its processes, one of its Python workers, or a task after half of
its rows; the hub also loses answers. Then the pipeline sends the rest, and a second query, which is
killed twice, reads the target with `deduplicate`. A round has one pipeline, which is killed
`--kills` times.
"""

import argparse
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from counts import at_least_one
from crashes.drivers import driver
from crashes.harness import Result, seeds_of, table, told
from crashes.sink.judge import COUNTS, Outcome, judged, sent_events
from crashes.sink.pipeline import QUERY, READ, TOKEN, read_bodies
from crashes.sink.rows import PARTITIONS, WAYS, Way, name_of, numbers_of, read_batches, rows_of
from eventhub_checkpoints.cli.demo.children import Child, ChildError
from eventhub_checkpoints.localhub import LocalHub

ROUNDS = 3
KINDS = ("driver", "worker", "task", "answer")
PATIENCE = 600.0
EVENTS_PER_KILL = 1000
READER_KILLS = 2


class Pipeline:
    """Pipeline between two hubs, whose driver is started again after each kill.

    Args:
        way: how the pipeline writes.
        hub: with the hubs `source` and `target`.
        folder: of Spark's checkpoints.
        chosen: source of randomness.

    Attributes:
        seen: what was killed, by kind.
    """

    def __init__(self, way: Way, hub: LocalHub, folder: Path, chosen: random.Random) -> None:
        self._way, self._hub, self._folder, self._chosen = way, hub, folder, chosen
        self._events = 0
        self._child: Child | None = None
        self.seen: Counter[str] = Counter()

    def kill(self, kind: str) -> None:
        """Wait until the pipeline works, and kill a part of it; without a worker, the driver."""
        if self._child is None:
            self._child = self._start("run", "source", "target")
        before, enough = self._sent(), self._events + EVENTS_PER_KILL

        def has_sent() -> bool:
            if self._events < enough:
                self._publish()
            return self._sent() > before

        self._child.wait_ready(has_sent, PATIENCE)
        self._pause()
        workers = worker_processes(self._child.pid) if kind == "worker" else []
        if workers:
            os.kill(self._chosen.choice(workers), signal.SIGKILL)
        elif kind == "task":
            (self._folder / TOKEN).touch()
        elif kind == "answer":
            self._hub.lose_answers(1)
        else:
            kind = "driver"
            self._child.kill()
            self._child = None
        self.seen[f"kills: {kind}"] += 1

    def finish(self) -> Outcome:
        """Let the pipeline send the rest, read the target without copies, and judge."""
        self.stop()
        (self._folder / TOKEN).unlink(missing_ok=True)
        self._hub.lose_answers(0)
        self._run("finish", "source", "target")
        for _ in range(READER_KILLS):
            self._kill_reader()
        self._run("deduplicate", "target")
        expected = rows_of(self._way, self._events, read_batches(self._folder / QUERY))
        sent = sent_events(self._hub, "target")
        return judged(self._events, expected, sent, read_bodies(self._folder))

    def stop(self) -> None:
        """Kill the driver, if it runs."""
        if self._child is not None:
            self._child.kill()

    def _kill_reader(self) -> None:
        """Kill a reader that has read something, unless it has read everything."""
        child, before = self._start("deduplicate", "target"), self._read()
        child.wait_ready(lambda: self._read() > before or child.poll() is not None, PATIENCE)
        self._pause()
        self.seen["kills of the reader"] += child.poll() is None
        child.kill()

    def _pause(self) -> None:
        """Wait for a random part of a micro-batch."""
        time.sleep(self._chosen.random() * 0.5)

    def _read(self) -> int:
        return len([*(self._folder / READ).glob("*")])

    def _sent(self) -> int:
        ids = self._hub.partition_ids("target")
        ends = [self._hub.partition_properties("target", each) for each in ids]
        return sum(each.last_sequence_number + 1 for each in ends)

    def _publish(self) -> None:
        begin = self._events
        self._events += self._chosen.randint(1, 20)
        for partition in range(PARTITIONS):
            own = numbers_of(partition, range(begin, self._events))
            if own:
                self._hub.publish("source", str(partition), [*map(name_of, own)])

    def _start(self, task: str, *hubs: str) -> Child:
        strings = [self._hub.connection_string(name) for name in hubs]
        words = [task, self._way, str(self._folder), *strings]
        return driver("crashes.sink.pipeline", *words, log=self._folder / "log")

    def _run(self, task: str, *hubs: str) -> None:
        child = self._start(task, *hubs)
        if child.wait(PATIENCE):
            raise ChildError(f"{task} failed: {child.tail(60)}")


def worker_processes(driver: int) -> list[int]:
    """Return the Python workers of a driver: what Spark's daemon has forked in its session."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            if "pyspark.daemon" in (folder / "cmdline").read_text() and int(stat[3]) == driver:
                parents[int(folder.name)] = int(stat[1])
    return [process for process, parent in parents.items() if parent in parents]


def run_round(way: Way, seed: int, kills: int) -> Result:
    """Run a pipeline that is killed several times, let it finish, and judge."""
    chosen = random.Random(seed)
    hubs = {"source": PARTITIONS, "target": 4}
    with ExitStack() as opened:
        folder = opened.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        hub = opened.enter_context(LocalHub(hubs))
        pipeline = Pipeline(way, hub, Path(folder), chosen)
        opened.callback(pipeline.stop)
        for _ in range(kills):
            pipeline.kill(chosen.choice(KINDS))
        outcome = pipeline.finish()
    return Result(pipeline.seen, outcome.problems, outcome)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this scenario has."""
    parser.add_argument("--kills", type=at_least_one, default=10, help="of a round")
    parser.add_argument("--way", choices=WAYS, default=WAYS[0])


def results(chosen: argparse.Namespace, command: str) -> Iterator[Result]:
    """Run the chosen rounds, and yield their results."""
    for seed in seeds_of(chosen):
        yield told(command, seed, partial(run_round, chosen.way, seed, chosen.kills))


def report(results: Sequence[Result]) -> str:
    """Return what became of the events of each round."""
    rows = [(str(each.seed), *each.details.counts()) for each in results if each.details]
    return table([("seed", *COUNTS), *rows])
