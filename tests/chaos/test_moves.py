"""Live moves under load, killed at many steps: a short run of `python -m crashes moves`."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from backends import Backend
from campaigns import rounds, seed
from crashes import moves
from crashes.moves import run_round
from crashes.workers import rounds as workers_rounds
from crashes.workers.nursery import Nursery
from eventhub_checkpoints.operations.move import Move

pytestmark = pytest.mark.long

QUICK = 11
"""Stride of a short run, in which a move is killed four times or more."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


def test_no_event_is_lost_or_read_twice_because_of_a_move(
    servers: Callable[[str], Backend], nursery: Nursery, tell: Callable[[str, str], None]
) -> None:
    source, target = servers("blob"), servers("postgres")
    seen: Counter[str] = Counter()
    for number in range(seed(4), seed(4) + rounds(2, 30)):
        result = run_round(source, target, nursery, number, rounds(QUICK, 1))
        assert result.problems == []
        seen += result.seen
    assert seen["taken"]
    assert seen["waited for"]
    for kind in ("events", "kills of the move", "graceful stops"):
        assert seen[kind] > 0
        tell("moves", f"{seen[kind]} {kind}")


def test_a_move_that_does_not_wait_for_what_is_begun_is_caught(
    servers: Callable[[str], Backend], nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfenced(self: Move, partition_id: str) -> bool:
        return partition_id in self._ids

    def open_as_before(*args: object) -> None:
        pass

    # Nothing is fenced at the source, and its checkpoints stay open.
    monkeypatch.setattr(Move, "_fence_source", open_as_before)
    monkeypatch.setattr(Move, "_is_quiet", unfenced)
    monkeypatch.setattr(moves, "WAYS", ("handler",))
    monkeypatch.setattr(workers_rounds, "REST_SECONDS", 20.0)
    sqlite = servers("sqlite")
    seeds = range(7, 10)
    assert any(run_round(sqlite, sqlite, nursery, seed, QUICK).problems for seed in seeds)
