"""Several small ranges in one task: a task costs Spark some 70 ms before it has read anything."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from eventhub_checkpoints.receive.ranges import OffsetRange


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
