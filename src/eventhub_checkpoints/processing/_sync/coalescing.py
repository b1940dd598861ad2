# Derived from _async/coalescing.py by tools/unasync.py; edit that file.
"""Checkpoint store that coalesces writes."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from types import TracebackType
from typing import Any, Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.client_check import ContextGuard, own_client_only
from eventhub_checkpoints._shared._sync.compat import place
from eventhub_checkpoints._shared.settings import require
from eventhub_checkpoints.errors import StaleCheckpointError, StoreUnavailableError
from eventhub_checkpoints.processing._sync.checkpoint_writer import (
    NAMES,
    CheckpointWriter,
    OnError,
    SessionProgress,
    log,
)
from eventhub_checkpoints.processing.held_partitions import HeldPartitions, Key, key_of, keyed
from eventhub_checkpoints.processing.policy import Due, Policy, every
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally, by_partition
from eventhub_checkpoints.processing.watermark import Latest, Position
from eventhub_checkpoints.records import (
    LEAST_INT64,
    MOST_INT64,
    checked_offset,
    checked_row,
    checked_rows,
    checked_sequence_number,
)

BufferedSession = SessionProgress[Latest]
names_of = itemgetter(*NAMES)


class WriteBuffer(CheckpointWriter):
    """Newest unwritten checkpoint of each partition, in one process.

    Args:
        store: as for `CheckpointWriter`.
        policy: when to write.
        write_timeout: as for `CheckpointWriter`.
        on_error: likewise.
        unhealthy_after: likewise.

    Attributes:
        by_names: sessions, by the names as spelled by the caller.
        kept: the same sessions, by the names regardless of case.
    """

    def __init__(
        self,
        store: CheckpointStore,
        policy: Policy,
        write_timeout: float,
        on_error: OnError | None,
        unhealthy_after: float,
    ) -> None:
        super().__init__(store, write_timeout, on_error, unhealthy_after)
        self.by_names: dict[tuple[Any, ...], BufferedSession] = {}
        self.kept: dict[Key, BufferedSession] = {}
        self._policy = policy
        self._tenure = HeldPartitions()
        self._tallies: dict[Key, Tally] = {}
        # A sync client claims in one thread, and releases and stores checkpoints in another.
        self._guard = threading.Lock()

    def one(self, key: Key, row: Mapping[str, Any]) -> BufferedSession | None:
        """Return the session of a partition, created if needed; None if another owns it."""
        with self._guard:
            tally = self._tallies.setdefault(key, Tally())
            if self._tenure.has_lost(key) and not self.goes_forward_only:
                tally.refused += 1
                log.debug("partition %s is another's: its checkpoint is not written", key[1])
                return None
            if key not in self.kept:
                names = dict(zip(NAMES, names_of(row), strict=True))
                self.kept[key] = SessionProgress(names, Latest(), self._policy, tally)
                self.add(self.kept[key])
            return self.by_names.setdefault(names_of(row), self.kept[key])

    def of(self, keys: Iterable[Key]) -> list[BufferedSession]:
        """Return the sessions of these partitions."""
        with self._guard:
            return [self.kept[key] for key in keys if key in self.kept]

    def of_scope(self, names: Iterable[object]) -> list[BufferedSession]:
        """Return the sessions of a consumer group."""
        scope = tuple(str(name).lower() for name in names)
        with self._guard:
            return [one for key, one in self.kept.items() if key[0] == scope]

    def everything(self) -> list[BufferedSession]:
        """Return all sessions."""
        with self._guard:
            return [*self.kept.values()]

    def give_up(self, keys: Sequence[Key], seconds: float) -> None:
        """Write the checkpoints of released partitions, and drop what could not be written.

        When this returns none of them is being written, if the store below answers. A sync client
        releases its partitions one after another, so if one could not be written, writing of the
        others is started, and they share the time.
        """
        now, leaving = time.monotonic(), self.of(keys)
        begun = [one.flushing.of(one.finished.count, now) for one in leaving]
        end = max(begun, default=now) + seconds
        if not self.flush_all(leaving, end - now):
            now, others = time.monotonic(), set(self.everything()) - set(leaving)
            for one in others:
                one.flushing.of(one.finished.count, now)
            self.begin_flush([*others], seconds)
        with self._guard:
            self._tenure.released(keys)
            self._drop(keys)
        for one in leaving:
            self.finish(one, end - time.monotonic(), flushes=False)

    def claimed(self, proposed: Iterable[Any], won: Iterable[Any]) -> None:
        """Drop what claims show as lost, if the store lets checkpoints go back."""
        with self._guard:
            lost = self._tenure.claimed(proposed, won)
            self._drop([] if self.goes_forward_only else lost)

    def listed(self, rows: Iterable[Any]) -> None:
        """Drop what a list of ownerships shows as lost, if the store lets checkpoints go back."""
        with self._guard:
            lost = self._tenure.listed(rows)
            self._drop([] if self.goes_forward_only else lost)

    def _drop(self, keys: Iterable[Key]) -> None:
        dropped = {self.kept.pop(key) for key in keys if key in self.kept}
        if not dropped:
            return
        self.by_names = {names: one for names, one in self.by_names.items() if one not in dropped}
        for one in dropped:
            self.end(one)
            if unsaved := one.unsaved:
                said = "partition %s was left before its last %d checkpoints were written"
                log.warning(said, one.partition_id, unsaved)

    def insist(self, one: BufferedSession, position: Position, kwargs: Mapping[str, Any]) -> None:
        """Write a position at once; raise what the store raises.

        It stands for everything requested so far. If the write fails, that remains unsaved.

        Args:
            one: the partition.
            position: any position; it may be below others.
            kwargs: further arguments of the store.

        Raises:
            StoreUnavailableError: another write did not end within `write_timeout`.
        """
        due, end = Due(one.finished.count, position), time.monotonic() + self._write_timeout
        while not self._began(one, due):
            if not one.until(lambda: not one.progress.is_writing, end - time.monotonic()):
                raise StoreUnavailableError(
                    f"a checkpoint of partition {one.partition_id!r} is still being written"
                )
        try:
            self._writer.put(one, position, **kwargs)
        except BaseException as error:
            with one.guard:
                is_refusal = isinstance(error, StaleCheckpointError)
                one.progress.was_given_up(time.monotonic(), is_refusal=is_refusal)
            raise
        else:
            with one.guard:
                one.progress.was_saved(time.monotonic())
                if one.finished.count == due.count:
                    one.finished.newest = position
        finally:
            one.changed()
            self.wake()

    def _began(self, one: BufferedSession, due: Due) -> bool:
        with one.guard:
            return one.progress.instead(due, time.monotonic()) is not None


__all__ = ["CoalescingCheckpointStore"]

DEFAULT_POLICY = every(events=5000, seconds=5)
"""A write costs about as much as receiving 50 events: at any event rate, 1% of the cost."""


class CoalescingCheckpointStore(ContextGuard, CheckpointStore):
    """Checkpoint store that accepts a checkpoint for every event, and writes the newest when due.

    It wraps another store. A handler that calls `partition_context.update_checkpoint(event)` for
    each event needs no change. After a crash, the events are read again that `policy` allows to be
    unsaved, and those that arrived during a write. Checkpoints are written at once before a
    partition is released, before checkpoints are listed, on `flush` and `close`, and if keyword
    arguments such as `force` are passed.

    Args:
        store: the store to write to; it is not closed.
        policy: when to write; by default after 5000 events or 5 seconds.
        write_timeout: seconds that one write may take, and that one call waits for all its writes.
        on_error: called with the partition id and the error of a write that failed, and is retried,
            or that was refused as stale. A plain function, called concurrently with handlers.
        unhealthy_after: seconds for which writes may fail while `healthy` still returns True.

    Attributes:
        store: see above.

    Raises:
        ConfigurationError: a setting is invalid.
    """

    def __init__(
        self,
        store: CheckpointStore,
        policy: Policy = DEFAULT_POLICY,
        *,
        write_timeout: float = 10.0,
        on_error: Callable[[str, Exception], object] | None = None,
        unhealthy_after: float = 60.0,
    ) -> None:
        require("policy", policy, isinstance(policy, Policy), "a policy such as every(seconds=5)")
        self.store = store
        self._write_timeout = write_timeout
        self._make_keeper = partial(
            WriteBuffer, store, policy, write_timeout, on_error, unhealthy_after
        )
        self._moving: dict[int, threading.Lock] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Reset all state: at first, and in a forked child, whose parent writes its own."""
        self._process_id = os.getpid()
        self._place: object = None
        self._keeper = self._make_keeper()

    @property
    def forward_only(self) -> bool:
        """Return whether the store below refuses a checkpoint below that of another writer."""
        return self._keeper.goes_forward_only

    @property
    def for_one_process(self) -> bool:
        """Return whether the rows of the store below are invisible to other processes."""
        return getattr(self.store, "for_one_process", False) is True

    @own_client_only
    def list_ownership(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all ownerships of a consumer group, from the store below."""
        names = fully_qualified_namespace, eventhub_name, consumer_group
        rows = list(self.store.list_ownership(*names, **kwargs))
        self._arrive()
        self._keeper.listed(rows)
        return rows

    def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        """Claim, renew or release partitions in the store below.

        Unwritten checkpoints of a partition are written before it is released, and dropped if that
        fails: the next owner reads those events again. Those of a lost partition are dropped if the
        store below lets checkpoints go back, and later ones are not written.
        """
        self._arrive()
        rows = list(checked_rows(ownership_list))
        released = [key for key, row in keyed(rows).items() if not row.get("owner_id")]
        self._keeper.give_up(released, self._write_timeout)
        won = list(self.store.claim_ownership(rows, **kwargs))
        self._keeper.claimed(rows, won)
        return won

    @own_client_only
    def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all checkpoints of a consumer group, after writing this process's own."""
        self._arrive()
        names = fully_qualified_namespace, eventhub_name, consumer_group
        self._keeper.flush_all(self._keeper.of_scope(names), self._write_timeout)
        return self.store.list_checkpoints(*names, **kwargs)

    def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        """Record how far a partition was processed, to be written when it is due.

        Args:
            checkpoint: as the SDK builds it; neither kept nor modified.
            kwargs: arguments of the store below for one write, such as `force`; such a checkpoint
                is written at once, and errors of the store are raised.

        Raises:
            InvalidRecordError: a name, id or offset is unusable, or the sequence number is not an
                int64.
        """
        if self._place != place():
            self._arrive()
        one: BufferedSession | None
        # Inlined, since it runs for every event; anything unusual is checked in full below.
        try:
            one = self._keeper.by_names[names_of(checkpoint)]
            number, offset = checkpoint["sequence_number"], checkpoint["offset"]
            is_usual = type(number) is int and LEAST_INT64 <= number <= MOST_INT64
            is_usual = is_usual and type(offset) is str and offset.isprintable()
        except (KeyError, TypeError):  # a value that is not a string may not be hashable
            is_usual = False
        if not is_usual:
            one, number, offset = self._checked(checkpoint)
        if kwargs:
            if one is None:
                self.store.update_checkpoint(dict(checkpoint), **kwargs)
            else:
                self._keeper.insist(one, Position(number, offset), kwargs)
        elif one is not None:
            finished = one.finished
            with one.guard:
                finished.newest = number, offset
                finished.count += 1
                is_due = finished.count >= one.progress.wake_count
            if is_due:
                self._keeper.wake()

    def flush(self) -> bool:
        """Write all unwritten checkpoints; return whether all of them are written."""
        self._arrive()
        return self._keeper.flush_all(self._keeper.everything(), self._write_timeout)

    def close(self) -> None:
        """Write all unwritten checkpoints; the store below stays open, and this one is reusable."""
        end = time.monotonic() + self._write_timeout
        self.flush()
        self._keeper.close(max(end - time.monotonic(), 0))
        # The next call restarts the background writer.
        self._place = None

    def stats(self) -> dict[str, PartitionStats]:
        """Return statistics of each partition, by its id.

        If partitions of several hubs or consumer groups were saved, the keys are
        `namespace/hub/group/id`.
        """
        return by_partition(self._keeper.stats())

    def healthy(self) -> bool:
        """Return whether checkpoints are being written: for a liveness probe."""
        if self._place is None:
            return not any(one.has_rest for one in self._keeper.everything())
        return self._keeper.is_healthy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _arrive(self) -> None:
        if self._place == (here := place()):
            return
        # The parent's locks may be held by threads that do not exist in this process.
        with self._moving.setdefault(os.getpid(), threading.Lock()):
            if self._process_id != os.getpid():
                self._begin_anew()
            self._keeper.start()
            self._place = here

    def _checked(self, checkpoint: Any) -> tuple[BufferedSession | None, int, str]:
        row = checked_row(checkpoint)
        key, number = key_of(row), checked_sequence_number(row.get("sequence_number"))
        offset = checked_offset(row.get("offset"), number)
        return self._keeper.one(key, row), number, offset
