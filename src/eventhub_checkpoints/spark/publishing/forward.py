"""Positions written into any store, and never back."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.errors import ConfigurationError, StaleCheckpointError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.spark.given import answers_at_once

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class LastEvent:
    """The last event of a partition that a query has committed.

    Attributes:
        sequence_number: which event.
        offset: of the same event, opaque text; `""` where nobody saw it.
    """

    sequence_number: int
    offset: str = ""


class ForwardWriter:
    """Writes a checkpoint where it is above what the store holds, as far as is known.

    Known is what a list before the first write has shown, and what was written since then. Our
    own stores refuse besides what another writer has overtaken; then it is listed again.

    Attributes:
        stored: sequence numbers that the store holds, by partition id; None: to be asked.
        counters: `published`, of these `with_offset`; and `stale`.
    """

    def __init__(self, store: Any, scope: Scope) -> None:
        self.stored: Mapping[str, int] | None = None
        self.counters: Counter[str] = Counter()
        self._store = store
        self._scope = scope
        self._said_stale: set[str] = set()

    def write(self, partition: str, event: LastEvent) -> None:
        """Write it, or say and count that the store is further.

        Raises:
            Exception: whatever the store raises; nothing is known then.
        """
        stored = self._known()
        if event.sequence_number < stored.get(partition, -1):
            self._stale(partition, event, stored[partition])
        elif event.sequence_number > stored.get(partition, -1):
            self._write(partition, event)

    def _known(self) -> Mapping[str, int]:
        if self.stored is None:
            rows = self._store.list_checkpoints(*self._scope)
            numbers = {row["partition_id"]: row["sequence_number"] for row in rows}
            self.stored = {one: number for one, number in numbers.items() if number is not None}
        return self.stored

    def _write(self, partition: str, event: LastEvent) -> None:
        checkpoint = {
            **self._scope.as_dict(),
            "partition_id": partition,
            "sequence_number": event.sequence_number,
            "offset": event.offset,
        }
        if is_refused(self._store, checkpoint):
            self.stored = None
            self._stale(partition, event, "a later one")
            return
        self.stored = {**self._known(), partition: event.sequence_number}
        self.counters["published"] += 1
        self.counters["with_offset"] += bool(event.offset)
        self._said_stale.discard(partition)

    def _stale(self, partition: str, event: LastEvent, stored: int | str) -> None:
        self.counters["stale"] += 1
        if partition in self._said_stale:
            return
        self._said_stale.add(partition)
        _LOGGER.warning(
            "checkpoint %s of partition %s of %s is not published, for the store is at %s. Where "
            "the query was rewound or the hub created again, reset the checkpoints and make a new "
            "publisher",
            *(event.sequence_number, partition, self._scope, stored),
        )


def is_refused(store: Any, checkpoint: Mapping[str, Any]) -> bool:
    """Write a checkpoint; whether the store would not go back.

    Most stores only log it, and count. Another user of the same store object can be counted
    here too, which costs a list.
    """
    counters: Mapping[str, int] = getattr(store, "counters", {})
    before = counters.get("stale_checkpoints", 0)
    try:
        store.update_checkpoint(checkpoint)
    except StaleCheckpointError:
        return True
    return counters.get("stale_checkpoints", 0) > before


def opened(store_or_url: CheckpointStore | str | Mapping[str, Any]) -> tuple[Any, bool]:
    """A store to write to, and whether it was opened here.

    Raises:
        ConfigurationError: it is no store of the synchronous kind.
    """
    if isinstance(store_or_url, str | Mapping):
        return open_store(store_or_url), True
    if not answers_at_once(store_or_url, "update_checkpoint"):
        raise ConfigurationError(
            f"{type(store_or_url).__name__} cannot be written from the publisher's thread; "
            "expected a store of the synchronous kind (not of .aio), or the URL of one"
        )
    return store_or_url, False
