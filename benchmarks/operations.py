"""One operation at a time, straight to the server: what it costs the client."""

from collections.abc import Callable
from itertools import count
from typing import Any

from benchmarks.batches import BATCH, QUICK_BATCH
from benchmarks.measuring import OURS, Rounds, in_turns
from benchmarks.sides import ownership, scope, scope_of, sync_sides


def often(works: dict[str, Callable[[], Any]], quick: bool) -> Rounds:
    """Rounds of an operation that takes milliseconds."""
    in_turns(works, 0, operations=10)  # connections are opened, code is warm
    for number in count():
        yield in_turns(works, number, turns=2 if quick else 8, operations=8 if quick else 16)


def renew(quick: bool) -> Rounds:
    """Renew the ownership of one partition."""

    def work(name: str, side: Any) -> Callable[[], None]:
        rows = side.claim_ownership([ownership(name)])

        def once() -> None:
            rows[:] = side.claim_ownership(rows)

        return once

    with sync_sides() as found:
        yield from often({name: work(name, side) for name, side in found.items()}, quick)


def recheckpoint(quick: bool) -> Rounds:
    """Write the checkpoint of one partition again, each time one event further."""

    def work(name: str, side: Any) -> Callable[[], None]:
        numbers = count(1)

        def once() -> None:
            number = next(numbers)
            position = {"offset": str(100 * number), "sequence_number": number}
            side.update_checkpoint(scope(name) | {"partition_id": "0"} | position)

        return once

    with sync_sides() as found:
        for name in found:  # the bare request needs a blob that is there
            position = {"partition_id": "0", "offset": "0", "sequence_number": 0}
            found[OURS].update_checkpoint(scope(name) | position)
        yield from often({name: work(name, side) for name, side in found.items()}, quick)


def first_claim(quick: bool) -> Rounds:
    """Claim a partition that nobody has owned, each time of another group."""

    def work(name: str, side: Any) -> Callable[[], None]:
        numbers = count()
        return lambda: side.claim_ownership([ownership(f"{name}-{next(numbers)}")])

    with sync_sides() as found:
        yield from often({name: work(name, side) for name, side in found.items()}, quick)


def list_many(quick: bool) -> Rounds:
    """List the ownerships of a group of 1024 partitions."""
    size = QUICK_BATCH if quick else BATCH

    def work(side: Any, names: tuple[str, str, str]) -> Callable[[], None]:
        def once() -> None:
            assert len(side.list_ownership(*names)) == size

        return once

    with sync_sides() as found:
        rows = found[OURS].claim_ownership([ownership("all", number) for number in range(size)])
        works = {name: work(side, scope_of(rows[0])) for name, side in found.items()}
        for number in count():
            yield in_turns(works, number, turns=3)
