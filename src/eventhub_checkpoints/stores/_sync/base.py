# Derived from _async/base.py by tools/unasync.py; edit that file.
"""Base class of all checkpoint stores: the SDK's four methods over four typed hooks.

A backend subclasses `BaseCheckpointStore` and implements `read_ownerships`, `try_claim`,
`read_checkpoints` and `write_checkpoint`. Everything that is easy to get wrong is done here: the
SDK's dicts and conventions, parallel claims, retries and their consequences, checkpoints that must
not go back, clocks, releases. `docs/custom-store.md` builds a backend from scratch.
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
        operation_timeout: time limit of a list or a batch of claims, in seconds.
        write_timeout: time limit of one checkpoint or one release, in seconds.
        keep_unconfirmed: how long, in seconds since the server last confirmed it, an ownership is
            kept while its renewal is unanswered. Must be below the client's
            `partition_ownership_expiration_interval`.
        max_concurrency: claims of one batch that run at once.
        on_stale: `"log"` a checkpoint that would go back, or `"raise"` `StaleCheckpointError`.

    A closed store stays closed: every call except a release raises `StoreError`.

    Attributes:
        counters: number of events by kind: `lost_claims`, `unconfirmed_claims`,
            `stale_checkpoints`, `skipped_rows`.

    Raises:
        ConfigurationError: a setting is invalid.
    """

    def verify(self) -> None:
        """Check at start-up that ownerships and checkpoints can be read and written.

        It writes two rows, an ownership and a checkpoint, under the names `eventhub-checkpoints`,
        `verify` and `probe`, which no client uses. They are kept and overwritten the next time,
        because deleting takes a permission that a consumer need not have.

        Raises:
            StoreUnavailableError: no answer within `operation_timeout`.
            StoreAccessError: the backend refused access.
            StoreNotReadyError: the container, table or keyspace does not exist.
        """
        uninterrupted(self.settings.operation_timeout, self._verify)

    def _verify(self) -> None:
        self._ready()
        # Creating a row and overwriting it may take two permissions. Losing to another process
        # that verifies at the same time is a valid answer too.
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
