"""Tables of the report in Markdown, and the place in a page where they are written."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.scale.scenarios import ROUND_INTERVALS, Outcome, Setup
from eventhub_checkpoints.operations.cost import PRICES, blob_per_month, per_month

Rows = Iterable[Sequence[str]]


def table(headings: Sequence[str], rows: Rows, names: int = 1) -> str:
    """Return a table whose columns after the first `names` are right-aligned."""
    rule = ["---"] * names + ["--:"] * (len(headings) - names)
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))


def duration(seconds: float | None) -> str:
    """Return seconds in a readable unit."""
    if seconds is None:
        return "never"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def size(outcome: Outcome) -> str:
    """Return consumers and partitions."""
    return f"{outcome.setup.consumers:,} x {outcome.setup.partitions:,}"


def measures(outcome: Outcome) -> list[str]:
    """Return the columns that all tables of runs have."""
    requests = outcome.requests
    return [
        duration(outcome.balanced_after),
        f"{outcome.smallest} to {outcome.largest}",
        f"{outcome.hand_overs:,}",
        f"{outcome.late_hand_overs:,}",
        duration(outcome.longest_gap),
        duration(outcome.mean_gap),
        f"{requests.get('claim', 0):,}",
        f"{requests.get('list', 0) + requests.get('checkpoints', 0):,}",
        f"{outcome.peak:,}",
        f"{outcome.refused:,}",
    ]


MEASURES = (
    "balanced after",
    "partitions each",
    "hand-overs",
    "after balance",
    "longest gap",
    "mean gap",
    "claim requests",
    "lists",
    "peak per s",
    "refused",
)


def starts(outcomes: Iterable[Outcome]) -> str:
    """Starts, by size."""
    names = "consumers x partitions", "strategy", "backend"
    rows = ([size(one), one.setup.strategy, one.setup.backend, *measures(one)] for one in outcomes)
    return table([*names, *MEASURES], rows, len(names))


def scenarios(outcomes: Iterable[Outcome]) -> str:
    """Scenarios, by size."""
    names = "scenario", "consumers x partitions", "backend"
    rows = ([one.setup.scenario, size(one), one.setup.backend, *measures(one)] for one in outcomes)
    return table([*names, *MEASURES], rows, len(names))


def intervals(outcomes: Iterable[Outcome]) -> str:
    """Intervals and strategies."""
    names = "scenario", "strategy", "interval"
    rows = (
        [
            one.setup.scenario,
            one.setup.strategy,
            f"{one.setup.interval:g} s",
            *measures(one),
            f"${per_month('blob', one.steady):,.2f}",
        ]
        for one in outcomes
    )
    return table([*names, *MEASURES, "Blob, per month"], rows, len(names))


def backends(outcomes: Iterable[Outcome]) -> str:
    """All backends."""
    names = "backend", "scenario"
    rows = ([one.setup.backend, one.setup.scenario, *measures(one)] for one in outcomes)
    return table([*names, *MEASURES], rows, len(names))


def costs(outcomes: Iterable[Outcome]) -> str:
    """Cost per month on Blob in the balanced state, by size: measured, and computed."""
    rows = []
    for one in outcomes:
        setup = one.setup
        if (setup.backend, setup.strategy) != ("blob", "greedy"):
            continue
        computed = (
            blob_per_month(setup.consumers, setup.partitions, interval) for interval in (10, 30, 60)
        )
        rows.append(
            [
                size(one),
                f"{sum(one.steady.values()):.2f}",
                f"${per_month('blob', one.steady):,.2f}",
                *(f"${dollars:,.2f}" for dollars in computed),
            ]
        )
    headings = [
        "consumers x partitions",
        "requests per s, measured",
        "Blob, measured",
        *(f"Blob, {interval} s" for interval in (10, 30, 60)),
    ]
    return table(headings, rows)


def prices() -> str:
    """Prices, which are inputs."""
    headings = "backend", "dollars", "for", "source"
    rows = (
        [name, f"{price.dollars:g}", price.what, price.source] for name, price in PRICES.items()
    )
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, ["---"] * 4, *rows))


def hand_overs(outcomes: Iterable[Outcome]) -> str:
    """Starts with and without hand-over."""
    names = "consumers x partitions", "load", "hand-over"
    headings = (
        "balanced after",
        "longest gap",
        "partitions moved",
        "of them from an owner that had not released",
        "requests a round, until balanced",
        "then",
    )
    rows = []
    for one in outcomes:
        setup = one.setup
        ended = setup.longest if one.balanced_after is None else one.balanced_after
        requests = one.all_requests if one.balanced_after is None else one.requests
        rows.append(
            [
                size(one),
                f"{setup.load:g}" if setup.load else "none",
                "yes" if setup.hands_over else "no",
                duration(one.balanced_after),
                duration(one.longest_gap),
                f"{one.hand_overs:,}",
                f"{one.takeovers:,}",
                f"{a_round(setup, sum(requests.values()) / ended):.1f}",
                f"{a_round(setup, sum(one.steady.values())):.1f}" if one.steady else "",
            ]
        )
    return table([*names, *headings], rows, len(names))


def in_batches(outcomes: Iterable[Outcome]) -> str:
    """Starts of members that read in batches, and of clients of the SDK."""
    rows = []
    for one in outcomes:
        who = "batches" if one.setup.in_batches else "official client"
        hands = "yes" if one.setup.hands_over else "no"
        rows.append([size(one), who, hands, *measures(one)])
    return table(("members x partitions", "members", "hand-over", *MEASURES), rows, names=3)


def late(outcomes: Iterable[Outcome]) -> str:
    """Starts of consumers whose rounds are late."""
    names = "consumers x partitions", "rounds late by up to", "hand-over"
    headings = (
        "balanced after",
        "partitions moved",
        "most in a minute",
        "of all, from an owner that had not released",
        "partitions each",
    )
    rows = []
    for one in outcomes:
        minutes = Counter[int]()
        for second, count in one.hand_overs_by_second.items():
            minutes[second // 60] += count
        rows.append(
            [
                size(one),
                duration(one.setup.late),
                "yes" if one.setup.hands_over else "no",
                duration(one.balanced_after),
                f"{one.hand_overs:,}",
                f"{max(minutes.values(), default=0):,}",
                f"{one.takeovers:,}",
                f"{one.smallest} to {one.largest}",
            ]
        )
    return table([*names, *headings], rows, len(names))


def a_round(setup: Setup, per_second: float) -> float:
    """Return the requests of a consumer in a round, of those of a group in a second."""
    return per_second * ROUND_INTERVALS * setup.interval / setup.consumers


RENDER = {
    "starts": starts,
    "scenarios": scenarios,
    "intervals": intervals,
    "backends": backends,
    "hand-overs": hand_overs,
    "late": late,
    "in batches": in_batches,
}
MARKS = "<!-- {name}: written by benchmarks.scale -->", "<!-- end of {name} -->"


def write_into(page: Path, name: str, content: str) -> None:
    """Replace what lies between the marks of this name in a page.

    Raises:
        ValueError: the page has no such marks.
    """
    begin, end = (mark.format(name=name) for mark in MARKS)
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    replaced, count = pattern.subn(
        lambda _: f"{begin}\n\n{content}\n\n{end}", page.read_text(encoding="utf-8")
    )
    if count != 1:
        raise ValueError(f"{page} has no place for {name}: expected {begin} and {end}")
    page.write_text(replaced, encoding="utf-8")
