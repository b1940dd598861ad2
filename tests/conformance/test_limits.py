"""The checks of G10, of aio stores on a simulated clock: what they measure, and what they refuse.

`stores/backends/test_conformance.py` and `test_mutants.py` run them on the real clock, in `long`.
"""

import re
from functools import partial
from typing import Any

import pytest
from aio_mutants import AIO_MUTANTS, AioSound, SilentRows
from mutants_of_limits import TakesFourTimesItsOwnLimits

from conformance_checks import LIMITS
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore
from eventhub_checkpoints.conformance import CHECKS, Certifier, Check, Report, Verdict, certify
from eventhub_checkpoints.conformance.checks import bounds
from eventhub_checkpoints.conformance.checks.bounds import ALLOWED, BATCH_LIMIT, BOUND
from eventhub_checkpoints.conformance.faults import LONGEST_HANG
from eventhub_checkpoints.conformance.harness import raising
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from simulated_loop import SimulatedLoop

SHORT_STALLS = 0.6
"""Seconds of two stalls that cost nothing."""
SECONDS = {
    "a_hung_list_ends": BOUND,
    "a_hung_batch_ends": BOUND,
    "a_hung_claim_spares_the_others": BATCH_LIMIT,
    "a_hung_checkpoint_ends": BOUND,
    "a_hung_release_ends": BOUND,
    "a_stalled_list_ends": BOUND,
    "a_stalled_claim_ends": BOUND,
    "a_stalled_checkpoint_ends": BOUND,
    "a_short_stall_costs_nothing": SHORT_STALLS,
}
"""What each check takes of a store that keeps its limits exactly."""


def tried(kind: Any, checks: list[Check]) -> Report:
    """The report of an aio store on a simulated clock; each check has separate rows."""
    outcomes = []
    for check in checks:
        rows = SilentRows()
        with Certifier(partial(kind, rows), rows.accessors(), loop=SimulatedLoop()) as certifier:
            outcomes.append(certifier.outcome(check))
    return Report(kind.__name__, outcomes)


def named(*names: str) -> list[Check]:
    return [check for check in CHECKS if check.name in names]


def test_a_store_that_keeps_its_limits_passes_after_exactly_their_time() -> None:
    report = tried(AioSound, LIMITS)
    assert {each.verdict for each in report.outcomes} == {Verdict.PASSED}, report.text()
    assert {each.check.name: round(each.seconds, 6) for each in report.outcomes} == SECONDS


def test_every_check_of_g10_passes_a_memory_store_that_has_what_it_needs() -> None:
    checks = [check for check in CHECKS if "G10" in check.guarantees and "stall" not in check.needs]
    rows = MemoryRows()
    with Certifier(partial(MemoryCheckpointStore, rows), loop=SimulatedLoop()) as certifier:
        outcomes = [certifier.outcome(check) for check in checks]
    assert len(outcomes) == 8
    assert {each.verdict for each in outcomes} == {Verdict.PASSED}, Report("it", outcomes).text()


@pytest.mark.parametrize("kind", AIO_MUTANTS, ids=lambda kind: kind.__name__)
def test_a_store_that_exceeds_a_limit_is_refused_by_the_checks_that_measure_it(kind: Any) -> None:
    report = tried(kind, named(*AIO_MUTANTS[kind]))
    assert [each.check.name for each in report.failed] == [*AIO_MUTANTS[kind]], report.text()


def test_a_store_that_takes_three_times_its_limit_is_refused_by_name_and_with_its_time() -> None:
    [kind] = [kind for kind in AIO_MUTANTS if kind.__name__ == "TakesThreeTimesItsLimit"]
    report = tried(kind, named("a_hung_batch_ends"))
    assert (
        report.text()
        .splitlines()[-1]
        .startswith("not certified: 1 of 1 checks failed: a_hung_batch_ends; 1 FAILED, in 9.0 s")
    )
    [failure] = report.failed
    assert failure.reason == "claim_ownership took 9.0 s, over its limit of 3 s"


def test_an_aio_store_over_its_own_limits_is_refused_with_the_call_its_limit_and_its_time() -> None:
    [kind] = [kind for kind in AIO_MUTANTS if kind.__name__ == "TakesFourTimesItsOwnLimits"]
    [failure] = tried(kind, named("calls_end_within_their_limits")).failed
    assert failure.reason == "list_ownership took 0.8 s, over its limit of 0.2 s"


def test_so_is_a_sync_store() -> None:
    rows = TakesFourTimesItsOwnLimits.rows_class()
    checks = named("calls_end_within_their_limits")
    [failure] = certify(partial(TakesFourTimesItsOwnLimits, rows), checks=checks).failed
    assert re.fullmatch(r"list_ownership took \d+\.\d s, over its limit of 0\.2 s", failure.reason)


def test_that_a_call_was_late_says_more_than_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ALLOWED", -1.0)
    with pytest.raises(AssertionError, match=r"update_checkpoint took .* over its limit of 3 s"):
        bounds.assert_ends_in_time("update_checkpoint", raising, StoreUnavailableError, list)


def test_a_call_may_take_as_much_again_as_its_limit_and_a_hang_takes_longer() -> None:
    assert ALLOWED == 2 * BOUND
    assert LONGEST_HANG > ALLOWED
