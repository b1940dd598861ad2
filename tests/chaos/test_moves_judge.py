"""What `python -m crashes moves` counts as done twice, and what its judge does not see."""

from crashes.moves import OpenLines, twice_done
from crashes.workers.journal import Line
from crashes.workers.orders import Orders
from eventhub_checkpoints.operations.groups import CLOSED_NUMBER


def done(who: str, number: int) -> Line:
    return Line(0.0, who, "done", "0", 1, number)


def test_an_event_that_is_done_at_both_stores_is_the_moves_unless_its_worker_was_killed() -> None:
    workers = {
        name: Orders(name=name, way="handler", variant="sync", seed=0, url=url)
        for name, url in {"a": "old", "b": "old", "c": "new"}.items()
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
