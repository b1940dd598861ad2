"""Every store keeps the contract, on its real server, sync and async."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from typing import Any

import pytest

from backends import BACKENDS, VARIANTS, Backend, Place, Variant
from campaigns import IS_CAMPAIGN
from eventhub_checkpoints import (
    CoalescingCheckpointStore,
    HandoverStore,
    aio,
    open_store,
)
from eventhub_checkpoints.conformance import (
    CHECKS,
    Accessors,
    Certificate,
    Certifier,
    Check,
    Outcome,
    Report,
    Verdict,
    certify,
)
from eventhub_checkpoints.conformance.contract import ONE_PROCESS, PROCESSES

ONE_TRIP = "the store claims a batch in one trip"
"""Not a gap: checks of concurrent claims do not apply to such a store."""
NOT_OURS = "the store is not on our base class"
"""A coalescing store has no hooks that could fail."""
EXPIRY = 60.0
AT_ONCE = 1e-9
"""Every ownership has expired when another asks for it, so nobody is asked."""
TAKES_FROM_A_LIVE_OWNER = {
    "a_zombies_checkpoint_is_refused",
    "a_zombie_of_the_first_checkpoint_is_refused",
    "a_checkpoint_above_a_strangers_is_stored",
    "a_new_owner_may_start_again_at_zero",
    "the_list_after_a_claim_clears_the_floor",
    "listed_rows_can_be_claimed_as_they_are",
    "a_late_release_spares_a_newer_claim",
    "a_strangers_row_is_taken_by_its_etag_only",
}
"""Checks that begin with what a `HandoverStore` is there to prevent."""
RACES = [check for check in CHECKS if check.function.__module__.endswith(".races")]
IN_ONE_PROCESS = [check for check in CHECKS if PROCESSES not in check.needs]

every_check = partial(pytest.mark.parametrize, "check", ids=lambda check: check.name)


@dataclass
class Suite:
    """The checks on one store, each of which runs once; and what may not be shown of it."""

    name: str
    opening: Callable[[], tuple[Callable[[], Any], Accessors]]
    checks: Sequence[Check]
    not_shown: Callable[[Outcome], bool]
    certifier: Certifier | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def outcome(self, check: Check) -> Outcome:
        if check.name not in self.outcomes:
            if self.certifier is None:
                self.certifier = Certifier(*self.opening()).__enter__()
            self.outcomes[check.name] = self.certifier.outcome(check)
        return self.outcomes[check.name]

    def report(self) -> Report:
        return Report(self.name, [self.outcome(check) for check in self.checks])

    def passes(self, check: Check) -> None:
        outcome = self.outcome(check)
        assert outcome.verdict is not Verdict.FAILED, f"{check.sentence} But: {outcome.reason}"
        assert outcome.verdict is Verdict.PASSED or self.not_shown(outcome), outcome.reason

    def close(self) -> None:
        if self.certifier is not None:
            self.certifier.__exit__(None, None, None)
            self.certifier = None


@pytest.fixture(scope="module")
def suites() -> Iterator[Callable[[str, Callable[[], Suite]], Suite]]:
    """Gives the suite of a name; the processes that race are those of the latest one only."""
    known: dict[str, Suite] = {}

    def suite(name: str, make: Callable[[], Suite]) -> Suite:
        if name not in known:
            for earlier in known.values():
                earlier.close()
            known[name] = make()
        return known[name]

    yield suite
    for each in known.values():
        each.close()


@pytest.fixture
def suite(backend: Backend, shared_place: Place, variant: Variant, suites: Any) -> Suite:
    name = f"{backend.name} {variant}"
    known = {ONE_TRIP} if backend.reaches_processes else {ONE_TRIP, ONE_PROCESS}

    def not_shown(outcome: Outcome) -> bool:
        return outcome.reason in known or bool(backend.lacks_here & {*outcome.check.needs})

    # The processes that race cannot be passed the place, which holds connections.
    make_store = partial(aio.open_store if variant == "aio" else open_store, shared_place.url)

    def opening() -> tuple[Callable[[], Any], Accessors]:
        return make_store, backend.accessors(shared_place)

    return suites(name, lambda: Suite(name, opening, CHECKS, not_shown))


@every_check(CHECKS)
def test_the_store_keeps_the_contract(suite: Suite, check: Check) -> None:
    suite.passes(check)


def test_the_store_is_certified(
    backend: Backend, suite: Suite, tell: Callable[[str, str], None]
) -> None:
    report = suite.report()
    tell("conformance", f"{suite.name}: {in_one_line(report)}")
    assert report.certificate is (
        Certificate.CERTIFIED if backend.reaches_processes else Certificate.WITHIN_ONE_PROCESS
    ), report.text()


def test_what_a_backend_is_said_to_lack_is_lacking(backend: Backend, shared_place: Place) -> None:
    assert not backend.lacks_here & backend.accessors(shared_place).given


def test_sync_and_async_stores_race_each_other(backend: Backend, shared_place: Place) -> None:
    variants = cycle(VARIANTS)

    def make_store() -> Any:
        return shared_place.open(next(variants))

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
    """Makes coalescing stores over a place, and flushes them before each list."""

    def __init__(self, place: Place, variant: Variant) -> None:
        self._place = place
        self._variant = variant
        self._flushes: list[Callable[[], Any]] = []

    def make(self) -> Any:
        if self._variant == "aio":
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


@pytest.fixture
def coalescing(backend: Backend, shared_place: Place, variant: Variant, suites: Any) -> Suite:
    name = f"{backend.name} {variant}, coalescing"

    def not_shown(outcome: Outcome) -> bool:
        return outcome.reason == NOT_OURS or bool(backend.lacks_here & {*outcome.check.needs})

    def opening() -> tuple[Callable[[], Any], Accessors]:
        wrapping = Wrapping(shared_place, variant)
        return wrapping.make, replace(backend.accessors(shared_place), settle=wrapping.settle)

    # `settle` flushes no store of another process, so none can race.
    return suites(name, lambda: Suite(name, opening, IN_ONE_PROCESS, not_shown))


wrapped = pytest.mark.parametrize("backend", ["memory", "blob", "sqlite"], indirect=True)


@every_check(IN_ONE_PROCESS)
@wrapped  # below, so that all checks of one store follow each other
def test_a_coalescing_store_keeps_the_contract(coalescing: Suite, check: Check) -> None:
    coalescing.passes(check)


@wrapped
def test_no_check_of_a_coalescing_store_fails(
    coalescing: Suite, tell: Callable[[str, str], None]
) -> None:
    report = coalescing.report()
    tell("conformance", f"{coalescing.name}: {in_one_line(report)}")
    assert not report.failed, report.text()


class HandingOver(HandoverStore):
    """Closes the store below, which nobody else holds here."""

    def close(self) -> None:
        self.store.close()  # type: ignore[attr-defined]


class AioHandingOver(aio.HandoverStore):
    """The same, for asyncio."""

    async def close(self) -> None:
        await self.store.close()  # type: ignore[attr-defined]


TAKING = [check for check in IN_ONE_PROCESS if check.name in TAKES_FROM_A_LIVE_OWNER]
ASKING = [check for check in IN_ONE_PROCESS if check not in TAKING]


@pytest.fixture
def handing_over(
    backend: Backend, shared_place: Place, variant: Variant, suites: Any
) -> Callable[[Sequence[Check], float], Suite]:
    """Gives a suite of stores with hand-over, by checks and seconds until an ownership expires."""

    def not_shown(outcome: Outcome) -> bool:
        return outcome.reason == NOT_OURS or bool(backend.lacks_here & {*outcome.check.needs})

    def suite(checks: Sequence[Check], expires_after: float) -> Suite:
        def make() -> Any:
            if variant == "aio":
                return make_aio()
            return HandingOver(shared_place.open("sync"), expires_after=expires_after)

        async def make_aio() -> Any:
            return AioHandingOver(shared_place.open("aio"), expires_after=expires_after)

        def opening() -> tuple[Callable[[], Any], Accessors]:
            return make, backend.accessors(shared_place)

        name = f"{backend.name} {variant}, hand-over, {len(checks)} checks, {expires_after:g} s"
        return suites(name, lambda: Suite(name, opening, checks, not_shown))

    return suite


hands_over = pytest.mark.parametrize(
    ("backend", "variant"),
    [(name, variant) for name in BACKENDS for variant in VARIANTS]
    if IS_CAMPAIGN
    else [*zip(BACKENDS, cycle(VARIANTS), strict=False)],
    indirect=["backend"],
)


@every_check(IN_ONE_PROCESS)
@hands_over
def test_a_store_with_hand_over_keeps_the_contract(handing_over: Any, check: Check) -> None:
    """Those that take a partition of another do so when it has expired."""
    suite = handing_over(TAKING, AT_ONCE) if check in TAKING else handing_over(ASKING, EXPIRY)
    suite.passes(check)


@hands_over
def test_no_check_of_a_store_with_hand_over_fails(
    handing_over: Any, tell: Callable[[str, str], None]
) -> None:
    for suite in handing_over(ASKING, EXPIRY), handing_over(TAKING, AT_ONCE):
        report = suite.report()
        tell("conformance", f"{suite.name}: {in_one_line(report)}")
        assert not report.failed, report.text()


@pytest.mark.parametrize("backend", ["memory"], indirect=True)
def test_no_store_with_hand_over_takes_a_partition_of_a_live_owner(handing_over: Any) -> None:
    report = handing_over(TAKING, EXPIRY).report()
    assert {each.check.name for each in report.failed} == TAKES_FROM_A_LIVE_OWNER, report.text()


def in_one_line(report: Report) -> str:
    outcomes = report.outcomes
    counts = [
        f"{sum(each.verdict is verdict for each in outcomes)} {verdict.value.lower()}"
        for verdict in Verdict
    ]
    reasons = dict.fromkeys(each.reason for each in outcomes if each.verdict is Verdict.NOT_SHOWN)
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"{', '.join(counts)}{why}, in {sum(each.seconds for each in outcomes):.1f} s"


@pytest.mark.parametrize("failed", [True, False])
def test_the_line_of_a_report_tells_what_failed_and_why_what_was_not_shown(failed: bool) -> None:
    verdicts = [Verdict.PASSED, Verdict.FAILED if failed else Verdict.PASSED, Verdict.NOT_SHOWN]
    outcomes = [
        Outcome(check, verdict, "needs stall" if verdict is Verdict.NOT_SHOWN else "", 0.5)
        for check, verdict in zip(CHECKS, verdicts, strict=False)
    ]
    counts = "1 passed, 1 failed" if failed else "2 passed, 0 failed"
    assert in_one_line(Report("it", outcomes)) == f"{counts}, 1 not shown (needs stall), in 1.5 s"
