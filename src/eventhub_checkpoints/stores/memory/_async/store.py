"""Checkpoint store in this process's memory, for tests and trials; the reference backend."""

from collections.abc import Sequence
from typing import Self, Unpack

from eventhub_checkpoints._shared.settings import StoreSettings, require, require_text
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.base import FullCheckpointStore
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.memory.rows import MemoryRows, rows_named


class MemoryCheckpointStore(
    FullCheckpointStore,
    pickle_instead="it is for one process; use another store, such as sqlite:///FILE",
):
    """Stores ownerships and checkpoints in memory, until the process ends.

    Args:
        rows: rows that several stores share, sync or async, as several clients share a server; by
            default the store has its own.
        **settings: see `StoreSettings`.
    """

    for_one_process = True

    def __init__(self, rows: MemoryRows | None = None, **settings: Unpack[StoreSettings]) -> None:
        super().__init__(**settings)
        require("rows", rows, rows is None or isinstance(rows, MemoryRows), "MemoryRows")
        self.rows = rows if rows is not None else MemoryRows()

    @classmethod
    def from_url(
        cls, url: str, *, credential: object = None, **settings: Unpack[StoreSettings]
    ) -> Self:
        """Open `memory:` (private rows) or `memory:NAME` (shared within the process)."""
        require_text("url", url, "memory: or memory:NAME")
        return cls(rows_named(url.partition(":")[2]), **settings)

    async def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return self.rows.ownerships(scope)

    async def try_claim(self, proposal: Proposal) -> Won | Lost:
        return self.rows.claim(proposal)

    async def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return self.rows.checkpoints(scope)

    async def write_checkpoint(
        self, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        return self.rows.write(checkpoint, seen)

    async def read_scopes(self) -> Sequence[Scope]:
        return self.rows.scopes()

    async def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        return self.rows.delete(scope, partition_id)
