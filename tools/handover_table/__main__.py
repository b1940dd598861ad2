"""Print how many events are processed twice when a second consumer joins, by way of saving.

PYTHONPATH=src:tools python -m handover_table --rounds 3
PYTHONPATH=src:tools python -m handover_table --rounds 3 --official

"""

import argparse
import logging
from collections.abc import Callable
from statistics import median
from typing import Any

from counts import at_least_one
from eventhub_checkpoints import MemoryCheckpointStore, aio
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from handover_table import WAYS
from handover_table.official import MIXED, containers, joined_on_blob
from handover_table.runs import Result, Setting, joined

VARIANTS = ("sync", "aio")
EXPIRY = 10.0
"""Seconds in groups with the official store, which is taken from only after this time."""


def in_memory(variant: str) -> Callable[[str], Any]:
    """Return what makes the stores of one group, in this process."""
    rows = MemoryRows()
    kind: Any = aio.MemoryCheckpointStore if variant == "aio" else MemoryCheckpointStore
    return lambda name: kind(rows)


def line(title: str, results: list[Result]) -> str:
    """Return one line of the table."""
    twice = sorted(result.twice for result in results)
    published, lost = sum(each.published for each in results), sum(each.lost for each in results)
    seconds = median(each.seconds for each in results)
    counts = ", ".join(f"{count:,}" for count in twice)
    return f"{title:<52} {counts:>24} {lost:>6} {published:>10,} {seconds:>8.1f}"


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--rate", type=int, default=1000, help="events a second")
    parser.add_argument("--ways", nargs="*", default=[*WAYS], choices=[*WAYS])
    parser.add_argument("--variants", nargs="*", default=[*VARIANTS], choices=VARIANTS)
    parser.add_argument("--interval", type=float, default=1.0, help="of load balancing, in seconds")
    parser.add_argument(
        "--official", action="store_true", help="instead, groups with the official Blob store"
    )
    asked = parser.parse_args()
    # Without a hand-over, each checkpoint that is refused as stale is logged.
    logging.getLogger("eventhub_checkpoints").setLevel(logging.ERROR)
    print(f"{'':<52} {'twice':>24} {'lost':>6} {'published':>10} {'balanced':>8}")
    if asked.official:
        print_mixed(asked)
        return
    for way in asked.ways:
        for variant in asked.variants:
            setting = Setting(way, variant, rate=asked.rate, interval=asked.interval)
            for hands_over in (False, True):
                results = [
                    joined(setting, in_memory(variant), hands_over=(hands_over, hands_over))
                    for _ in range(asked.rounds)
                ]
                when = "after" if hands_over else "before"
                print(line(f"{WAYS[way]}, {variant}, {when}", results), flush=True)


def print_mixed(asked: argparse.Namespace) -> None:
    """Print the lines of groups with the official store, with a write per event."""
    with containers() as create:
        for variant in asked.variants:
            setting = Setting(
                "each", variant, rate=asked.rate, interval=asked.interval, expires_after=EXPIRY
            )
            for title, official in MIXED.items():
                results = [
                    joined_on_blob(setting, *create(), official) for _ in range(asked.rounds)
                ]
                print(line(f"{title}, {variant}", results), flush=True)


if __name__ == "__main__":
    main()
