"""Live moves under load, killed at many steps: a short run, and proof that it can fail.

`tools/move_chaos.py` says what happens; `python tools/campaign.py move` runs more of it.
"""

from collections.abc import Callable

import pytest

import move_chaos
from backends import Backend
from campaigns import rounds, seed
from chaos.journal import Line
from chaos.orders import Orders
from eventhub_checkpoints.operations.move import Move
from eventhub_checkpoints.operations.positions import CLOSED_NUMBER
from move_chaos import OpenLines, run_moves, twice_done

pytestmark = pytest.mark.waits

QUICK = 11
"""Calls between two kills of a short run."""


def test_no_event_is_lost_or_read_twice_because_of_a_move(
    servers: Callable[[str], Backend], tell: Callable[[str, str], None]
) -> None:
    source, target = servers("blob"), servers("postgres")
    seen = run_moves(source, target, seed(4), rounds(2, 30), stride=rounds(QUICK, 1))
    assert seen["lost events"] == seen["done twice by the move"] == 0
    assert seen["taken"]
    assert seen["waited for"]
    for kind in ("events", "kills of the move", "graceful stops"):
        assert seen[kind] > 0
        tell("moves", f"{seen[kind]} {kind}")


def test_a_move_that_does_not_wait_for_what_is_begun_is_caught(
    servers: Callable[[str], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfenced(self: Move, partition_id: str) -> bool:
        return partition_id in self._ids

    def open_as_before(*args: object) -> None:
        pass

    # Nothing is fenced at the source, and its checkpoints stay open.
    monkeypatch.setattr(Move, "_fence_source", open_as_before)
    monkeypatch.setattr(Move, "_is_quiet", unfenced)
    monkeypatch.setattr(move_chaos, "WAYS", ("handler",))
    monkeypatch.setattr(move_chaos, "REST_SECONDS", 20.0)
    sqlite = servers("sqlite")
    with pytest.raises(AssertionError, match=r"round \d+: "):
        run_moves(sqlite, sqlite, 7, 3, stride=QUICK)


def orders(name: str, url: str) -> Orders:
    return Orders(
        name=name,
        way="handler",
        variant="sync",
        seed=0,
        connection="",
        url=url,
        journal="",
        saves_trailing=False,
        events=1,
        seconds=None,
        max_pending=1,
        max_unsaved=None,
        batch=1,
        is_apart=False,
        slowness=0.0,
        write_slowness=0.0,
        failures=0.0,
    )


def done(who: str, number: int) -> Line:
    return Line(0.0, who, "done", "0", 1, number)


def test_an_event_that_is_done_at_both_stores_is_the_moves_unless_its_worker_was_killed() -> None:
    workers = {
        name: orders(name, url) for name, url in {"a": "old", "b": "old", "c": "new"}.items()
    }
    lines = [done("a", 1), done("a", 2), done("b", 2), done("b", 3), done("c", 3), done("c", 1)]
    assert twice_done(lines, workers, "old", []) == (3, 2)
    assert twice_done(lines, workers, "old", ["a"]) == (3, 1)
    killed = [*lines, Line(0.0, "b", "kill", "-", 0, 0)]
    assert twice_done(killed, workers, "old", ["a"]) == (3, 0)


def test_closed_checkpoints_are_no_positions_for_the_judge() -> None:
    lines = [
        Line(0.0, "a", "listed", "0", 0, CLOSED_NUMBER),
        Line(0.0, "a", "listed", "1", 0, 7),
        Line(0.0, "a", "claimed", "0", 1, CLOSED_NUMBER),
        Line(0.0, "a", "closing", "0", 1, 0),
        Line(0.0, "a", "claimed", "0", 2, 7),
    ]
    assert list(OpenLines().of(lines)) == [lines[1], lines[4]]
