"""History of checkpoints in a table: who stored which position when."""

import time
from collections import Counter
from collections.abc import Callable

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints.errors import StoreAccessError
from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores._async.hooks import log
from eventhub_checkpoints.stores.azure_storage._async.parallel import ask_each
from eventhub_checkpoints.stores.azure_storage.name_case import NameCase
from eventhub_checkpoints.stores.history_entries import (
    CHECKPOINT,
    FULL,
    KEPT,
    REPLACED,
    REWIND,
    EntriesDue,
    key_of,
)
from eventhub_checkpoints.stores.hook_results import HistoryEntry, Listing, Seen
from eventhub_checkpoints.stores.table import history
from eventhub_checkpoints.stores.table._async.requests import TableRequests
from eventhub_checkpoints.stores.table.history import Entry
from eventhub_checkpoints.stores.table.rest import Key

DELETED_AT_ONCE = 32


class TableHistory:
    """Keeps an entry of a checkpoint after its write, at most once a minute.

    No transaction has the entities of two partition keys, so an entry may be missing after a crash.
    What fails is logged, and never fails the write.

    Args:
        requests: to the table.
        name_case: of the store.
        writer: returns host and process.
        keeps: whether writes get entries; those that are marked get theirs in any case.
    """

    def __init__(
        self,
        requests: TableRequests,
        name_case: NameCase,
        writer: Callable[[], str],
        keeps: bool,
    ) -> None:
        self._requests = requests
        self._name_case = name_case
        self._writer = writer
        self._keeps = keeps
        self._may_write = True
        self._entries = EntriesDue()
        self._kept: Counter[tuple[Scope, str]] = Counter()

    def mark(self, scope: Scope, partition_id: str) -> None:
        """Keep the next write of a partition like a rewind."""
        self._entries.mark(scope, partition_id)

    def is_due(self, checkpoint: Checkpoint, seen: str | Seen) -> bool:
        """Return whether this write gets an entry, as far as this process knows."""
        if not self._may_write or not (self._keeps or self._entries.is_marked(checkpoint)):
            return False
        return self._entries.are_due(checkpoint, seen, time.monotonic())

    def is_rewind(self, checkpoint: Checkpoint, seen: str | Seen) -> bool:
        """Return whether what this write replaces is kept, too."""
        return self._entries.is_rewind(checkpoint, seen)

    async def keep(
        self, checkpoint: Checkpoint, replaced: Checkpoint | None, *, is_rewind: bool
    ) -> None:
        """Store the entry of a checkpoint that is stored, and that of what it replaced."""
        entries = [Entry(checkpoint, REWIND if is_rewind else CHECKPOINT, self._writer())]
        if replaced is not None and replaced.is_readable:
            entries.insert(0, Entry(replaced, REPLACED, ""))
        now = time.time_ns() // 1000
        try:
            for number, entry in enumerate(entries):
                await self._requests.insert(entry.key(self._name_case, now + number), entry.fields)
            self._entries.wrote(checkpoint, time.monotonic())
            self._kept[key_of(checkpoint)] += 1
            # Also after the first: entries of other processes count, too.
            if self._kept[key_of(checkpoint)] % (FULL - KEPT) == 1:
                await self._prune(checkpoint)
        except Exception as error:
            if isinstance(error, StoreAccessError):
                self._may_write = False
            log.info("the history of checkpoints is incomplete: %s", described(error))

    async def _prune(self, checkpoint: Checkpoint) -> None:
        keys = await self._keys(checkpoint.scope, checkpoint.partition_id)
        if len(keys) >= FULL:
            await ask_each(self._requests.delete, keys[KEPT:], DELETED_AT_ONCE)

    async def _keys(self, scope: Scope, partition_id: str | None) -> list[Key]:
        """Return the keys of entries, newest first."""
        condition = history.condition(scope, partition_id, self._name_case)
        entities, _ = await self._requests.list_entities(condition, keys_only=True)
        return [entity.key for entity in entities]

    async def read(
        self, scope: Scope, partition_id: str | None, limit: int
    ) -> Listing[HistoryEntry]:
        """Return the newest entries of a group or of one partition, newest first."""
        condition = history.condition(scope, partition_id, self._name_case)
        entities, server_now = await self._requests.list_entities(condition, most=limit)
        entries = [history.entry_of(scope, entity) for entity in entities[:limit]]
        return Listing([entry for entry in entries if entry is not None], server_now)

    async def delete(self, scope: Scope, partition_id: str | None) -> None:
        """Delete the entries of a group or of one partition."""
        keys = await self._keys(scope, partition_id)
        await ask_each(self._requests.delete, keys, DELETED_AT_ONCE)
        self._entries.forget(scope, partition_id)
