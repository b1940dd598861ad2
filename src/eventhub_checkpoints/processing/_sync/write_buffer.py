# Derived from _async/write_buffer.py by tools/unasync.py; edit that file.
"""The newest checkpoint of each partition, kept until it is written."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.errors import StaleCheckpointError, StoreUnavailableError
from eventhub_checkpoints.processing._sync.checkpoint_writer import Saver, log
from eventhub_checkpoints.processing._sync.saved_position import NAMES, Saved
from eventhub_checkpoints.processing._sync.write import OnError
from eventhub_checkpoints.processing.held_partitions import Key, Tenure
from eventhub_checkpoints.processing.latest import Newest
from eventhub_checkpoints.processing.policy import Due, Policy
from eventhub_checkpoints.processing.statistics import Tally
from eventhub_checkpoints.processing.watermark import Position

Kept = Saved[Newest]
names_of = itemgetter(*NAMES)


class Keeper(Saver):
    """Keeps what is to be written of each partition, in one process.

    Args:
        store: as for a saver.
        policy: when it is written.
        write_timeout: as for a saver.
        on_error: likewise.
        unhealthy_after: likewise.

    Attributes:
        by_names: what is kept, by the names as they were spelled.
        kept: the same, however they are spelled.
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
        self.by_names: dict[tuple[Any, ...], Kept] = {}
        self.kept: dict[Key, Kept] = {}
        self._policy = policy
        self._tenure = Tenure()
        self._tallies: dict[Key, Tally] = {}
        # A sync client claims in one thread, and releases and stores checkpoints in another.
        self._guard = threading.Lock()

    def one(self, key: Key, row: Mapping[str, Any]) -> Kept | None:
        """What is kept of a partition from now on; None where it is another's."""
        with self._guard:
            tally = self._tallies.setdefault(key, Tally())
            if self._tenure.has_lost(key) and not self.goes_forward_only:
                tally.refused += 1
                log.debug("partition %s is another's: its checkpoint is not written", key[1])
                return None
            if key not in self.kept:
                names = dict(zip(NAMES, names_of(row), strict=True))
                self.kept[key] = Saved(names, Newest(), self._policy, tally)
                self.add(self.kept[key])
            return self.by_names.setdefault(names_of(row), self.kept[key])

    def of(self, keys: Iterable[Key]) -> list[Kept]:
        """What is kept of these partitions."""
        with self._guard:
            return [self.kept[key] for key in keys if key in self.kept]

    def of_scope(self, names: Iterable[object]) -> list[Kept]:
        """What is kept of a consumer group, if it is one."""
        scope = tuple(str(name).lower() for name in names)
        with self._guard:
            return [one for key, one in self.kept.items() if key[0] == scope]

    def everything(self) -> list[Kept]:
        """What is kept."""
        with self._guard:
            return [*self.kept.values()]

    def give_up(self, keys: Sequence[Key], seconds: float) -> None:
        """Write what is kept of partitions, and drop what could not be written.

        When this returns nothing of them is being written, if the store below answers. A sync
        client releases its partitions one after another, so where one could not be written the
        others are begun, and share the time.
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
        """A store that lets a checkpoint go back must be told nothing of what another owns."""
        with self._guard:
            lost = self._tenure.claimed(proposed, won)
            self._drop([] if self.goes_forward_only else lost)

    def listed(self, rows: Iterable[Any]) -> None:
        """The same, where a list shows the owners."""
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

    def insist(self, one: Kept, position: Position, kwargs: Mapping[str, Any]) -> None:
        """Write a position at once; raise what the store raises.

        It stands for all that was asked for until now. Where it fails that is unsaved as before.

        Args:
            one: the partition.
            position: any; it may be below others.
            kwargs: what the store is given besides.

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

    def _began(self, one: Kept, due: Due) -> bool:
        with one.guard:
            return one.progress.instead(due, time.monotonic()) is not None
