# Derived from _async/coalescing.py by tools/unasync.py; edit that file.
"""Checkpoint store that coalesces writes."""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.client_check import ClosingContext, own_client_only
from eventhub_checkpoints._shared._sync.compat import loop_key
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.per_process import PerProcess
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.settings import require
from eventhub_checkpoints._shared.wrapping import require_wrappable
from eventhub_checkpoints.errors import StaleCheckpointError, StoreUnavailableError
from eventhub_checkpoints.processing._sync.checkpoint_writer import (
    NAMES,
    CheckpointWriter,
    OnError,
    SessionProgress,
    log,
)
from eventhub_checkpoints.processing.policy import Due, Policy, every
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally, by_partition
from eventhub_checkpoints.processing.watermark import Latest, Position
from eventhub_checkpoints.processing.write_state import HeldPartitions, Key, key_of, keyed
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

DEFAULT_COALESCING_POLICY = every(events=5000, seconds=5)
"""A write costs about as much as receiving 50 events: 1% of the cost if 5000 events come in 5 s."""


class WriteBuffer(CheckpointWriter):
    """Newest unwritten checkpoint of each partition, in one process.

    Attributes:
        by_names: sessions, by the names as spelled by the caller, without those of lost partitions.
        sessions: the same sessions, by the names regardless of case.
    """

    def __init__(
        self,
        policy: Policy,
        store: CheckpointStore,
        write_timeout: float,
        on_error: OnError | None,
        unhealthy_after: float,
    ) -> None:
        super().__init__(store, write_timeout, on_error, unhealthy_after)
        self.by_names: dict[tuple[Any, ...], BufferedSession] = {}
        self.sessions: dict[Key, BufferedSession] = {}
        self._policy = policy
        self._held = HeldPartitions()
        self._tallies: dict[Key, Tally] = {}
        # A sync client claims in one thread, and releases and stores checkpoints in another.
        self._guard = threading.Lock()

    def session(self, key: Key, row: Mapping[str, Any]) -> BufferedSession | None:
        """Return the session of a partition, created if needed; None if another owns it."""
        with self._guard:
            tally = self._tallies.setdefault(key, Tally())
            if self._held.has_lost(key) and not self.goes_forward_only:
                tally.refused += 1
                log.debug("partition %s is another's: its checkpoint is not written", key[1])
                return None
            if key not in self.sessions:
                names = dict(zip(NAMES, names_of(row), strict=True))
                self.sessions[key] = SessionProgress(names, Latest(), self._policy, tally)
                self.add(self.sessions[key])
            if not self._held.has_lost(key):
                self.by_names[names_of(row)] = self.sessions[key]
            return self.sessions[key]

    def sessions_of(self, scope: tuple[str, ...] | None = None) -> list[BufferedSession]:
        """Return the sessions of a consumer group, by its names in lower case; None: all."""
        with self._guard:
            return [each for key, each in self.sessions.items() if scope in (None, key[0])]

    def give_up(self, keys: Sequence[Key], seconds: float) -> None:
        """Write the checkpoints of released partitions, and drop what could not be written.

        When this returns, none of them is being written, if the store below answers. A sync client
        releases its partitions one after another, so if one could not be written, writing of the
        others is started, and they share the time.
        """
        with self._guard:
            leaving = [self.sessions[key] for key in keys if key in self.sessions]
        now = time.monotonic()
        begun = [each.flushing.of(each.watermark.count, now) for each in leaving]
        end = max(begun, default=now) + seconds
        if not self.flush_all(leaving, end - now):
            now, others = time.monotonic(), [*(set(self.sessions_of()) - set(leaving))]
            for each in others:
                each.flushing.of(each.watermark.count, now)
            self.begin_flush(others, seconds)
        with self._guard:
            self._held.released(keys)
            self._drop(keys)
        for each in leaving:
            self.finish(each, end - time.monotonic(), flushes=False)

    def claimed(self, proposed: Iterable[Any], won: Iterable[Any]) -> None:
        """Leave the partitions whose claims were lost."""
        with self._guard:
            lost = self._leave(self._held.claimed(proposed, won))
        self.begin_flush(lost, self._write_timeout)

    def listed(self, rows: Iterable[Any]) -> None:
        """Leave the partitions that others own."""
        with self._guard:
            lost = self._leave(self._held.listed(rows))
        self.begin_flush(lost, self._write_timeout)

    def is_lost(self, session: BufferedSession) -> bool:
        """Return whether another client owns the partition, or it was released."""
        with self._guard:
            return self._held.has_lost(key_of(session.names))

    def _leave(self, keys: Iterable[Key]) -> list[BufferedSession]:
        """Return the sessions to write at once; drop them if the store allows rewinds.

        A checkpoint that waited until it is due could undo a reset that has taken the partition.
        """
        if not self.goes_forward_only:
            self._drop(keys)
            return []
        leaving = [self.sessions[key] for key in keys if key in self.sessions]
        self._forget_names(leaving)
        return leaving

    def _forget_names(self, sessions: Collection[BufferedSession]) -> None:
        if sessions:
            gone = {*sessions}
            self.by_names = {
                names: each for names, each in self.by_names.items() if each not in gone
            }

    def _drop(self, keys: Iterable[Key]) -> None:
        dropped = {self.sessions.pop(key) for key in keys if key in self.sessions}
        self._forget_names(dropped)
        for session in dropped:
            self.end(session)
            if session.unsaved:
                log.warning(
                    "partition %s was left before its last %d checkpoints were written",
                    session.partition_id,
                    session.unsaved,
                )

    def write_now(
        self, session: BufferedSession, position: Position, kwargs: Mapping[str, Any]
    ) -> None:
        """Write any position at once, with arguments of the store; raise what the store raises.

        It stands for all checkpoints so far; if the write fails, they remain unsaved.

        Raises:
            StoreUnavailableError: another write did not end within `write_timeout`.
        """
        progress, latest = session.progress, session.watermark
        due, end = Due(latest.count, position), time.monotonic() + self._write_timeout
        while not self._begin_write(session, due):
            if not session.until(lambda: not progress.is_writing, end - time.monotonic()):
                raise StoreUnavailableError(
                    f"a checkpoint of partition {session.partition_id!r} is still being written"
                )
        try:
            self.put(session, position, **kwargs)
        except BaseException as error:
            with session.guard:
                is_refusal = isinstance(error, StaleCheckpointError)
                progress.was_given_up(time.monotonic(), is_refusal=is_refusal)
            raise
        else:
            with session.guard:
                progress.was_saved(time.monotonic())
            latest.at_once = due.count, position
        finally:
            session.changed()
            self.wake()

    def _begin_write(self, session: BufferedSession, due: Due) -> bool:
        with session.guard:
            return session.progress.instead(due, time.monotonic()) is not None


class CoalescingCheckpointStore(
    OfOneProcess,
    ClosingContext,
    CheckpointStore,
    pickle_instead="pass the URL of its store, and create both in the other process",
):
    """Checkpoint store that accepts a checkpoint for every event, and writes the newest when due.

    It wraps another store. A handler that calls `partition_context.update_checkpoint(event)` for
    each event needs no change. After a crash, the events are read again that `policy` allows to be
    unsaved, and those that arrived during a write. Checkpoints are written at once before a
    partition is released, when it is lost, before checkpoints are listed, on `flush` and `close`,
    and if keyword arguments such as `force` are passed.

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
        ConfigurationError: a setting is invalid, or `store` is a `HandoverStore`, which has to be
            the outermost.
    """

    @with_checked_arguments
    def __init__(
        self,
        store: CheckpointStore,
        policy: Policy = DEFAULT_COALESCING_POLICY,
        *,
        write_timeout: float = 10.0,
        on_error: Callable[[str, Exception], object] | None = None,
        unhealthy_after: float = 60.0,
    ) -> None:
        require("policy", policy, isinstance(policy, Policy), "a policy such as every(seconds=5)")
        require_wrappable(self, store)
        self.store = store
        self._write_timeout = write_timeout
        self._make_buffer = partial(
            WriteBuffer, policy, store, write_timeout, on_error, unhealthy_after
        )
        self._moving = PerProcess(threading.Lock)
        self._reset()

    def _reset(self) -> None:
        """Reset all state: at first, and in a forked child, whose parent writes its own."""
        self._process_id = os.getpid()
        self._loop_key: object = None
        self._buffer = self._make_buffer()

    @own_client_only
    @with_checked_arguments
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
        self._enter_loop()
        self._buffer.listed(rows)
        return rows

    def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        """Claim, renew or release partitions in the store below.

        Unwritten checkpoints of a partition are written before it is released, and dropped if that
        fails: the next owner reads those events again. If a claim or a list shows that a partition
        is lost, its unwritten checkpoints, and any later ones, are written at once in the
        background; they are dropped instead if the store below lets checkpoints go back.
        """
        self._enter_loop()
        rows = list(checked_rows(ownership_list))
        released = [key for key, row in keyed(rows).items() if not row.get("owner_id")]
        self._buffer.give_up(released, self._write_timeout)
        won = list(self.store.claim_ownership(rows, **kwargs))
        self._buffer.claimed(rows, won)
        return won

    @own_client_only
    @with_checked_arguments
    def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        """Return all checkpoints of a consumer group, after writing this process's own."""
        self._enter_loop()
        names = fully_qualified_namespace, eventhub_name, consumer_group
        folded = tuple(str(name).lower() for name in names)
        self._buffer.flush_all(self._buffer.sessions_of(folded), self._write_timeout)
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
        if self._loop_key != loop_key():
            self._enter_loop()
        session: BufferedSession | None
        # Inlined, since it runs for every event; anything unusual is checked in full below.
        try:
            session = self._buffer.by_names[names_of(checkpoint)]
            number, offset = checkpoint["sequence_number"], checkpoint["offset"]
            is_usual = type(number) is int and LEAST_INT64 <= number <= MOST_INT64
            is_usual = is_usual and type(offset) is str and offset.isprintable()
        except (KeyError, TypeError):  # a value that is not a string may not be hashable
            is_usual = False
        if not is_usual:
            session, number, offset = self._checked(checkpoint)
        if kwargs:
            if session is None:
                self.store.update_checkpoint(dict(checkpoint), **kwargs)
            else:
                self._buffer.write_now(session, Position(number, offset), kwargs)
        elif session is not None:
            # Without a lock, for speed: one tuple replaces another. If another thread ends the
            # session at this moment, the session writes no more, and the next owner reads the event
            # again.
            latest = session.watermark
            count = next(latest.counter)
            latest.newest = count, number, offset
            if count >= session.progress.wake_count:
                self._buffer.wake()
            elif not is_usual and self._buffer.is_lost(session):
                self._buffer.begin_flush([session], self._write_timeout)

    def flush(self) -> bool:
        """Write all unwritten checkpoints; return whether all of them are written."""
        self._enter_loop()
        return self._buffer.flush_all(self._buffer.sessions_of(), self._write_timeout)

    def close(self) -> None:
        """Write all unwritten checkpoints; the store below stays open, and this one is reusable."""
        end = time.monotonic() + self._write_timeout
        self.flush()
        self._buffer.close(max(end - time.monotonic(), 0))
        # The next call restarts the background writer.
        self._loop_key = None

    def stats(self) -> dict[str, PartitionStats]:
        """Return statistics of each partition that was saved and not released, by its id.

        If partitions of several hubs or consumer groups are among them, the keys are
        `namespace/hub/group/id`.
        """
        return by_partition(self._buffer.stats())

    def healthy(self) -> bool:
        """Return whether checkpoints are being written: for a liveness probe."""
        if self._loop_key is None:
            return not any(each.unsaved for each in self._buffer.sessions_of())
        return self._buffer.is_healthy()

    def _enter_loop(self) -> None:
        if self._loop_key == (current := loop_key()):
            return
        with self._moving.value:
            if self._process_id != os.getpid():
                self._reset()
            self._buffer.start()
            self._loop_key = current

    def _checked(self, checkpoint: Any) -> tuple[BufferedSession | None, int, str]:
        row = checked_row(checkpoint)
        key, number = key_of(row), checked_sequence_number(row.get("sequence_number"))
        offset = checked_offset(row.get("offset"), number)
        return self._buffer.session(key, row), number, offset
