"""Kill a pipeline from hub to hub at random, and report what happened to the events.

    python -m sink_crashes --kills 30
    python -m sink_crashes --seed 7 --kills 10 --way stream

Run it with PYTHONPATH=src:tools. Killed are, at random times: the driver with all of its processes,
one of its Python workers, or a task after half of its rows; the hub also loses answers. Then the
pipeline sends the rest, and a second query, which is killed twice, reads the target with
`deduplicate`.
"""

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import spark_runs
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.localhub import LocalHub
from sink_crashes.judge import Outcome, judged, sent_events
from sink_crashes.pipeline import QUERY, READ, TOKEN, read_bodies
from sink_crashes.rows import PARTITIONS, WAYS, Way, name_of, numbers_of, read_batches, rows_of

KINDS = ("driver", "worker", "task", "answer")
PATIENCE = 600.0
EVENTS_PER_KILL = 1000
READER_KILLS = 2
TOOLS = str(Path(spark_runs.__file__).parent)


class Round:
    """Pipeline between two hubs, whose driver is started again after each kill.

    Args:
        way: how the pipeline writes.
        hub: with the hubs `source` and `target`.
        folder: of Spark's checkpoints.
        chosen: source of randomness.
    """

    def __init__(self, way: Way, hub: LocalHub, folder: Path, chosen: random.Random) -> None:
        self._way, self._hub, self._folder, self._chosen = way, hub, folder, chosen
        self._events = 0
        self._child: Child | None = None

    def kill(self, kind: str) -> str:
        """Wait until the pipeline works, and kill a part of it; return what was killed."""
        if self._child is None:
            self._child = self._start("run", "source", "target")
        before, enough = self._sent(), self._events + EVENTS_PER_KILL
        deadline = time.monotonic() + PATIENCE
        while self._sent() <= before:
            if self._events < enough:
                self._publish()
            if time.monotonic() > deadline or self._child.poll() is not None:
                raise RuntimeError(f"the pipeline sends nothing: {self._child.tail(60)}")
            time.sleep(0.05)
        self._pause()
        if kind == "worker":
            workers = worker_processes(self._child.pid)
            if workers:
                os.kill(self._chosen.choice(workers), signal.SIGKILL)
                return kind
            kind = "driver"
        if kind == "task":
            (self._folder / TOKEN).touch()
        elif kind == "answer":
            self._hub.lose_answers(1)
        else:
            self._child.kill()
            self._child = None
        return kind

    def finish(self) -> Outcome:
        """Let the pipeline send the rest, read the target without copies, and judge."""
        if self._child is not None:
            self._child.kill()
        (self._folder / TOKEN).unlink(missing_ok=True)
        self._hub.lose_answers(0)
        self._run("finish", "source", "target")
        for _ in range(READER_KILLS):
            print(f"reader: {self._kill_reader()}", flush=True)
        self._run("deduplicate", "target")
        expected = rows_of(self._way, self._events, read_batches(self._folder / QUERY))
        sent = sent_events(self._hub, "target")
        return judged(self._events, expected, sent, read_bodies(self._folder))

    def _kill_reader(self) -> str:
        """Kill a reader that has read something, unless it has read everything; return which."""
        read = self._folder / READ
        before = len([*read.glob("*")])
        child = self._start("deduplicate", "target")
        deadline = time.monotonic() + PATIENCE
        while len([*read.glob("*")]) == before and child.poll() is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing is read: {child.tail(60)}")
            time.sleep(0.05)
        self._pause()
        is_killed = child.poll() is None
        child.kill()
        return "killed" if is_killed else "has ended"

    def _pause(self) -> None:
        """Wait for a random part of a micro-batch."""
        time.sleep(self._chosen.random() * 0.5)

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
        arguments = [task, self._way, str(self._folder), *strings]
        command = [sys.executable, "-m", "sink_crashes.pipeline", *arguments]
        path = os.pathsep.join([spark_runs.SOURCES, TOOLS])
        return Child(command, log=self._folder / "log", env={"PYTHONPATH": path}, name=task)

    def _run(self, task: str, *hubs: str) -> None:
        child = self._start(task, *hubs)
        status = child.wait(PATIENCE)
        if status:
            raise RuntimeError(f"{task} failed: {child.tail(60)}")


def worker_processes(driver: int) -> list[int]:
    """Return the Python workers below a driver: what Spark's daemon has forked."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = path.read_text().rpartition(")")[2]
        except OSError:
            continue
        parents[int(path.parent.name)] = int(rest.split()[1])

    def depth(process: int) -> int:
        at, steps = process, 0
        while at in parents and at != driver:
            at, steps = parents[at], steps + 1
        return steps if at == driver else 0

    daemons = {
        process for process in parents if depth(process) and "pyspark.daemon" in command_of(process)
    }
    return [process for process in daemons if parents[process] in daemons]


def command_of(process: int) -> str:
    """Return the command line of a process; "" if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def main(arguments: list[str] | None = None) -> int:
    """Run the kills; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--way", choices=WAYS, default=WAYS[0])
    given = parser.parse_args(arguments)
    print(f"sink_crashes: seed {given.seed}, {given.kills} kills, {given.way}", flush=True)
    chosen = random.Random(given.seed)
    hubs = {"source": PARTITIONS, "target": 4}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, LocalHub(hubs) as hub:
        test = Round(given.way, hub, Path(folder), chosen)
        for number in range(given.kills):
            began = time.monotonic()
            killed = test.kill(chosen.choice(KINDS))
            print(f"{number + 1}: {killed}, after {time.monotonic() - began:.0f} s", flush=True)
        outcome = test.finish()
    print(outcome)
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
