"""Many claims at once behind a delay, as when a consumer starts, or renews what it owns."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count

from benchmarks.measuring import SIDES, Cost, Open, Rounds, blocking, cost_of, in_turns, turned
from benchmarks.operations import MANY, QUICK_MANY, of_group
from benchmarks.rows import Row
from benchmarks.sides import aio_sides, sync_sides

DELAY_MS = 10.0

Claim = Callable[[list[Row]], list[Row]]
OpenClaims = Callable[[], AbstractContextManager[dict[str, Claim]]]
"""Starts a server and gives the claims of all sides on it."""


def first_claims(open_claims: OpenClaims, quick: bool) -> Rounds:
    """Claim all partitions of a group that nobody has claimed.

    Each side of each round has a server of its own: Azurite looks for a blob among all that it has,
    so it would become slower with every batch. Azure's service does not.
    """
    size = QUICK_MANY if quick else MANY
    for number in count():
        yield {
            side: cost_of_first_claims(open_claims, side, size) for side in turned(SIDES, number)
        }


def cost_of_first_claims(open_claims: OpenClaims, side: str, size: int) -> Cost:
    """The cost of one batch on a new server."""
    with open_claims() as claims:
        rows = of_group(side, size)

        def once() -> None:
            assert len(claims[side](rows)) == size

        return cost_of(once, 1)


def renewals(open_claims: OpenClaims, quick: bool) -> Rounds:
    """Renew all partitions of a group."""
    size = QUICK_MANY if quick else MANY

    def work(name: str, claim: Claim) -> Callable[[], None]:
        rows = claim(of_group(name, size))

        def once() -> None:
            rows[:] = claim(rows)
            assert len(rows) == size

        return once

    with open_claims() as claims:
        works = {name: work(name, claim) for name, claim in claims.items()}
        for number in count():
            yield in_turns(works, number)


@contextmanager
def warmed(open_sides: Open) -> Iterator[dict[str, Claim]]:
    """Give the claims of all sides, whose connections are open."""
    with open_sides() as sides:
        for name, side in sides.items():
            side.claim_ownership(of_group(f"{name}-warm", 32))
        yield {name: side.claim_ownership for name, side in sides.items()}


by_threads = partial(warmed, partial(sync_sides, DELAY_MS))
by_tasks = partial(warmed, partial(blocking, partial(aio_sides, DELAY_MS)))
