# Derived from _async/batches.py by tools/unasync.py; edit that file.
"""Batches of a hub, and the commit of the positions that were handed out."""

import logging
import weakref
from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from eventhub_checkpoints._shared._sync.client_check import IterationGuard
from eventhub_checkpoints.errors import ConfigurationError, StaleCheckpointError, StoreError
from eventhub_checkpoints.receive.arrow._sync.source import IS_ASYNC, Once, Source, call
from eventhub_checkpoints.receive.arrow.plan import (
    NO_STORE,
    NO_STORE_TO_MISS,
    ONE_TABLE,
    Positions,
    Reading,
    checked_store,
    checkpoint,
    stale_count,
)
from eventhub_checkpoints.receive.columns import SCHEMA
from eventhub_checkpoints.receive.read_plan import without_checkpoints
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.stores._sync.abilities import ListsScopes

_LOGGER = logging.getLogger(__name__)


class HubBatches(IterationGuard):
    """Batches of a hub, each from one partition; the batches of a partition come in order.

    They can be iterated once.

    Attributes:
        schema: the nine columns.
    """

    schema: pa.Schema = SCHEMA
    twin = "read_batches"

    def __init__(self, reading: Reading, store: Any) -> None:
        if reading.missing == "error" and store is None:
            raise ConfigurationError(NO_STORE_TO_MISS)
        self._reading = reading
        self._owns_store = isinstance(store, str | Mapping)
        self._store = (
            open_store(store) if self._owns_store else checked_store(store, is_async=IS_ASYNC)
        )
        self._positions = Positions()
        self._opening: Once[Source] = Once()
        self._source: Source | None = None
        self._is_taken = False
        self._is_closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch, of whichever partition has one first.

        Raises:
            ConfigurationError: there is no such hub, consumer group or partition, access is
                refused, or a range ends before it begins.
            DataLossError: wanted events are not in the hub.
            HubUnavailableError: the hub did not answer, did not deliver the events it holds, or
                another receiver holds a partition by its owner level.
            StoreError: the checkpoints could not be read.
        """
        source = self._opened()
        batch = source.next() if source else None
        if batch is None:
            raise StopIteration
        self._positions.hand_out(batch)
        return batch

    def commit(self) -> dict[str, int]:
        """Save, for each partition, the position of the last batch that was handed out.

        It covers every batch handed out before, including the one being processed: commit when
        the results are safe. Batches handed out meanwhile to other threads or tasks are not
        covered. Positions already saved cost nothing.

        Returns:
            The sequence numbers saved by this call, by partition id. A partition is missing where
            another writer has saved a later position: the store logs that, and keeps it.

        Raises:
            ConfigurationError: there is no store.
            StaleCheckpointError: the same, where the store has `on_stale="raise"`; all other
                partitions are saved.
            StoreError: the store could not be written. The next commit tries again what was not
                saved.
        """
        if self._store is None:
            raise ConfigurationError(NO_STORE)
        saved: dict[str, int] = {}
        refused: StaleCheckpointError | None = None
        for partition, place in self._positions.unsettled().items():
            before = stale_count(self._store)
            row = checkpoint(self._reading.scope, partition, place)
            try:
                self._store.update_checkpoint(row)
            except StaleCheckpointError as error:
                refused = error
            else:
                if stale_count(self._store) == before:
                    saved[partition] = place.sequence_number
            self._positions.settled[partition] = place
        if refused:
            raise refused
        return saved

    def to_table(self) -> pa.Table:
        """Return all remaining batches as one table in memory.

        Raises:
            ConfigurationError: `to_table` was called before: a second table would be empty.
        """
        if self._is_taken:
            raise ConfigurationError(ONE_TABLE)
        self._is_taken = True
        batches = []
        for batch in self:
            batches.append(batch)
        return pa.Table.from_batches(batches, SCHEMA)

    def close(self) -> None:
        """Stop receiving, and close the store if it was opened here. Does not commit."""
        self._is_closed = True
        self._opening.end()
        if self._source:
            self._source.close()
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Source | None:
        """Return the source, planned and opened at the first call; None once it was closed."""
        if not self._is_closed:
            self._opening.result(self._open)
        return None if self._is_closed else self._source

    def _open(self) -> Source:
        reading = self._reading
        stored = self._checkpoints() if self._store is not None else {}
        needed = reading.scope if reading.missing == "error" else None
        plan = call(reading.wanted.plan, reading.address, stored, reading.settings, needed)
        self._positions.handed_out.update(plan.passed)
        source = self._source = Source(reading, plan.ranges)
        if self._is_closed:
            # Closed by a caller that did not wait for the plan, so there was no source to stop yet.
            source.abandon()
        # A caller that leaves a loop early and forgets to close must leave no thread behind.
        weakref.finalize(self, source.abandon)
        return source

    def _checkpoints(self) -> dict[str, Any]:
        """Return the checkpoints by partition id; log or raise why there may be none."""
        reading = self._reading
        rows = self._store.list_checkpoints(*reading.scope)
        if not rows:
            sentence = without_checkpoints(reading.scope, self._held_scopes())
            if reading.missing == "error":
                raise ConfigurationError(sentence)
            _LOGGER.warning("%s (its partitions begin as start= says)", sentence)
        return {row["partition_id"]: row for row in rows}

    def _held_scopes(self) -> list[Scope] | None:
        """Return the scopes in the store; None where it cannot list them."""
        if not isinstance(self._store, ListsScopes):
            return None
        try:
            return self._store.list_scopes()
        except StoreError:
            return None
