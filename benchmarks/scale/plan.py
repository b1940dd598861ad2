"""Runs behind each table of the report, and their execution in several processes."""

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context

from benchmarks.scale.backends import BACKENDS
from benchmarks.scale.scenarios import SCENARIOS, Outcome, Setup, run
from eventhub_checkpoints.consume.balancer import STRATEGIES

INTERVALS = 10.0, 30.0, 60.0
SIZES = (1, 32), (4, 32), (10, 128), (4, 1024), (32, 512), (100, 1024)
"""Consumers and partitions."""
LARGEST = 1000, 2048
MIDDLE = 20, 256
QUICK = 10, 64
HAND_OVER_SIZES = (4, 16), (8, 64), (2, 64)
HAND_OVER_INTERVAL = 1.0
DRAIN_SECONDS = 0.1
BATCH_SIZES = [
    (members, partitions)
    for partitions in (32, 256, 1024)
    for members in (1, 4, 16, 64)
    if members <= partitions
]
LOADS = 0.0, 25.0, 40.0
LATE_SIZE = 2, 64
LATE = 1.0, 2.0, 3.0
"""Times of the expiry of an ownership by which rounds are late at most."""

LONGEST_LATE = 1800.0

Outcomes = Mapping[Setup, Outcome]


def starts() -> list[Setup]:
    """Starts of groups of all sizes, with both strategies."""
    return [
        *(
            Setup("start", backend, *size, strategy)
            for size in SIZES
            for strategy in STRATEGIES
            for backend in ("blob", "redis")
        ),
        Setup("start", "blob", *LARGEST),
        Setup("start", "redis", *LARGEST),
    ]


def scenarios() -> list[Setup]:
    """All scenarios in a group of 100 consumers, and a failure in the largest."""
    return [
        *(
            Setup(scenario, backend, 100, 1024)
            for scenario in SCENARIOS
            for backend in ("blob", "redis")
        ),
        Setup("fail-10%", "blob", *LARGEST),
    ]


def intervals() -> list[Setup]:
    """Starts and failures with several intervals."""
    return [
        Setup(scenario, "blob", *MIDDLE, strategy, interval)
        for scenario in ("start", "fail-10%")
        for strategy in STRATEGIES
        for interval in INTERVALS
    ]


def backends() -> list[Setup]:
    """The same start and failure on all backends."""
    return [
        Setup(scenario, backend, 100, 1024)
        for backend in BACKENDS
        for scenario in ("start", "fail-10%")
    ]


def hand_overs() -> list[Setup]:
    """Starts with and without hand-over, also on processors with other work."""
    return [
        Setup(
            "start",
            "redis",
            *size,
            interval=HAND_OVER_INTERVAL,
            expiration=12 * HAND_OVER_INTERVAL,
            longest=300 * HAND_OVER_INTERVAL,
            hands_over=hands_over,
            drain=DRAIN_SECONDS,
            load=load,
        )
        for size in HAND_OVER_SIZES
        for load in LOADS
        for hands_over in (False, True)
    ]


def late() -> list[Setup]:
    """Starts of two consumers whose rounds are late, with and without hand-over."""
    expiration = 12 * HAND_OVER_INTERVAL
    return [
        Setup(
            "start",
            "redis",
            *LATE_SIZE,
            interval=HAND_OVER_INTERVAL,
            expiration=expiration,
            longest=LONGEST_LATE,
            hands_over=hands_over,
            drain=DRAIN_SECONDS,
            late=times * expiration,
        )
        for times in LATE
        for hands_over in (False, True)
    ]


def in_batches() -> list[Setup]:
    """Starts of members that read in batches, beside those of clients of the SDK."""
    return [
        Setup("start", "redis", *size, hands_over=hands_over, in_batches=in_batches)
        for size in BATCH_SIZES
        for in_batches in (False, True)
        for hands_over in ((False, True) if in_batches else (False,))
    ]


TABLES: Mapping[str, Callable[[], list[Setup]]] = {
    "starts": starts,
    "scenarios": scenarios,
    "intervals": intervals,
    "backends": backends,
    "hand-overs": hand_overs,
    "late": late,
    "in batches": in_batches,
}


def planned(names: Iterable[str], seed: int, quick: bool) -> dict[str, list[Setup]]:
    """Return the runs of these tables; `quick` reduces all groups to a small size."""
    plan: dict[str, list[Setup]] = {}
    for name in names:
        setups = [replace(setup, seed=seed) for setup in TABLES[name]()]
        if quick:
            setups = [
                replace(
                    setup,
                    consumers=min(setup.consumers, QUICK[0]),
                    partitions=min(setup.partitions, QUICK[1]),
                )
                for setup in setups
            ]
        plan[name] = list(dict.fromkeys(setups))
    return plan


def collect_rarely() -> None:
    """Save a quarter of the time: millions of objects live, and few of them are garbage cycles."""
    gc.set_threshold(100_000, 50, 1000)


def run_all(
    setups: Sequence[Setup], jobs: int, report: Callable[[Outcome], None]
) -> dict[Setup, Outcome]:
    """Run each setup once, the largest first; `report` is called after each."""
    # The order of a set of strings depends on it, and is part of the result.
    os.environ["PYTHONHASHSEED"] = "0"
    setups = sorted(set(setups), key=lambda each: -each.consumers * each.partitions)
    outcomes: dict[Setup, Outcome] = {}
    # One run per process: the largest leaves gigabytes behind.
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), collect_rarely, max_tasks_per_child=1
    ) as pool:
        for future in as_completed([pool.submit(run, setup) for setup in setups]):
            outcome = future.result()
            outcomes[outcome.setup] = outcome
            report(outcome)
    return outcomes
