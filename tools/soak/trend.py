"""What a process uses at a time, and whether that grows over a run."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

from waiting import eventually

WARM_UP = 0.2
"""Share of a run that is not judged: pools, caches and the allocator's arenas fill up."""
TOLERATED = {
    "memory": 0.02,
    "blocks": 0.02,
    "objects": 0.02,
    "threads": 0.0,
    "sockets": 0.0,
    "files": 0.0,
}
"""Growth in the judged part of a run that is still flat, as a share of the median."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process uses at one time, without what is garbage.

    Attributes:
        at: seconds since the run began.
        memory: resident memory in MiB.
        blocks: number of blocks of memory that Python has allocated.
        objects: number of its objects that may be part of a cycle.
        threads: number of its threads.
        sockets: number of its open sockets.
        files: number of its other open file descriptors.
    """

    at: float
    memory: float
    blocks: float
    objects: float
    threads: float
    sockets: float
    files: float


def answer_samples(path: Path) -> None:
    """Have SIGUSR1 write to a file what Python has allocated in this process.

    Cycles are collected before. Otherwise memory would rise until Python collects them all, which
    takes the longer the more objects there are: closed consumers of azure-eventhub are cycles.
    """

    def answer(*_: object) -> None:
        gc.collect()
        draft = path.with_suffix(".draft")
        draft.write_text(f"{sys.getallocatedblocks()} {len(gc.get_objects())}")
        draft.rename(path)

    signal.signal(signal.SIGUSR1, answer)
    answer()


def sample(pid: int, answers: Path, at: float) -> Sample:
    """Read what a process uses now; Linux only.

    Args:
        pid: of the process.
        answers: the file that it passes to `answer_samples`, perhaps only in a moment.
        at: seconds since the run began.

    Raises:
        OSError: there is no such process.
    """
    eventually(answers.exists)
    answers.unlink()
    os.kill(pid, signal.SIGUSR1)
    eventually(answers.exists)
    blocks, objects = map(int, answers.read_text().split())
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    targets = []
    for each in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            targets.append(str(each.readlink()))
    sockets = sum(target.startswith("socket:") for target in targets)
    memory, threads = int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"])
    return Sample(at, memory, blocks, objects, threads, sockets, len(targets) - sockets)


@dataclass(frozen=True, slots=True)
class Trend:
    """One measure over a run.

    Attributes:
        first, last: the medians of the first and of the last third of what is judged.
        hourly: growth per hour.
        is_flat: whether what it grows by is tolerated.
    """

    first: float
    last: float
    hourly: float
    is_flat: bool


def trend(points: Sequence[tuple[float, float]], tolerated: float) -> Trend:
    """Judge a measure.

    The slope is the median of the slopes between all pairs of points (Theil and Sen), so that
    a single step or peak, such as a rebalance during a sample, does not look like growth.

    Args:
        points: seconds and values, in order, at least three.
        tolerated: growth that is still flat, as a share of the median.
    """
    judged = points[min(int(len(points) * WARM_UP), len(points) - 3) :]
    slope = median(
        (after - before) / (later - sooner)
        for (sooner, before), (later, after) in combinations(judged, 2)
    )
    values = [value for _, value in judged]
    third = len(values) // 3
    grown = slope * (judged[-1][0] - judged[0][0])
    return Trend(
        median(values[:third]),
        median(values[-third:]),
        slope * 3600,
        grown <= tolerated * median(values),
    )


def trends(samples: Sequence[Sample]) -> dict[str, Trend]:
    """Judge every measure of a process."""
    return {
        name: trend([(each.at, getattr(each, name)) for each in samples], tolerated)
        for name, tolerated in TOLERATED.items()
    }


def table(found: Sequence[tuple[str, str, Trend]]) -> str:
    """Return the trends of processes as a table in Markdown."""
    rows = ["| process | measure | first | last | growth per hour | |", "|---|---|--:|--:|--:|---|"]
    rows += [
        f"| {who} | {measure} | {one.first:.4g} | {one.last:.4g} | {one.hourly:+.3g} "
        f"| {'flat' if one.is_flat else 'GROWS'} |"
        for who, measure, one in found
    ]
    return "\n".join(rows)
