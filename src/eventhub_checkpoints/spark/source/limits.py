"""Limits of a batch, and grouping of small ranges into tasks."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eventhub_checkpoints.receive.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of events in one batch.

    Units: events per batch; None: no limit.

    Attributes:
        total: of all partitions together.
        rate: of each partition that `rates` does not name.
        rates: of single partitions, by id.
    """

    total: int | None = None
    rate: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)

    def taken(self, waiting: Mapping[str, int]) -> dict[str, int]:
        """Return how many of the waiting events are taken.

        First each partition is limited to its own rate, then the result is cut to the total, see
        `split`.
        """
        allowed = {one: self._at_most(one, count) for one, count in waiting.items()}
        return allowed if self.total is None else split(self.total, allowed)

    def _at_most(self, partition_id: str, count: int) -> int:
        rate = self.rates.get(partition_id, self.rate)
        return count if rate is None else min(count, rate)


NO_LIMITS = Limits()


def split(total: int, waiting: Mapping[str, int]) -> dict[str, int]:
    """Divide a total in proportion to the waiting events; the shares add up to it exactly.

    Every partition with waiting events gets at least one, so none starves behind a large one. With
    more such partitions than the total allows, this rule takes precedence over the total.
    """
    lagging = {one: count for one, count in waiting.items() if count}
    if sum(lagging.values()) <= total:
        return dict(waiting)
    rest = max(0, total - len(lagging))
    further = sum(lagging.values()) - len(lagging)
    shares = {one: divmod(rest * (count - 1), further or 1) for one, count in lagging.items()}
    taken = dict.fromkeys(waiting, 0) | {one: 1 + whole for one, (whole, _) in shares.items()}
    # Largest remainders first; ties keep the order of partitions, so the result is stable.
    by_remainder = sorted(shares, key=lambda one: -shares[one][1])
    for one in by_remainder[: rest - sum(whole for whole, _ in shares.values())]:
        taken[one] += 1
    return taken


@dataclass(frozen=True, slots=True)
class TaskSize:
    """Number of ranges per task.

    Attributes:
        ranges: ranges per task; None: as many as result in one task per core.
        parallelism: number of tasks that run at once; None if not specified. Spark does not expose
            it to the process that plans a source, so the default is the number of cores of the
            driver's machine, which is right for a local session only.
    """

    ranges: int | None = 1
    parallelism: int | None = None

    def of(self, count: int) -> int:
        """Return how many of `count` ranges go into one task."""
        if self.ranges is not None:
            return self.ranges
        cores = self.parallelism or os.cpu_count() or 1
        return max(1, -(-count // cores))


def grouped(ranges: Iterable[OffsetRange], per_task: int) -> list[list[OffsetRange]]:
    """Return the fewest groups of at most `per_task` ranges each, with about equal events.

    The largest range goes first, always to the group with the fewest events.
    """
    waiting = sorted(ranges, key=lambda one: -events(one))
    groups: list[list[OffsetRange]] = [[] for _ in range(-(-len(waiting) // per_task))]
    for one in waiting:
        open_groups = (group for group in groups if len(group) < per_task)
        min(open_groups, key=lambda group: sum(map(events, group))).append(one)
    for group in groups:
        group.sort(key=lambda one: int(one.partition_id))
    return sorted(groups, key=lambda group: int(group[0].partition_id))


def events(wanted: OffsetRange) -> int:
    """Return the maximum number of events in a range."""
    return wanted.until_sequence_number - wanted.from_sequence_number
