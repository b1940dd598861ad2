# Derived from _async/base.py by tools/unasync.py; edit that file.
"""The checkpoint store that every backend is: the SDK's four methods over four typed hooks.

A backend subclasses `BaseCheckpointStore` and fills in `read_ownerships`, `try_claim`,
`read_checkpoints` and `write_checkpoint`. Everything that a backend would get wrong is here: the
SDK's dicts and habits, parallel claims, retries and what they mean, checkpoints that do not go
back, clocks, releases. `docs/custom-store.md` builds one from nothing.
"""

from types import TracebackType
from typing import Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.client_check import ContextGuard
from eventhub_checkpoints._shared._sync.compat import uninterrupted
from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.records import RELEASED, Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._sync.checkpoints import CheckpointMethods
from eventhub_checkpoints.stores._sync.hooks import fresh_etag
from eventhub_checkpoints.stores._sync.ownership import OwnershipMethods
from eventhub_checkpoints.stores.hook_results import (
    ABSENT,
    FORCE,
    UNKNOWN,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)

__all__ = [
    "ABSENT",
    "FORCE",
    "UNKNOWN",
    "BaseCheckpointStore",
    "Checkpoint",
    "Conflict",
    "Listing",
    "Lost",
    "Ownership",
    "Proposal",
    "Scope",
    "Seen",
    "StoreSettings",
    "Won",
    "Written",
    "seconds_left",
]

PROBE = Scope("eventhub-checkpoints", "verify", "probe")
PROBE_PARTITION = "0"
PROBE_CHECKPOINT = {
    **PROBE.as_dict(),
    "partition_id": PROBE_PARTITION,
    "offset": "",
    "sequence_number": 0,
}


class BaseCheckpointStore(ContextGuard, OwnershipMethods, CheckpointMethods, CheckpointStore):
    """A checkpoint store for one `EventHubConsumerClient`, over a backend's hooks.

    Args:
        operation_timeout: seconds that a list or a batch of claims may take.
        write_timeout: seconds that one checkpoint or one release may take.
        keep_unconfirmed: seconds since the server last confirmed it that an ownership is kept
            while its renewal has no answer. Must be below the client's
            `partition_ownership_expiration_interval`.
        max_concurrency: claims of one batch that are under way at once.
        on_stale: `"log"` a checkpoint that would go back, or `"raise"` `StaleCheckpointError`.

    A store that was closed stays closed: every call raises `StoreError`, except a release.

    Attributes:
        counters: how often what happened: `lost_claims`, `unconfirmed_claims`,
            `stale_checkpoints`, `skipped_rows`.

    Raises:
        ConfigurationError: one of the settings cannot work.
    """

    def verify(self) -> None:
        """Show at start-up that ownerships and checkpoints can be read and written.

        What it writes are two rows of its own, an ownership and a checkpoint, under the names
        `eventhub-checkpoints`, `verify` and `probe`, that no client asks for. They stay, and are
        written over the next time: to delete takes a right that a consumer need not have.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        uninterrupted(self.settings.operation_timeout, self._verify)

    def _verify(self) -> None:
        self._ready()
        # To create a row and to write over it may be two rights. Where another process that
        # verifies comes first, that is an answer too.
        self._probe(None)
        rows = self.list_ownership(*PROBE)
        self._probe(rows[0]["etag"] if rows else None)
        self.list_checkpoints(*PROBE)
        version = "" if self.makes_own_etags else fresh_etag()
        record = Checkpoint.from_dict(PROBE_CHECKPOINT, version)
        seconds = self.settings.write_timeout
        uninterrupted(seconds, self._update, record, force=True)

    def _probe(self, etag: str | None) -> None:
        probe = Proposal(PROBE, PROBE_PARTITION, RELEASED, etag, fresh_etag())
        answer = (self._settle([probe]))[probe]
        if isinstance(answer, Exception):
            raise answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
