"""Sizes of the events that a stream is about to read, for a limit in bytes."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.reader import RangeReader

SAMPLE = 10
"""Events that are read of a partition."""
SAMPLE_EVERY = 60.0
"""Seconds for which a mean is used."""
READ_AT_ONCE = 8
UNKNOWN = 2**20
"""Bytes for which an event counts while no sample of its partition has any: the largest event of
the Standard tier."""


class BodySizes:
    """Mean size of the next bodies of each partition, from a few that the driver reads.

    The driver decides what a batch reads. It cannot learn sizes from tasks, which cannot report to
    it in a Python source, nor from offsets, which are opaque.

    Args:
        address: the hub.
        settings: how ranges are read.
    """

    def __init__(self, address: Address, settings: ReadSettings) -> None:
        self._address = address
        # A loss is reported by the batch.
        self._settings = replace(settings, prefetch=SAMPLE, fail_on_data_loss=False)
        self._means: dict[str, float] = {}
        self._read_at: dict[str, float] = {}

    def count(self, size: int, starts: Mapping[str, int], waiting: Mapping[str, int]) -> int:
        """Return how many of the waiting events have bodies of about `size` bytes in total.

        Args:
            size: bytes.
            starts: sequence number of the first waiting event, by partition.
            waiting: number of waiting events, by partition.

        Raises:
            ConfigurationError: the consumer group does not exist, or access is refused.
            HubUnavailableError: the hub delivered no event of a sample.
        """
        lagging = {partition: count for partition, count in waiting.items() if count}
        now = time.monotonic()
        ranges = [
            OffsetRange(partition, starts[partition], starts[partition] + min(SAMPLE, count))
            for partition, count in lagging.items()
            if now >= self._read_at.get(partition, float("-inf")) + SAMPLE_EVERY
        ]
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            means = list(pool.map(self._mean, ranges))
        for each, mean in zip(ranges, means, strict=True):
            self._read_at[each.partition_id] = now
            if mean is not None:
                self._means[each.partition_id] = mean
        total = sum(count * self._means.get(key, UNKNOWN) for key, count in lagging.items())
        events = sum(lagging.values())
        return events if total <= size else max(1, int(events * size / total))

    def _mean(self, offsets: OffsetRange) -> float | None:
        """Return the mean size of the bodies in a range; None if it has none."""
        with closing(RangeReader(self._address, offsets, self._settings).parts()) as parts:
            sizes = [len(body) for columns in parts for body in columns.bodies]
        return max(1.0, sum(sizes) / len(sizes)) if sizes else None
