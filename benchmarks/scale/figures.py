"""The plots of the report."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from benchmarks.scale.plan import INTERVALS, MIDDLE, STRATEGIES
from benchmarks.scale.plots import Points, write_chart
from benchmarks.scale.scenarios import SCENARIOS, Outcome
from eventhub_checkpoints.operations.cost import PRICES, blob_per_month

WIDELY_RUN = 100, 1024
"""The size in which all scenarios are run."""
PARTITIONS_PER_CONSUMER = 8
COST_PARTITIONS = 32, 64, 128, 256, 512, 1024, 2048


def write_plots(folder: Path, outcomes: Iterable[Outcome]) -> None:
    """Write the plots whose runs are among the outcomes."""
    greedy = [one for one in outcomes if one.setup.interval == 30]
    starts = [one for one in greedy if one.setup.scenario == "start"]
    if any(one.setup.consumers > MIDDLE[0] for one in starts):
        write_chart(
            folder / "scale-start.svg",
            "Time from the start until the group is balanced (interval 30 s)",
            ("partitions per consumer", "seconds"),
            {
                f"{strategy}, {backend}": times(starts, strategy, backend)
                for strategy in STRATEGIES
                for backend in ("blob", "redis")
            },
        )
    curves: dict[str, Points] = {
        scenario: curve(one.hand_overs_by_second)
        for scenario in SCENARIOS
        for one in greedy
        if (one.setup.scenario, one.setup.backend) == (scenario, "redis")
        and (one.setup.consumers, one.setup.partitions) == WIDELY_RUN
        and one.setup.strategy == "greedy"
    }
    if set(curves) == set(SCENARIOS):
        write_chart(
            folder / "scale-hand-overs.svg",
            "Hand-overs: 100 consumers, 1,024 partitions, greedy, interval 30 s, Redis",
            ("seconds", "hand-overs so far"),
            curves,
            is_log=False,
        )
    write_chart(
        folder / "scale-cost.svg",
        f"Cost of ownerships per month, with a consumer for {PARTITIONS_PER_CONSUMER} partitions",
        ("partitions", "US dollars"),
        costs(),
    )


def times(starts: Sequence[Outcome], strategy: str, backend: str) -> Points:
    """Return the time until balance by partitions per consumer."""
    points = {
        one.setup.partitions / one.setup.consumers: one.balanced_after
        for one in starts
        if (one.setup.strategy, one.setup.backend) == (strategy, backend)
        and one.balanced_after is not None
        and one.setup.consumers > 1
    }
    return sorted(points.items())


def curve(by_second: Mapping[int, int]) -> Points:
    """Return the running total."""
    return [(0.0, 0.0), *zip(by_second, accumulate(by_second.values()), strict=True)]


def costs() -> dict[str, Points]:
    """Return the cost of each backend by partitions; of Blob, for each interval."""
    lines: dict[str, Points] = {
        f"Blob, interval {interval:g} s": [
            (count, blob_per_month(count // PARTITIONS_PER_CONSUMER, count, interval))
            for count in COST_PARTITIONS
        ]
        for interval in INTERVALS
    }
    for name, price in PRICES.items():
        if name != "blob":
            ends = COST_PARTITIONS[0], COST_PARTITIONS[-1]
            lines[name] = [(count, price.dollars) for count in ends]
    return lines
