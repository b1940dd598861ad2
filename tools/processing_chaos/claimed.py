"""One claim as the journal tells of it, what is read again after it, and how much may be.

Without `max_unsaved` is read again, of what a claim has done, at most: by a policy of `events`, so
many and what may be in work, the `window` of its orders; by a policy of `seconds`, what was done
since then and the window. Not counted is what was done during the last two writes, the pauses after
those that failed included, or in the last `SLACK` before them or the claim's end: a busy machine
wakes nobody at once. With `max_unsaved` all counts that was begun, done or not; it is the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventhub_checkpoints._shared.deadline import LONGEST_PAUSE
from processing_chaos.orders import Orders
from processing_chaos.settings import WRITE_SECONDS

SLACK = 0.6
PATIENCE = WRITE_SECONDS + LONGEST_PAUSE + 2 * SLACK
"""Seconds after a write began within which the next one has to begin, if that did not succeed."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What was read again after a claim.

    Attributes:
        kind: of its worker.
        events: how many were done and are read again.
        counted: how many of them count for the bound.
        bound: how many may.
    """

    kind: str
    events: int
    counted: int
    bound: int


@dataclass(slots=True)
class Claimed:
    """A claim as the journal tells of it.

    Attributes:
        orders: of its worker.
        start: the position behind which it began.
        begun: events that were begun before it was closed, and when.
        repeats: whether an event was begun again, as after a connection was lost.
        done: events that were done, and when.
        failed: events that were given up.
        raised: events that a handler raised at, and that were not done since.
        has_failed_writes: whether a write has failed, and none has succeeded since.
        troubled_since: when the first write began that has not succeeded.
        tried_at: when the last write began.
        last_write: when the last one that succeeded began, counted from the first try, and ended.
        closing_at: when the client closed it.
        is_graceful: whether that was because the client stopped.
        closed_at: when it was ended in good order.
        left: events that were begun and neither done nor failed when the library had ended it.
    """

    orders: Orders
    start: int
    begun: dict[int, float] = field(default_factory=dict)
    repeats: bool = False
    done: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    raised: set[int] = field(default_factory=set)
    has_failed_writes: bool = False
    troubled_since: float | None = None
    tried_at: float = 0.0
    last_write: tuple[float, float] = (0.0, 0.0)
    closing_at: float | None = None
    is_graceful: bool = False
    closed_at: float | None = None
    left: set[int] = field(default_factory=set)

    @property
    def prefix(self) -> int:
        """The last event before which, and with which, all are done."""
        number = self.start
        while number + 1 in self.done:
            number += 1
        return number


def replay_of(claim: Claimed, position: int, read_at: float, end: float) -> Replay:
    """What is read again after a claim, and how much may be.

    Args:
        claim: it goes on, perhaps, after another has read the position.
        position: behind which that one begins.
        read_at: when it began to read that.
        end: of the claim.
    """
    orders = claim.orders
    again = {one: at for one, at in claim.done.items() if one > position and at <= read_at}
    if orders.max_unsaved is not None:
        begun = [one - position for one, at in claim.begun.items() if at <= read_at]
        counted = max([0, *begun])
        return Replay(orders.kind, len(again), counted, orders.max_unsaved)
    since, (began, ended) = end, claim.last_write
    if claim.troubled_since is not None and end < claim.tried_at + PATIENCE:
        since = min(since, claim.troubled_since)
    # What was finished during a write is for the next one, and that may just not have begun.
    if ended > since - SLACK:
        since = min(since, began)
    replays = []
    if orders.events is not None:
        counted = sum(at < since - SLACK for at in again.values())
        replays.append(Replay(orders.kind, len(again), counted, orders.events + orders.window))
    if orders.seconds is not None:
        counted = sum(at < since - SLACK - orders.seconds for at in again.values())
        replays.append(Replay(orders.kind, len(again), counted, orders.window))
    return max(replays, key=lambda one: one.counted - one.bound)


def unfinished(claim: Claimed, position: int) -> list[str]:
    """What a graceful end has left, in words."""
    found: list[str] = []
    if claim.repeats and claim.failed:
        # Which of them has failed, the number does not say.
        return found
    # A processor whose handler has raised is given its batch again, and may be stopped before.
    spared = claim.orders.batch if claim.raised else 0
    if claim.prefix > position + spared:
        found.append(f"{position} is saved, and {claim.prefix} was finished")
    # Nobody waits for what is behind one that has failed.
    if claim.orders.way == "pool" and claim.left and not claim.failed:
        found.append(f"{sorted(claim.left)[:5]} are begun and not done")
    return found


def largest(replays: Sequence[Replay]) -> dict[str, Replay]:
    """The one nearest to its bound, or farthest beyond it, by kind."""
    found: dict[str, Replay] = {}
    for one in replays:
        known = found.get(one.kind)
        if known is None or one.counted * known.bound > known.counted * one.bound:
            found[one.kind] = one
    return dict(sorted(found.items()))
