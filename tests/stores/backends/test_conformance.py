"""Every store keeps the contract, on its real server and in both colours."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

import pytest

from backends import COLOURS, Backend, Colour, Place
from eventhub_checkpoints import CoalescingCheckpointStore, aio, open_store
from eventhub_checkpoints.conformance import (
    CHECKS,
    Accessors,
    Certificate,
    Outcome,
    Report,
    Verdict,
    certify,
)
from eventhub_checkpoints.conformance.contract import ONE_PROCESS, PROCESSES

ONE_TRIP = "the store claims a batch in one trip"
"""Nothing that is missing: checks of claims side by side have nothing to say of such a store."""
NOT_OURS = "the store is not on our base class"
"""What stands between the client and a store has no hooks that could fail."""
RACES = [check for check in CHECKS if check.function.__module__.endswith(".races")]


def test_the_store_keeps_the_contract(
    backend: Backend, shared_place: Place, colour: Colour, tell: Callable[[str, str], None]
) -> None:
    accessors = backend.accessors(shared_place)
    name = f"{backend.name} {colour}"
    # What processes that race can be passed: the place itself holds connections.
    opening = aio.open_store if colour == "aio" else open_store
    report = certify(partial(opening, shared_place.url), accessors, name=name)
    tell("conformance", f"{name}: {in_one_line(report)}")
    assert not report.failed, report.text()
    reaches = backend.reaches_processes
    assert report.certificate is (
        Certificate.CERTIFIED if reaches else Certificate.WITHIN_ONE_PROCESS
    ), report.text()
    known = {ONE_TRIP} if reaches else {ONE_TRIP, ONE_PROCESS}
    silent = [one for one in report.outcomes if is_silent(one) and one.reason not in known]
    unexpected = [one for one in silent if not backend.lacks_here & {*one.check.needs}]
    assert not unexpected, report.text()


def test_what_a_backend_is_said_to_lack_is_lacking(backend: Backend, shared_place: Place) -> None:
    assert not backend.lacks_here & backend.accessors(shared_place).given


def test_stores_of_both_colours_race_each_other(backend: Backend, shared_place: Place) -> None:
    colours = cycle(COLOURS)

    def make_store() -> Any:
        return shared_place.open(next(colours))

    report = certify(make_store, checks=RACES)
    assert not report.failed, report.text()


class Coalescing(CoalescingCheckpointStore):
    """Closes the store below, which nobody else holds here."""

    def close(self) -> None:
        super().close()
        self.store.close()


class AioCoalescing(aio.CoalescingCheckpointStore):
    """The same, for asyncio."""

    async def close(self) -> None:
        await super().close()
        await self.store.close()


class Wrapping:
    """Makes coalescing stores over a place, and has them write before anybody looks."""

    def __init__(self, place: Place, colour: Colour) -> None:
        self._place = place
        self._colour = colour
        self._flushes: list[Callable[[], Any]] = []

    def make(self) -> Any:
        if self._colour == "aio":
            return self._make_aio()
        store = Coalescing(self._place.open("sync"))
        self._flushes.append(store.flush)
        return store

    async def _make_aio(self) -> Any:
        store, loop = AioCoalescing(self._place.open("aio")), asyncio.get_running_loop()

        def flush() -> Any:
            return asyncio.run_coroutine_threadsafe(store.flush(), loop).result()

        self._flushes.append(flush)
        return store

    def settle(self) -> None:
        for flush in self._flushes:
            flush()

    def accessors(self, given: Accessors) -> Accessors:
        return replace(given, settle=self.settle)


@pytest.mark.parametrize("backend", ["memory", "blob", "sqlite"], indirect=True)
def test_a_coalescing_store_keeps_the_contract(
    backend: Backend, shared_place: Place, colour: Colour, tell: Callable[[str, str], None]
) -> None:
    wrapping = Wrapping(shared_place, colour)
    accessors = wrapping.accessors(backend.accessors(shared_place))
    name = f"{backend.name} {colour}, coalescing"
    # What flushes its stores here flushes none in another process, so that none can race.
    checks = [check for check in CHECKS if PROCESSES not in check.needs]
    report = certify(wrapping.make, accessors, name=name, checks=checks)
    tell("conformance", f"{name}: {in_one_line(report)}")
    assert not report.failed, report.text()
    silent = [one for one in report.outcomes if is_silent(one) and one.reason != NOT_OURS]
    unexpected = [one for one in silent if not backend.lacks_here & {*one.check.needs}]
    assert not unexpected, report.text()


def in_one_line(report: Report) -> str:
    counts = [
        f"{sum(one.verdict is verdict for one in report.outcomes)} {verdict.value.lower()}"
        for verdict in Verdict
    ]
    reasons = dict.fromkeys(one.reason for one in report.outcomes if is_silent(one))
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"{', '.join(counts)}{why}, in {sum(one.seconds for one in report.outcomes):.1f} s"


def is_silent(one: Outcome) -> bool:
    return one.verdict is Verdict.NOT_SHOWN


@pytest.mark.parametrize("failed", [True, False])
def test_the_line_of_a_report_tells_what_failed_and_why_what_was_not_shown(failed: bool) -> None:
    verdicts = [Verdict.PASSED, Verdict.FAILED if failed else Verdict.PASSED, Verdict.NOT_SHOWN]
    outcomes = [
        Outcome(check, verdict, "needs stall" if verdict is Verdict.NOT_SHOWN else "", 0.5)
        for check, verdict in zip(CHECKS, verdicts, strict=False)
    ]
    counts = "1 passed, 1 failed" if failed else "2 passed, 0 failed"
    assert in_one_line(Report("it", outcomes)) == f"{counts}, 1 not shown (needs stall), in 1.5 s"
