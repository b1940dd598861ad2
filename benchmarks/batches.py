"""Many claims at once behind a delay, as when a consumer starts, or renews what it owns."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any

from benchmarks.measuring import SIDES, Cost, Rounds, cost_of, in_turns, turned
from benchmarks.sides import Row, aio_sides, ownership, sync_sides

DELAY_MS = 10.0
BATCH = 1024
QUICK_BATCH = 64

Claim = Callable[[list[Row]], list[Row]]
Open = Callable[[], AbstractContextManager[dict[str, Claim]]]
"""Starts a server and gives the claims of all sides on it."""


def first_claims(open_claims: Open, quick: bool) -> Rounds:
    """Claim all partitions of a group that nobody has claimed.

    Each side of each round has a server of its own: Azurite looks for a blob among all that it has,
    so it would become slower with every batch. Azure's service does not.
    """
    size = QUICK_BATCH if quick else BATCH
    for number in count():
        yield {
            side: cost_of_first_claims(open_claims, side, size) for side in turned(SIDES, number)
        }


def cost_of_first_claims(open_claims: Open, side: str, size: int) -> Cost:
    """The cost of one batch on a new server."""
    with open_claims() as claims:
        rows = [ownership(side, partition) for partition in range(size)]

        def once() -> None:
            assert len(claims[side](rows)) == size

        return cost_of(once, 1)


def renewals(open_claims: Open, quick: bool) -> Rounds:
    """Renew all partitions of a group."""
    size = QUICK_BATCH if quick else BATCH

    def work(name: str, claim: Claim) -> Callable[[], None]:
        rows = claim([ownership(name, partition) for partition in range(size)])

        def once() -> None:
            rows[:] = claim(rows)
            assert len(rows) == size

        return once

    with open_claims() as claims:
        works = {name: work(name, claim) for name, claim in claims.items()}
        for number in count():
            yield in_turns(works, number)


@contextmanager
def by_threads() -> Iterator[dict[str, Claim]]:
    """The claims of the sync sides."""
    with sync_sides(DELAY_MS) as sides:
        yield warmed({name: side.claim_ownership for name, side in sides.items()})


@contextmanager
def by_tasks() -> Iterator[dict[str, Claim]]:
    """The claims of the aio sides as plain functions, all on one event loop."""
    with asyncio.Runner() as runner:

        def claim_of(side: Any) -> Claim:
            return lambda rows: runner.run(side.claim_ownership(rows))

        opened = aio_sides(DELAY_MS)
        sides = runner.run(opened.__aenter__())
        try:
            yield warmed({name: claim_of(side) for name, side in sides.items()})
        finally:
            runner.run(opened.__aexit__(None, None, None))


def warmed(claims: dict[str, Claim]) -> dict[str, Claim]:
    """Claim a few partitions on each side, so that connections are open."""
    for name, claim in claims.items():
        claim([ownership(f"{name}-warm", partition) for partition in range(32)])
    return claims
