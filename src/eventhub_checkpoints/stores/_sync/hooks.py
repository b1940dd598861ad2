# Derived from _async/hooks.py by tools/unasync.py; edit that file.
"""Hooks that a backend implements: the four required methods, and the optional ones."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import (
    Conflict,
    Listing,
    Lost,
    ScopeRows,
    Seen,
    Won,
    Written,
)

log = logging.getLogger("eventhub_checkpoints")
Answer = Won | Lost | Exception
RESULTS: Mapping[str, tuple[type, ...]] = {
    "read_ownerships": (Listing,),
    "try_claim": (Won, Lost),
    "try_claims": (Won, Lost, Exception),
    "read_checkpoints": (Listing,),
    "write_checkpoint": (Written, Conflict),
    "map_error": (CheckpointStoreError,),
}
"""What hooks return, `try_claims` for each proposal. Another object would pass for a lost claim."""


class Hooks(ABC):
    """The four hooks that a backend must implement, the optional ones, and what it declares."""

    creates: bool = False
    """Whether `open` creates what is missing; `create` sets it."""
    forward_only: ClassVar[bool] = True
    """Whether a checkpoint below another writer's is refused; if not, `processing` does not save
    the last checkpoint of a lost partition.
    """
    makes_own_etags: ClassVar[bool] = False
    """Whether the server chooses etags and versions, so that the proposed ones are ignored."""
    for_one_process: ClassVar[bool] = False
    """Whether other processes cannot reach the rows, so that G1 and G3 hold in this process only.

    The conformance suite then races no processes, and certifies the store within one process.
    """

    @abstractmethod
    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        """Return all ownership rows of a scope; an empty scope is not an error."""

    @abstractmethod
    def try_claim(self, proposal: Proposal) -> Won | Lost:
        """Claim one partition in one atomic step.

        The claim wins if the stored row carries `proposal.etag`. If no row is stored, it is created
        exclusively: of several concurrent claims, one wins. The row then carries
        `proposal.new_etag`. Anything but a definite answer is raised.
        """

    @abstractmethod
    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        """Return all checkpoint rows of a scope, with versions; an empty scope is not an error."""

    @abstractmethod
    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        """Store one checkpoint in one atomic step, if the stored row is the one that was seen.

        `seen` is a version; `ABSENT`: no row may exist; `UNKNOWN`: treat it as `ABSENT`;
        `FORCE`: whatever is stored. The row then carries `checkpoint.version`.
        """

    def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Answer] | None:
        """Claim two or more partitions independently; return answers in the order of the proposals.

        An exception in place of an answer must be an error of this package, and concerns that
        claim only. None, the default, means that a backend cannot claim in one round trip: each
        claim is then sent by `try_claim`, concurrently.
        """
        return None

    def open(self) -> None:
        """Connect; if `creates` is set, create a missing container, tables or keyspace.

        Called once before the first use, again in a forked process or another event loop, and
        again by `create`.
        """

    def close(self) -> None:
        """Close what the store opened. May be called twice; call `super().close()` first."""

    def drop_connections(self) -> None:
        """Abandon open connections without closing them; `open` is called again.

        They belong to the parent of this forked process, or to an earlier event loop.
        """

    def confirm(self) -> None:
        """Wait until what was read is as durable as a confirmed write.

        Called before a row that was read replaces the lost answer of its write. By default nothing
        is waited for: what the backend shows, it keeps.
        """

    def identity(self, scope: Scope) -> Scope:
        """Return the canonical spelling of a scope; equal spellings are the same rows."""
        return scope.folded

    def read_spellings(self, scope: Scope) -> Sequence[ScopeRows]:
        """Return the rows of the same group under other names, by `identity`.

        By default none: a backend that stores all names in lower case cannot have any.
        """
        return ()

    def read_settings(self) -> Mapping[str, bool | None]:
        """Return the settings of the storage that matter to checkpoints; see `Examination`."""
        return {}

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """Convert a driver's error to an error of this package.

        `StoreUnavailableError` means that the outcome is unknown: the request may have been
        carried out, and is retried. Every other error is final.
        """
        kind = StoreError
        if isinstance(error, PermissionError):
            kind = StoreAccessError
        elif isinstance(error, OSError):
            kind = StoreUnavailableError
        return kind(described(error))
