"""Limits of a batch, and small ranges grouped into tasks."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eventhub_checkpoints.receive.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job takes at most in one batch.

    Units: events per batch; None is no limit.

    Attributes:
        total: of all partitions together.
        rate: of each partition that `rates` does not name.
        rates: of single partitions, by id.
    """

    total: int | None = None
    rate: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)

    def taken(self, waiting: Mapping[str, int]) -> dict[str, int]:
        """How many of the waiting events are taken.

        First no partition is given more than its own rate, then what is left is cut to the
        total, see `split`.
        """
        allowed = {one: self._at_most(one, count) for one, count in waiting.items()}
        return allowed if self.total is None else split(self.total, allowed)

    def _at_most(self, partition_id: str, count: int) -> int:
        rate = self.rates.get(partition_id, self.rate)
        return count if rate is None else min(count, rate)


NO_LIMITS = Limits()


def split(total: int, waiting: Mapping[str, int]) -> dict[str, int]:
    """Share a total out in proportion to what waits; what is taken adds up to it exactly.

    Every partition that has anything is given at least one event, so none starves behind a
    large one. Where there are more such partitions than the total allows, that rule wins.
    """
    lagging = {one: count for one, count in waiting.items() if count}
    if sum(lagging.values()) <= total:
        return dict(waiting)
    rest = max(0, total - len(lagging))
    further = sum(lagging.values()) - len(lagging)
    shares = {one: divmod(rest * (count - 1), further or 1) for one, count in lagging.items()}
    taken = dict.fromkeys(waiting, 0) | {one: 1 + whole for one, (whole, _) in shares.items()}
    # Largest remainders first; among equals the order of partitions, so the result is stable.
    by_remainder = sorted(shares, key=lambda one: -shares[one][1])
    for one in by_remainder[: rest - sum(whole for whole, _ in shares.values())]:
        taken[one] += 1
    return taken


@dataclass(frozen=True, slots=True)
class TaskSize:
    """How many ranges one task reads.

    Attributes:
        ranges: that many; None is as many as leave one task for each core.
        parallelism: how many tasks run at once; None where nobody has said it. Spark does not
            tell the process that plans a source, so it counts for as many as the machine of the
            driver has cores, which is right for a local session only.
    """

    ranges: int | None = 1
    parallelism: int | None = None

    def of(self, count: int) -> int:
        """How many of so many ranges go into one task."""
        if self.ranges is not None:
            return self.ranges
        cores = self.parallelism or os.cpu_count() or 1
        return max(1, -(-count // cores))


def grouped(ranges: Iterable[OffsetRange], per_task: int) -> list[list[OffsetRange]]:
    """As few groups as hold no more than `per_task` ranges each, of about equal events.

    The largest range goes first, always to the group that has the least.
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
    """How many events a range holds at most."""
    return wanted.until_sequence_number - wanted.from_sequence_number
