"""Entries of the history of checkpoints, as entities with a partition key of their own."""

from dataclasses import dataclass
from math import isfinite
from uuid import uuid4

from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.azure_storage.name_case import NameCase
from eventhub_checkpoints.stores.hook_results import HistoryEntry
from eventhub_checkpoints.stores.record_format import checkpoint_of
from eventhub_checkpoints.stores.table import protocol, rest
from eventhub_checkpoints.stores.table.rest import Entity, Key

LAST = 10**16 - 1
"""Microsecond since the epoch, of which each row key has the difference: newest entries come first.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry to store.

    Attributes:
        checkpoint: a position that is, or was, stored.
        kind: see `HistoryEntry`.
        writer: host and process that stored it; `""` if that is not known.
    """

    checkpoint: Checkpoint
    kind: str
    writer: str

    def key(self, name_case: NameCase, microsecond: int) -> Key:
        """Return the key of its entity; of two with the same time, each has its own."""
        partition = protocol.partition_key(self.checkpoint.scope, "History", name_case)
        return Key(partition, f"{LAST - microsecond:016d}-{uuid4().hex[:8]}")

    @property
    def fields(self) -> dict[str, str]:
        """Return the properties of its entity."""
        fields = {
            "partitionid": self.checkpoint.partition_id,
            "kind": self.kind,
            "writer": self.writer,
            "offset": self.checkpoint.offset,
            "sequencenumber": str(self.checkpoint.sequence_number),
        }
        if self.checkpoint.last_modified_time is not None:
            fields["modified"] = f"{self.checkpoint.last_modified_time:.7f}"
        return fields


def condition(scope: Scope, partition_id: str | None, name_case: NameCase) -> str:
    """Return the condition of the entries of a group, or of one partition of it."""
    of_group = rest.equals("PartitionKey", protocol.partition_key(scope, "History", name_case))
    if partition_id is None:
        return of_group
    return f"{of_group} and {rest.equals('partitionid', partition_id)}"


def entry_of(scope: Scope, entity: Entity) -> HistoryEntry | None:
    """Return the entry that an entity holds; None if it is none."""
    fields = entity.fields
    partition_id = fields.get("partitionid")
    if not partition_id:
        return None
    time = stored_time(fields.get("modified"), entity.modified)
    checkpoint = checkpoint_of(scope, partition_id, fields, entity.etag, time)
    if not checkpoint.is_readable:
        return None
    return HistoryEntry(checkpoint, fields.get("kind") or "", fields.get("writer") or "")


def stored_time(text: str | None, otherwise: float) -> float:
    """Return when the checkpoint of an entry was stored, if that was before the entry."""
    try:
        time = float(text or otherwise)
    except ValueError:
        return otherwise
    return time if isfinite(time) else otherwise
