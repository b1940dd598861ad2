"""The claims of one client's partitions, from when each is opened until it is closed."""

import math
import os
import threading
import time
from collections.abc import Callable

from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._core.policy import Policy
from eventhub_checkpoints._core.statistics import PartitionStats, Tally
from eventhub_checkpoints.aio._claim import Claim
from eventhub_checkpoints.aio._saving import Saver

OVERLAP = 1.0
"""Seconds that a client may take from listing checkpoints to opening a partition."""


class Claims:
    """What of each partition is finished and saved.

    Args:
        make_saver: makes who writes it; again in a forked child.
        policy: when it is written.
        write_timeout: seconds that the last write of a claim may take.
        max_pending: events of a partition that may be begun and not passed.
        max_unsaved: events of one that may be begun and not saved; None: any number.

    Attributes:
        saver: who writes it.
        open: the claims that have not ended, by partition; never changed in place.
    """

    def __init__(
        self,
        make_saver: Callable[[], Saver],
        policy: Policy,
        write_timeout: float,
        max_pending: int,
        max_unsaved: int | None = None,
    ) -> None:
        self._make_saver = make_saver
        self._policy = policy
        self._write_timeout = write_timeout
        self._limits = max_pending, max_unsaved
        self._is_closed = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Know nothing: at first, and in a forked child, whose parent saves its own."""
        self._process_id = os.getpid()
        self._guard = threading.Lock()
        self.saver = self._make_saver()
        self.open: dict[str, Claim] = {}
        self._tallies: dict[str, Tally] = {}
        self._ended: dict[str, tuple[float, Claim]] = {}

    def of(self, partition_context: PartitionContext, *, announces: bool) -> Claim:
        """The claim that a partition is in; begun by its first event, or when it is announced.

        A sync client announces a partition in one thread, and may deliver its first event in
        another before, or at the same time.
        """
        if self._process_id != os.getpid():
            self._begin_anew()
        with self._guard:
            known = self.open.get(partition_context.partition_id)
            if known is None or (announces and known.is_announced):
                known = self._begin(partition_context)
            known.is_announced |= announces
        return known

    def begin(self, partition_context: PartitionContext) -> Claim:
        """A claim that begins now, whatever was before."""
        with self._guard:
            return self._begin(partition_context)

    def _begin(self, partition_context: PartitionContext) -> Claim:
        partition_id = partition_context.partition_id
        names = {
            "fully_qualified_namespace": partition_context.fully_qualified_namespace,
            "eventhub_name": partition_context.eventhub_name,
            "consumer_group": partition_context.consumer_group,
            "partition_id": partition_id,
        }
        tally = self._tallies.setdefault(partition_id, Tally())
        claim = Claim(names, self._policy, tally, self.saver, *self._limits)
        claim.before = self._overlapped(partition_id)
        if self._is_closed:
            claim.is_over = True
            return claim
        self.open = {**self.open, partition_id: claim}
        self.saver.add(claim)
        return claim

    def _overlapped(self, partition_id: str) -> Claim | None:
        """The claim whose last position may have been stored after this one's was listed."""
        ended_at, before = self._ended.get(partition_id, (-math.inf, None))
        if open_one := self.open.get(partition_id):
            self.saver.end(open_one)
            before = open_one
        elif time.monotonic() - ended_at > OVERLAP:
            return None
        if before is not None:
            before.before = None
        return before

    async def finish(self, claim: Claim, *, flushes: bool, seconds: float | None = None) -> None:
        """End a claim.

        Args:
            claim: which.
            flushes: whether the last of it is written first.
            seconds: within which that has to be done; None: `write_timeout`.
        """
        seconds = self._write_timeout if seconds is None else seconds
        await self.saver.finish(claim, seconds, flushes=flushes)
        with self._guard:
            self._ended[claim.partition_id] = (time.monotonic(), claim)
            self.open = {key: one for key, one in self.open.items() if one is not claim}

    async def flush(self, partition_id: str | None = None) -> bool:
        """Write what is finished, of one partition or of all; whether all of it is written."""
        several = [one for one in self.open.values() if partition_id in (None, one.partition_id)]
        return await self.saver.flush_all(several, self._write_timeout)

    async def close(self) -> None:
        """Write what is finished, and end all claims for good."""
        with self._guard:
            self._is_closed, several = True, list(self.open.values())
        end = time.monotonic() + self._write_timeout
        await self.saver.begin_flush(several, self._write_timeout)
        for claim in several:
            await self.finish(claim, flushes=True, seconds=max(end - time.monotonic(), 0))
        await self.saver.close(self._write_timeout)

    def stats(self) -> dict[str, PartitionStats]:
        """How each partition that is open is doing, by its id."""
        now = time.monotonic()
        return {key: claim.stats(now) for key, claim in self.open.items()}
