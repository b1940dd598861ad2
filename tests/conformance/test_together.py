"""Checks that only wait for a limit run at the same time, and all others in their turn."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.conformance import Check, Outcome, Verdict, certify
from eventhub_checkpoints.conformance.harness import Subject
from waiting import LIMIT


def check_of(name: str, function: Callable[[Subject], object], waits: bool = False) -> Check:
    return Check(name, ("G10",), (), (), name, function, waits)


def test_checks_that_wait_do_so_together_and_are_reported_in_their_place() -> None:
    met = threading.Barrier(3, timeout=LIMIT)
    done: list[str] = []

    def meet(name: str, s: Subject) -> None:
        met.wait()  # broken after a while if they run one after the other
        done.append(name)

    def follow(name: str, s: Subject) -> None:
        done.append(name)

    def fail(s: Subject) -> None:
        met.wait()
        raise AssertionError("it waited too long")

    checks = [
        check_of("first", partial(follow, "first")),
        check_of("waiting", partial(meet, "waiting"), waits=True),
        check_of("between", partial(follow, "between")),
        check_of("failing", fail, waits=True),
        check_of("third", partial(meet, "third"), waits=True),
        check_of("last", partial(follow, "last")),
    ]
    reported: list[Outcome] = []
    report = certify(MemoryCheckpointStore, checks=iter(checks), progress=reported.append)
    assert [each.check for each in report.outcomes] == checks
    assert reported == report.outcomes
    assert [each.check.name for each in report.failed] == ["failing"]
    assert {each.verdict for each in report.outcomes} == {Verdict.PASSED, Verdict.FAILED}
    assert (done[0], sorted(done[1:3]), done[3:]) == (
        "first",
        ["third", "waiting"],
        ["between", "last"],
    )


def test_a_factory_is_never_called_twice_at_once() -> None:
    several = threading.Barrier(2)

    def make_store() -> MemoryCheckpointStore:
        with pytest.raises(threading.BrokenBarrierError):
            several.wait(0.1)  # another call would come meanwhile
        return MemoryCheckpointStore()

    met = threading.Barrier(8, timeout=LIMIT)
    checks = [check_of(str(number), lambda s: met.wait(), waits=True) for number in range(8)]
    assert certify(make_store, checks=checks).failed == []
