# Derived from _async/watchdog.py by tools/unasync.py; edit that file.
"""Watchdog that finds stalled partitions, in the background.

It looks at the partitions, queries the hub, and applies `on_stall`; `PartitionWatch` decides what
is a stall.
"""

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Literal

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.background import Background
from eventhub_checkpoints._shared._sync.client_check import called, check_callable
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.settings import SECONDS, is_seconds, require
from eventhub_checkpoints._shared.wrapping import layers
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.processing._sync.receive_loop import as_handler, to_the_end
from eventhub_checkpoints.processing._sync.session import PartitionSession
from eventhub_checkpoints.processing.stall import (
    ASKING,
    PartitionWatch,
    Reopenings,
    Snapshot,
    Stall,
)

log = logging.getLogger("eventhub_checkpoints")

OnStall = Literal["report", "reopen"] | Callable[[Stall], Any]

LOOKS = 10
"""Number of looks at each partition within `stalled_after`."""
LAST_ANSWER = 1.0
"""Seconds that the hub has to answer pending queries when the processor stops."""
MAX_HANGING_QUERIES = 3
"""Queries that may be without an answer: each occupies a thread of a synchronous client."""

QUERY_LOST_AFTER = 4
"""Multiple of `stalled_after` after which an unanswered query counts as lost, because a connection
may break without a sign of it.
"""


def check_watchdog(stalled_after: object, on_stall: object) -> None:
    """Refuse invalid options.

    Raises:
        ConfigurationError: one is invalid.
    """
    is_valid = stalled_after is None or is_seconds(stalled_after)
    require("stalled_after", stalled_after, is_valid, f"None, or {SECONDS}")
    is_valid = callable(on_stall) or on_stall in ("report", "reopen")
    require("on_stall", on_stall, is_valid, "'report', 'reopen' or a callable")
    check_callable("on_stall", on_stall)


def store_that_reopens(store: CheckpointStore) -> Any:
    """Return the store, or the store within it, that can have a client reopen a partition.

    Raises:
        ConfigurationError: none of them can.
    """
    for layer in layers(store):
        if callable(getattr(layer, "reopen", None)):
            return layer
    raise ConfigurationError(
        "on_stall='reopen' needs a client with a store of this package, because other stores "
        "cannot have the client open a partition again; use such a store, or pass EventProcessor "
        "a callable that makes the client"
    )


@dataclass(frozen=True, slots=True, eq=False)
class WatchedPartition:
    """Partition that the watchdog looks at.

    Attributes:
        key: identifies the partition, for as long as it is open.
        partition_id: which partition.
        snapshot: what is known of it now.
        session: its session; None: the client holds the partition, and has not opened it.
        client: the client to query about the partition; None: it is not known.
    """

    key: Hashable
    partition_id: str
    snapshot: Snapshot
    session: PartitionSession | None = None
    client: Any = None

    @property
    def name(self) -> Hashable:
        """Identifies the partition, also when it is opened again."""
        return self.key if self.session is None else self.session.key


def drained(watched: list[WatchedPartition]) -> list[WatchedPartition]:
    """Mark the partitions as ending whose client was closed, but still waits for its handlers.

    Such a client, if it is synchronous, reports only the partition whose handler it waits for.
    """
    ended = {
        each.key for each in watched if each.session is not None and each.session.source.is_drained
    }
    if not any(each.snapshot.is_ending for each in watched if each.key in ended):
        return watched
    return [
        replace(each, snapshot=each.snapshot._replace(is_ending=True))
        if each.key in ended
        else each
        for each in watched
    ]


class Watchdog:
    """Looks at the partitions of a client, and reports those that have stalled.

    Args:
        partitions: returns the partitions that the client holds, with what is known of them.
        reopen: has the client open a partition again.
        stalled_after: seconds without progress that make a stall; None: nothing is watched.
        on_stall: what to do about one; see `EventProcessor`.

    Attributes:
        stalls: what the last look has found; replaced when the look is complete.
    """

    def __init__(
        self,
        partitions: Callable[[], list[WatchedPartition]],
        reopen: Callable[[WatchedPartition], None],
        stalled_after: float | None,
        on_stall: OnStall,
    ) -> None:
        self._partitions = partitions
        self._reopen = reopen
        self._limit = stalled_after
        self._on_stall = on_stall
        self._background = Background(self._run)
        self._watches: dict[Hashable, PartitionWatch] = {}
        self._arrivals_before: dict[Hashable, dict[Hashable, int]] = {}
        self._reopenings: dict[Hashable, Reopenings] = {}
        self._queries: dict[object, float] = {}
        self._silent_since: float | None = None
        self.stalls: list[Stall] = []

    def start(self) -> None:
        """Start looking, unless nothing is watched."""
        if self._limit is not None:
            self._background.start()

    def stop(self) -> None:
        """Stop looking."""
        self._background.stop(LAST_ANSWER)
        self._watches.clear()
        self.stalls = []

    def wake(self) -> None:
        """Look now."""
        self._background.wake()

    def is_healthy(self) -> bool:
        """Return whether no partition has stalled, and this still looks at them."""
        return not self.stalls and (self._background.is_alive or not self._watches)

    def _run(self) -> float:
        assert self._limit is not None
        try:
            self._look(time.monotonic())
        except Exception:
            log.exception("the watchdog could not look at the partitions")
        return self._limit / LOOKS

    def _look(self, now: float) -> None:
        watched = drained(self._partitions())
        keys = {each.key for each in watched}
        for key in [key for key in self._watches if key not in keys]:
            del self._watches[key]
            self._arrivals_before.pop(key, None)
        before = {key: watch.stall for key, watch in self._watches.items()}
        silent_since = self._unanswered_since()
        for each in watched:
            watch = self._watches.get(each.key)
            if watch is None:
                assert self._limit is not None
                watch = self._watches[each.key] = PartitionWatch(each.partition_id, self._limit)
            watch.look(each.snapshot, silent_since, now)
        arrivals = {key: watch.arrivals for key, watch in self._watches.items()}
        for key, watch in self._watches.items():
            if not watch.is_behind:
                self._arrivals_before[key] = arrivals
        for each in watched:
            self._attribute(each, watched)
        for each in watched:
            self._report(each, before.get(each.key), now)
        # Not earlier: a liveness probe in another thread would see a stall that the loop above may
        # still attribute to another partition, or clear.
        self.stalls = [each.stall for each in self._watches.values() if each.stall is not None]
        self._ask(watched, now)

    def _attribute(self, partition: WatchedPartition, watched: list[WatchedPartition]) -> None:
        """Attribute a stall to the running handler, if no event arrives because of it."""
        watch = self._watches[partition.key]
        stall, session = watch.stall, partition.session
        if stall is None or stall.where != "link" or session is None or partition.snapshot.is_lost:
            return
        if frame := session.source.handler():
            reason = f"its handler was called, and has not returned for {stall.seconds:.0f} s"
            watch.attribute("handler", f"{reason}: {frame}")
        elif session.source.shares_thread:
            self._attribute_to_others(partition, stall, watched)

    def _attribute_to_others(
        self, partition: WatchedPartition, stall: Stall, watched: list[WatchedPartition]
    ) -> None:
        """Attribute a stall to the handler of another partition.

        A synchronous client calls all handlers in one thread.
        """
        watch = self._watches[partition.key]
        for other in watched:
            session, theirs = other.session, self._watches[other.key]
            if session is None or theirs is watch:
                continue
            if not session.source.handler():
                continue
            if theirs.stall is not None:
                reason = f"the client waits for the handler of partition {other.partition_id}"
                watch.attribute("handler", f"{reason}, for {stall.seconds:.0f} s")
            elif not self._had_turn(partition):
                watch.clear()
            return

    def _had_turn(self, partition: WatchedPartition) -> bool:
        """Return whether the client has polled a partition since events for it exist.

        The client polls the partitions in turn: if another one has received something twice, this
        one had its turn.
        """
        before = self._arrivals_before.get(partition.key, {})
        return any(
            watch.arrivals - before.get(key, watch.arrivals) > 1
            for key, watch in self._watches.items()
            if key != partition.key
        )

    def _report(self, partition: WatchedPartition, before: Stall | None, now: float) -> None:
        """Report a stall that begins or ends, and reopen the link if the stall lasts."""
        stall, reached = self._watches[partition.key].stall, partition.snapshot.reached
        if partition.session is not None:
            partition.session.stall = stall
        reopenings = self._reopenings.get(partition.name)
        if reopenings is not None and reopenings.is_over(reached):
            del self._reopenings[partition.name]
        if stall is None:
            if before is not None:
                log.warning("partition %s continues after a stall", partition.partition_id)
            return
        if before is None or before.where != stall.where:
            log.error("%s", stall)
            if partition.session is not None:
                partition.session.progress.tally.stalls += 1
            if callable(self._on_stall):
                self._begin(self._call, self._on_stall, stall)
        if self._on_stall != "reopen" or stall.where != "link":
            return
        assert self._limit is not None
        reopenings = self._reopenings.setdefault(partition.name, Reopenings(self._limit))
        if reopenings.is_due(reached, now):
            log.warning("partition %s is opened again", partition.partition_id)
            self._reopen(partition)

    def _call(self, function: Callable[[Stall], Any], stall: Stall) -> None:
        try:
            with as_handler():
                called(function, stall)
        except Exception:
            log.exception("on_stall raised")

    def _begin(self, function: Callable[..., None], *args: object) -> None:
        try:
            self._background.begin(function, *args)
        except RuntimeError as error:  # no thread can be started
            log.warning("the watchdog could not start a call: %s", described(error))

    def _unanswered_since(self) -> float | None:
        """Return since when the hub answers no query; None: it answers, or was not queried."""
        began = [*self._queries.values()]
        if self._silent_since is not None:
            began.append(self._silent_since)
        return min(began, default=None)

    def _ask(self, watched: list[WatchedPartition], now: float) -> None:
        """Query the hub about the partition that has waited longest: one query at a time."""
        assert self._limit is not None
        for query, began in list(self._queries.items()):
            if now - began >= QUERY_LOST_AFTER * self._limit:
                self._silent_since = self._unanswered_since()
                self._queries.pop(query, None)
        # A query that hangs may never end although the hub answers others, so another one is sent.
        late = ASKING * self._limit
        hanging = [began for began in self._queries.values() if now - began >= late]
        if len(self._queries) > len(hanging) or len(hanging) >= MAX_HANGING_QUERIES:
            return
        waiting: list[tuple[float, WatchedPartition]] = []
        for each in watched:
            due = self._watches[each.key].query_due(now)
            if due is not None and each.client is not None:
                waiting.append((due, each))
        if waiting:
            _, first = min(waiting, key=itemgetter(0))
            watch = self._watches[first.key]
            watch.asked(now)
            query = object()
            self._queries[query] = now
            self._begin(self._query, query, first, watch)

    def _query(self, query: object, partition: WatchedPartition, watch: PartitionWatch) -> None:
        try:
            # An aio client that is cancelled during the query leaks its connection.
            read = partition.client.get_partition_properties
            watch.answered(to_the_end(read, partition.partition_id, seconds=LAST_ANSWER))
        except Exception as error:
            log.debug(
                "partition %s: the hub did not answer: %s", partition.partition_id, described(error)
            )
            if self._silent_since is None:
                self._silent_since = self._queries.get(query)
        else:
            self._silent_since = None
            self._queries.clear()
        finally:
            self._queries.pop(query, None)
            self._background.wake()
