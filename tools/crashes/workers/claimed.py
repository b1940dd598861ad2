"""Session as recorded in the journal, the events read again after it, and the bound for them.

Without `max_unsaved`, of the events that a session has done, at most these are read again: by a
policy of `events`, that many plus those that may be in progress, the `window` of its orders; by a
policy of `seconds`, what was done since then plus the window. Not counted is what was done during
the last two writes, including the pauses after failed ones, or in the last `SLACK` before them or
the session's end: a busy machine wakes threads late. With `max_unsaved` every started event counts,
done or not; the bound is `max_unsaved`. A loop over batches has no window: it may have been given
as many events as it commits at once.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from crashes.workers.orders import WRITE_SECONDS, Orders
from eventhub_checkpoints._shared.deadline import LONGEST_PAUSE

SLACK = 0.6
PATIENCE = WRITE_SECONDS + LONGEST_PAUSE + 2 * SLACK
"""Seconds after a write began within which the next one has to begin, if that did not succeed."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Events that were read again after a session.

    Attributes:
        kind: of its worker.
        events: number of events that were done and are read again.
        counted: number of those that count for the bound.
        bound: maximum for `counted`.
    """

    kind: str
    events: int
    counted: int
    bound: int

    @property
    def way(self) -> str:
        """Return the client and the way of saving, without what bounds it further."""
        return way_of(self.kind)


@dataclass(slots=True)
class Claimed:
    """Session as recorded in the journal.

    Attributes:
        orders: of its worker.
        start: position after which it began.
        has_begun: whether any event was started.
        begun: events that were started before it was closed, and when; of a loop over batches all.
        repeats: whether an event was started again, as after a connection was lost.
        done: events that were done, and when.
        failed: events that were given up.
        raised: events for which a handler raised, and that were not done since.
        has_failed_writes: whether a write has failed, and none has succeeded since.
        troubled_since: when the first write began that has not succeeded.
        tried_at: when the last write began.
        writes: when each successful write began, counted from the first attempt, and ended.
        closing_at: when the client closed it.
        is_graceful: whether it was closed because the client stopped.
        hands_over: whether it was closed because another consumer has asked for the partition.
        released_at: when the client was about to release it.
        closed_at: when it ended gracefully.
        left: events that were started and neither done nor failed when the library had ended it.
    """

    orders: Orders
    start: int
    has_begun: bool = False
    begun: dict[int, float] = field(default_factory=dict)
    repeats: bool = False
    done: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    raised: set[int] = field(default_factory=set)
    has_failed_writes: bool = False
    troubled_since: float | None = None
    tried_at: float = 0.0
    writes: list[tuple[float, float]] = field(default_factory=list)
    closing_at: float | None = None
    is_graceful: bool = False
    hands_over: bool = False
    released_at: float | None = None
    closed_at: float | None = None
    left: set[int] = field(default_factory=set)

    @property
    def prefix(self) -> int:
        """Return the last event up to which all are done."""
        number = self.start
        while number + 1 in self.done:
            number += 1
        return number


def replay_of(claim: Claimed, position: int, read_at: float, end: float) -> Replay:
    """Return what is read again after a session, and the bound for it.

    Args:
        claim: the session; it may continue after another one has read the position.
        position: position after which the next session begins.
        read_at: when that session began to read it.
        end: end of the session.
    """
    orders = claim.orders
    again = {one: at for one, at in claim.done.items() if one > position and at <= read_at}
    if orders.max_unsaved is not None:
        begun = [one - position for one, at in claim.begun.items() if at <= read_at]
        counted = max([0, *begun])
        return Replay(orders.kind, len(again), counted, orders.max_unsaved)
    since = end
    # It may have written again after its successor read the position.
    before = [write for write in claim.writes if write[0] < end]
    began, ended = before[-1] if before else (0.0, 0.0)
    if claim.troubled_since is not None and end < claim.tried_at + PATIENCE:
        since = min(since, claim.troubled_since)
    # Events finished during a write belong to the next one, which may not have begun yet.
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
    """Return descriptions of what a graceful end, or a hand-over, has left."""
    found: list[str] = []
    if claim.repeats and claim.failed:
        # The number does not tell which of the repeated events has failed.
        return found
    # A processor whose handler has raised gets its batch again, and may be stopped before that.
    spared = claim.orders.batch if claim.raised else 0
    if claim.prefix > position + spared:
        found.append(f"{position} is saved, and {claim.prefix} was finished")
    # Events behind a failed one are not waited for.
    if claim.orders.way == "pool" and claim.left and not claim.failed:
        found.append(f"{sorted(claim.left)[:5]} are begun and not done")
    return found


def way_of(kind: str) -> str:
    """Return the client and the way of saving of a kind, such as `aio pool`."""
    return kind.partition(",")[0]


def nearest(replays: Iterable[Replay]) -> Replay | None:
    """Return the replay nearest to its bound, or farthest beyond it; None if there is none."""
    return max(replays, key=lambda one: Fraction(one.counted, one.bound), default=None)


def largest(replays: Iterable[Replay]) -> dict[str, Replay]:
    """Return the replay nearest to its bound by kind."""
    kinds: dict[str, list[Replay]] = defaultdict(list)
    for one in replays:
        kinds[one.kind].append(one)
    return {kind: found for kind in sorted(kinds) if (found := nearest(kinds[kind]))}
