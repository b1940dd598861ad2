"""The claims of partitions, from when a client opens each until it is closed."""

import math
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.compat import ended
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._async.checkpoint_writer import Saver
from eventhub_checkpoints.processing._async.saved_position import NAMES
from eventhub_checkpoints.processing._async.session import Claim
from eventhub_checkpoints.processing.policy import Policy
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally, by_partition

Key = tuple[str, ...]
"""Namespace, hub, consumer group and partition id, as the client spells them."""
names_of: Callable[[PartitionContext], Key] = attrgetter(*NAMES)
OVERLAP = 1.0
"""Seconds that a client may take from listing checkpoints to opening a partition."""


def key_of(partition_context: PartitionContext) -> Key:
    """Return the key of the partition that a handler was given.

    Raises:
        InvalidRecordError: it is no partition context.
    """
    try:
        return names_of(partition_context)
    except AttributeError:
        given = None if partition_context is None else type(partition_context)
        raise InvalidRecordError(
            "partition_context", given, "what the client gives a handler before the events"
        ) from None


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
        open: the claims that have not ended, by their key; never changed in place.
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
        self.open: dict[Key, Claim] = {}
        self._tallies: dict[Key, Tally] = {}
        self._ended: dict[Key, tuple[float, Claim]] = {}

    def of(self, partition_context: PartitionContext, *, announces: bool) -> Claim:
        """The claim that a partition is in; begun by its first event, or when it is announced.

        A sync client announces a partition in one thread, and may deliver its first event in
        another before, or at the same time.
        """
        if self._process_id != os.getpid():
            self._begin_anew()
        with self._guard:
            known = self.open.get(key_of(partition_context))
            if known is None or (announces and known.is_announced):
                known = self._begin(partition_context)
            known.is_announced |= announces
        return known

    def begin(self, partition_context: PartitionContext) -> Claim:
        """A claim that begins now, whatever was before."""
        with self._guard:
            return self._begin(partition_context)

    def _begin(self, partition_context: PartitionContext) -> Claim:
        key = key_of(partition_context)
        tally = self._tallies.setdefault(key, Tally())
        names = dict(zip(NAMES, key, strict=True))
        claim = Claim(names, self._policy, tally, self.saver, *self._limits)
        claim.before = self._overlapped(key)
        if self._is_closed:
            claim.is_over = True
            return claim
        self.open = {**self.open, key: claim}
        self.saver.add(claim)
        return claim

    def _overlapped(self, key: Key) -> Claim | None:
        """The claim whose last position may have been stored after this one's was listed."""
        ended_at, before = self._ended.get(key, (-math.inf, None))
        if open_one := self.open.get(key):
            self.saver.end(open_one)
            before = open_one
        elif time.monotonic() - ended_at > OVERLAP:
            return None
        if before is not None:
            before.before = None
        return before

    def drained_by(self, claim: Claim, seconds: float) -> float:
        """Return until when the events of a claim may finish whose client stops.

        A sync client closes its partitions one after another, so they share one time: it begins
        now for the others too, unless more of their events are begun.

        Args:
            claim: which.
            seconds: that events which were begun have to finish.
        """
        for one in self._beside(claim):
            one.draining_since()
        return claim.draining_since() + seconds

    def _beside(self, claim: Claim) -> list[Claim]:
        """Return the open claims of a consumer group, this one among them."""
        return [one for one in self.open.values() if one.scope == claim.scope]

    async def finish(self, claim: Claim, *, flushes: bool, stops: bool = False) -> None:
        """End a claim.

        Args:
            claim: which.
            flushes: whether the last of it is written first, within `write_timeout`.
            stops: whether its client stops. Then writing begins for the others too, and they share
                that time, unless more of their events are finished.
        """
        now = time.monotonic()
        end = now + self._write_timeout
        if flushes and stops:
            several = self._beside(claim)
            for one in several:
                one.flushing.of(one.finished.count, now)
            await self.saver.begin_flush(several, self._write_timeout)
            end = claim.flushing.of(claim.finished.count, now) + self._write_timeout
        if claim.ends_by is not None:
            end = min(end, claim.ends_by)
        await self._end(claim, end, flushes=flushes)

    async def _end(self, claim: Claim, end: float, *, flushes: bool) -> None:
        await self.saver.finish(claim, end - time.monotonic(), flushes=flushes)
        with self._guard:
            self._ended[claim.key] = (time.monotonic(), claim)
            self.open = {key: one for key, one in self.open.items() if one is not claim}

    async def flush(self, partition_id: str | None = None) -> bool:
        """Write what is finished, of one partition or of all; whether all of it is written."""
        several = [one for one in self.open.values() if partition_id in (None, one.partition_id)]
        return await self.saver.flush_all(several, self._write_timeout)

    async def close(self) -> None:
        """Write what is finished, and end all claims for good.

        One that is being closed is left the time that it has for that, until it is released.
        """
        with self._guard:
            self._is_closed, several = True, list(self.open.values())
        end = time.monotonic() + self._write_timeout
        left = [claim for claim in several if claim.ends_by is None]
        await self.saver.begin_flush(left, self._write_timeout)
        for claim in left:
            await self._end(claim, end, flushes=True)
        # An aio client may have returned from `close` meanwhile.
        for claim in several:
            if claim.ends_by is not None:
                quiet: Callable[[], bool] = partial(getattr, claim, "is_quiet")
                await claim.until(quiet, claim.ends_by - time.monotonic())
                await ended(claim.closer, self._write_timeout)
        await self.saver.close(max(end - time.monotonic(), 0))

    def stats(self) -> dict[str, PartitionStats]:
        """How each partition that is open is doing; see `by_partition`."""
        now = time.monotonic()
        return by_partition([(claim.names, claim.stats(now)) for claim in self.open.values()])
