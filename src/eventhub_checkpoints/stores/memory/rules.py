"""The one rule of claiming, and the one of writing a checkpoint, as the memory store runs them.

Every other backend has its server compare: `If-Match`, `WHERE etag = ..`, a script. This is the
readable original that they are held against.
"""

from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal
from eventhub_checkpoints.stores.hook_results import Conflict, Lost, Seen, Won, Written


def claim(stored: Ownership | None, proposal: Proposal, now: float) -> Won | Lost:
    """A claim wins when its etag is the stored one, or when nothing is stored.

    An etag whose row has vanished also wins: there is nobody to take the partition from.
    """
    if stored is not None and stored.etag != proposal.etag:
        return Lost(stored)
    return Won(proposal.won(now))


def write(
    stored: Checkpoint | None, checkpoint: Checkpoint, seen: str | Seen
) -> Written | Conflict:
    """A checkpoint is written over the row that was seen, or over anything when forced."""
    found = stored.version if stored else Seen.ABSENT
    expected = Seen.ABSENT if seen is Seen.UNKNOWN else seen
    if found != expected and seen is not Seen.FORCE:
        return Conflict(stored)
    return Written(checkpoint.version)
