# Derived from _async/hooks.py by tools/unasync.py; edit that file.
"""What a backend fills in: four hooks, and a few with defaults."""

from abc import ABC, abstractmethod
from typing import ClassVar

from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.unreachable import LINKS, linked


class Hooks(ABC):
    """The four hooks that a backend fills in, and those that it may."""

    makes_own_etags: ClassVar[bool] = False
    """Whether the server chooses etags and versions, so that those proposed are ignored."""
    for_one_process: ClassVar[bool] = False
    """Whether the rows cannot be reached by another process, so that G1 and G3 end with this one.

    The conformance suite then races no processes, and certifies the store within one process.
    """

    @abstractmethod
    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        """All ownership rows of a scope; none is no error."""

    @abstractmethod
    def try_claim(self, proposal: Proposal) -> Won | Lost:
        """Claim one partition in one atomic step.

        The claim wins if the stored row carries `proposal.etag`. If no row is stored it is
        created, exclusively: of several who try, one wins. The row then carries
        `proposal.new_etag`. Anything but a certain answer is raised.
        """

    @abstractmethod
    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        """All checkpoint rows of a scope, each with its version; none is no error."""

    @abstractmethod
    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        """Store one checkpoint in one atomic step, if the stored row is the one that was seen.

        `seen` is a version; `ABSENT`: no row may exist; `UNKNOWN`: treat it as `ABSENT`;
        `FORCE`: whatever is stored. The row then carries `checkpoint.version`.
        """

    def open(self) -> None:
        """Connect; where `creates` is set, create what is missing: a container, tables, a keyspace.

        Called once before the first use, again in a forked process or another event loop, and
        again by `create`.
        """

    def close(self) -> None:
        """Close what the store opened. May be called twice; call `super().close()` too."""

    def drop_connections(self) -> None:
        """Use no connection that is open, and close none; `open` is called again.

        They belong to the parent of this forked process, or to an event loop that was left.
        """

    def identity(self, scope: Scope) -> Scope:
        """The spelling under which two scopes are the same rows."""
        return scope.folded

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """The driver's error as one of ours.

        `StoreUnavailableError` says that the outcome is unknown: the request may have been
        carried out, and it is tried again. Every other kind is final.
        """
        kind = StoreError
        if isinstance(error, PermissionError):
            kind = StoreAccessError
        elif isinstance(error, OSError):
            kind = StoreUnavailableError
        return kind(f"{type(error).__name__}: {masked(str(error))}")

    def hides(self, error: Exception) -> bool:
        """Whether the driver's error, or one behind it, holds a secret and must not be chained."""
        chain = linked(error, (*LINKS, "__context__"))
        return any(masked(str(one)) != str(one) for one in chain)
