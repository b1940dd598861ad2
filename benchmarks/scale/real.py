"""Real consumers in processes of their own, compared with simulations of the same size.

The clients are unmodified, the hub is the local one, and the store is Redis, or SQLite without it.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import IO, Any

from backends import BACKENDS, ServerMissingError
from benchmarks.scale.scenarios import START_SECONDS, Outcome, Setup, run
from benchmarks.scale.tables import table
from eventhub_checkpoints import open_store
from eventhub_checkpoints.abilities import FullCheckpointStore
from eventhub_checkpoints.localhub import LocalHub

ROOT = Path(__file__).resolve().parents[2]
HUB = "scale"
SEEDS = 20
"""Simulations of each case; the real run should lie within their range."""
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Real:
    """What was seen of a real run; see `Outcome`."""

    balanced_after: float | None
    hand_overs: int
    requests: dict[str, int]


class Process:
    """A real consumer."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale.real_consumer", json.dumps(asked)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read_line(self) -> str:
        """Return its next line."""
        return pipe(self._child.stdout).readline()

    def write_line(self) -> None:
        """Let it start, and later report its counts."""
        pipe(self._child.stdin).write("\n")
        pipe(self._child.stdin).flush()

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            pipe(stream).close()


def pipe(stream: IO[str] | None) -> IO[str]:
    """Return a stream of a child, which has all of them."""
    assert stream is not None
    return stream


def compare(seed: int, quick: bool) -> str:
    """Run a start and a failure with both strategies, really and simulated; return the table."""
    size = (3, 12, 1.0) if quick else (8, 32, 3.0)
    rows: list[Sequence[str]] = []
    for strategy in ("greedy", "balanced"):
        consumers, partitions, interval = size
        setup = Setup("start", "redis", consumers, partitions, strategy, interval, seed=seed)
        per_consumer = partitions / consumers
        start = replace(setup, lasting=(per_consumer + 6) * 1.2 * interval)
        failure = replace(setup, scenario="fail-10%", lasting=14 * interval)
        for each, seen in zip((start, failure), really(start, failure), strict=True):
            rows += compared(each, seen, seed)
    headings = "scenario", "strategy", "", "real", "simulated: median", "lowest", "highest"
    return table(headings, rows, names=3)


def compared(setup: Setup, seen: Real, seed: int) -> Iterator[Sequence[str]]:
    """Yield the rows of one case."""
    simulated = [run(replace(setup, seed=seed + number)) for number in range(SEEDS)]
    kinds = ("list", "claim", "checkpoints") if seen.requests else ()
    measures: list[tuple[str, Any, list[Any]]] = [
        ("balanced after, s", seen.balanced_after, [each.balanced_after for each in simulated]),
        ("hand-overs", seen.hand_overs, [each.hand_overs for each in simulated]),
        *((f"requests: {kind}", seen.requests[kind], counts(simulated, kind)) for kind in kinds),
    ]
    for name, value, values in measures:
        ordered = sorted(values)
        figures = value, ordered[len(ordered) // 2], ordered[0], ordered[-1]
        cells = [
            f"{figure:.1f}" if isinstance(figure, float) else f"{figure}" for figure in figures
        ]
        yield [setup.scenario, setup.strategy, name, *cells]


def counts(simulated: Sequence[Outcome], kind: str) -> list[int]:
    """Return the requests of a kind, of each simulation."""
    return [outcome.all_requests.get(kind, 0) for outcome in simulated]


def really(start: Setup, failure: Setup) -> tuple[Real, Real]:
    """Start real consumers, and kill one of them when they have run for some time."""
    random = Random(start.seed)
    delays = sorted(random.uniform(0, START_SECONDS) for _ in range(start.consumers))
    with (
        server() as url,
        LocalHub({HUB: start.partitions}) as hub,
        open_store(url) as store,
        ExitStack() as ends,
    ):
        asked = {
            "store": url,
            "connection_string": hub.connection_string(HUB),
            "interval": start.interval,
            "expiration": 6 * start.interval,
            "strategy": start.strategy,
        }
        processes = [Process(asked) for _ in delays]
        for process in processes:
            ends.callback(process.kill)
        for process in processes:
            assert process.read_line() == "ready\n", "a consumer did not start"
        watch = Watch(store, start.partitions, start.consumers)
        for process, delay in zip(processes, delays, strict=True):
            watch.until(delay)
            process.write_line()
        watch.until(start.lasting)
        requests: Counter[str] = Counter()
        for process in processes:
            process.write_line()
            requests.update(json.loads(process.read_line()))
        started = watch.seen(requests)
        watch = Watch(store, start.partitions, start.consumers - 1, watch.owners)
        processes[0].kill()
        watch.until(failure.lasting)
        return started, watch.seen({})


class Watch:
    """Owners of all partitions, listed in short intervals.

    Args:
        consumers: number of consumers among which the partitions have to be balanced.
        owners: owners that are already known.
    """

    def __init__(
        self,
        store: FullCheckpointStore,
        partitions: int,
        consumers: int,
        owners: Mapping[str, str] | None = None,
    ) -> None:
        self.owners = dict(owners or {})
        self._store = store
        self._partitions, self._consumers = partitions, consumers
        self._began = time.monotonic()
        self._balanced_after: float | None = None
        self._hand_overs = 0

    def until(self, seconds: float) -> None:
        """Watch until this many seconds after the beginning."""
        while time.monotonic() < self._began + seconds:
            self._look()
            time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        now = time.monotonic() - self._began
        for scope in self._store.list_scopes():  # none before the first claim
            for row in self._store.list_ownership(*scope):
                owner = self.owners.setdefault(row["partition_id"], row["owner_id"])
                if row["owner_id"] not in ("", owner):
                    self._hand_overs += 1
                    self.owners[row["partition_id"]] = row["owner_id"]
        shares = Counter(self.owners.values())
        is_balanced = (
            len(self.owners) == self._partitions
            and len(shares) == self._consumers
            and min(shares.values()) >= self._partitions // self._consumers
        )
        if not is_balanced:
            self._balanced_after = None
        elif self._balanced_after is None:
            self._balanced_after = now

    def seen(self, requests: Mapping[str, int]) -> Real:
        """Return what was seen, with the requests that the consumers have counted."""
        return Real(self._balanced_after, self._hand_overs, dict(requests))


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of an empty store."""
    try:
        running = BACKENDS["redis"]().start()
    except ServerMissingError:
        running = BACKENDS["sqlite"]().start()
    try:
        with running.place() as place:
            yield place.url
    finally:
        running.stop()
