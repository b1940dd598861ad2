"""The operations, straight to the server: what each costs the client, on whatever sides."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from typing import Any

from benchmarks.measuring import (
    BARE,
    OFFICIAL,
    OURS,
    Cost,
    Open,
    OpenAio,
    Rounds,
    Sides,
    cost_of,
    in_turns,
    on_a_loop,
    turned,
)
from benchmarks.rows import Row, checkpoint, ownership, scope_of
from eventhub_checkpoints import HandoverStore

MANY = 1024
QUICK_MANY = 64

PAGE = 5000
"""Most blobs of one answer. Source: Azure's reference of List Blobs, `maxresults`."""

EXPIRES_AFTER = 180.0
"""Seconds: the client's default."""

Work = Callable[[], Any]
Prepare = Callable[[str, Any], Work]
"""Makes what a side, by its name, does again and again."""
OpenCounted = Callable[[], AbstractContextManager[tuple[Sides, Callable[[], int]]]]
"""Gives all sides, and how often one of them has waited for an answer until now."""


def often(works: dict[str, Work], quick: bool, size: int = 1) -> Rounds:
    """Rounds of an operation that is quick, or of calls that have `size` of them."""
    in_turns(works, 0, operations=10)  # connections are opened, code is warm
    # In a short row the processor's caches would still be another side's.
    turns, operations = (2, 8) if quick else (2, 200)
    if size > 1:
        turns, operations = 1 if quick else 4, 1
    for number in count():
        yield in_turns(works, number, turns=turns, operations=operations)


def renew(open_sides: Open, quick: bool, size: int = 1) -> Rounds:
    """Renew the ownership of one partition, or of several in one call."""

    def work(name: str, side: Any) -> Work:
        rows = side.claim_ownership(of_group(name, size))

        def once() -> None:
            rows[:] = side.claim_ownership(rows)
            assert len(rows) == size

        return once

    with open_sides() as found:
        yield from often({name: work(name, side) for name, side in found.items()}, quick, size)


def recheckpoint(open_sides: Open, quick: bool) -> Rounds:
    """Write the checkpoint of one partition again, each time one event further."""

    def work(name: str, side: Any) -> Work:
        numbers = count()
        return lambda: side.update_checkpoint(checkpoint(name, 0, next(numbers)))

    with open_sides() as found:
        yield from often({name: work(name, side) for name, side in found.items()}, quick)


def first_claims(open_sides: Open, quick: bool, size: int = 1) -> Rounds:
    """Claim a partition that nobody has owned, or several, each time of another group."""
    with open_sides() as found:
        works = {name: claiming(name, side, size) for name, side in found.items()}
        yield from often(works, quick, size)


def balance(open_sides: Open, quick: bool, size: int, hands_over: bool) -> Rounds:
    """List the ownerships of a group, and renew all of them: a round of load balancing."""
    with open_sides() as found:
        works = {name: balancing(name, side, size, hands_over) for name, side in found.items()}
        yield from often(works, quick, size)


def balancing(name: str, side: Any, size: int, hands_over: bool) -> Work:
    """Does a round, ours with a `HandoverStore` or without; bare calls list what ours own."""
    if hands_over and name.endswith(OURS):
        side = HandoverStore(side, expires_after=EXPIRES_AFTER)
    rows = list(side.claim_ownership(of_group(name, size)))
    names = scope_of(ownership(name.replace(BARE, OURS)))

    def once() -> None:
        assert len(side.list_ownership(*names)) == size
        rows[:] = side.claim_ownership(rows)
        assert len(rows) == size

    return once


def trips(open_counted: OpenCounted, quick: bool, prepare: Prepare) -> Rounds:
    """How often some work waits for an answer."""
    with open_counted() as (found, count_now):
        works = {name: prepare(name, side) for name, side in found.items()}
        # Until statements are prepared; official Blob has none, and takes long.
        in_turns({name: work for name, work in works.items() if name != OFFICIAL}, 0, operations=10)
        while True:
            yield {name: counted(work, count_now) for name, work in works.items()}


def claiming(name: str, side: Any, size: int) -> Work:
    """Claims partitions of a new group, each time that it is called."""
    numbers = count()

    def once() -> None:
        assert len(side.claim_ownership(of_group(f"{name}-{next(numbers)}", size))) == size

    return once


def counted(work: Work, count_now: Callable[[], int]) -> Cost:
    """What it cost to do it once."""
    before = count_now()
    cost = cost_of(work, 1)
    return replace(cost, trips=count_now() - before)


def list_many(open_sides: Open, quick: bool) -> Rounds:
    """List the ownerships of a group of 1024 partitions; bare calls list what ours have claimed."""
    size = QUICK_MANY if quick else MANY

    def work(name: str, side: Any) -> Work:
        group = name.replace(BARE, OURS)
        if group == name:
            for rows in batches(of_group(name, size), 64):
                side.claim_ownership(rows)
        names = scope_of(ownership(group))

        def once() -> None:
            assert len(side.list_ownership(*names)) == size

        return once

    with open_sides() as found:
        works = {name: work(name, side) for name, side in found.items()}
        for number in count():
            yield in_turns(works, number, turns=3)


def stalls(open_sides: OpenAio, quick: bool) -> Rounds:
    """List a full page of ownerships, which all sides read from what ours have claimed."""
    with on_a_loop(open_sides()) as (run, found):
        for rows in batches(of_group(OURS, QUICK_MANY if quick else PAGE), 64):
            run(found[OURS].claim_ownership(rows))
        names = scope_of(ownership(OURS))

        def watched(side: Any) -> Cost:
            longest = 0.0

            def once() -> None:
                nonlocal longest
                longest = run(longest_stall(side.list_ownership(*names)))

            return replace(cost_of(once, 1), stall=longest)

        for number in count():
            yield {name: watched(found[name]) for name in turned([*found], number)}


async def longest_stall(work: Coroutine[Any, Any, Any]) -> float:
    """Return the longest time in seconds for which the event loop ran nothing but this."""
    longest = 0.0
    task = asyncio.create_task(work)
    last = time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest


def writes(open_sides: OpenAio, quick: bool, tasks: int) -> Rounds:
    """Write checkpoints in so many tasks at once, each those of one partition."""
    each = 2 if quick else max(512 // tasks, 16)

    def work(run: Any, name: str, side: Any) -> Work:
        numbers = [count() for _ in range(tasks)]

        async def one(partition: int) -> None:
            for _ in range(each):
                number = next(numbers[partition])
                await side.update_checkpoint(checkpoint(name, partition, number))

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as group:
                for partition in range(tasks):
                    group.create_task(one(partition))

        return lambda: run(all_of_them())

    with on_a_loop(open_sides()) as (run, found):
        works = {name: work(run, name, side) for name, side in found.items()}
        in_turns(works, 0)
        for number in count():
            yield in_turns(works, number, turns=1 if quick else 2, each=tasks * each)


def of_group(group: str, size: int) -> list[Row]:
    """Proposals for the partitions of a group."""
    return [ownership(group, partition) for partition in range(size)]


def batches(rows: list[Row], size: int) -> Iterator[list[Row]]:
    """The rows, so many at a time."""
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
