"""The checks bite: each one catches a store with the fault that it names."""

from typing import Any

import pytest
from mutants import BY_NAME, MUTANTS, tried
from mutants_of_processes import LocksInMemoryOnly, SoundOnFile
from sound import Sound

from eventhub_checkpoints.conformance import CHECKS, Verdict
from eventhub_checkpoints.conformance.contract import ONE_PROCESS

pytestmark = pytest.mark.waits

PAIRS = [(kind, name) for kind, names in MUTANTS.items() for name in names]


def test_the_store_that_the_mutants_are_made_of_is_sound() -> None:
    report = tried(Sound, CHECKS)
    assert not report.failed, report.text()
    silent = [one for one in report.outcomes if one.verdict is not Verdict.PASSED]
    assert {one.reason for one in silent} == {ONE_PROCESS}, report.text()


def test_the_mutants_that_processes_race_are_made_of_a_sound_store() -> None:
    report = tried(SoundOnFile, [one for one in CHECKS if one.level == 1])
    assert {one.verdict for one in report.outcomes} == {Verdict.PASSED}, report.text()


def test_threads_find_no_fault_in_a_store_that_a_lock_in_memory_guards() -> None:
    report = tried(LocksInMemoryOnly, [one for one in CHECKS if not one.needs])
    assert not report.failed, report.text()


@pytest.mark.parametrize(
    ("kind", "name"), PAIRS, ids=[f"{kind.__name__}-{name}" for kind, name in PAIRS]
)
def test_a_mutant_is_caught_by_the_check_that_names_its_fault(kind: Any, name: str) -> None:
    [outcome] = tried(kind, [BY_NAME[name]]).outcomes
    assert outcome.verdict.value == "FAILED", f"{kind.__name__} passed {name}"
    assert outcome.reason, f"{name} does not say what is wrong with {kind.__name__}"


def test_every_check_is_needed_by_a_mutant() -> None:
    named = {name for names in MUTANTS.values() for name in names}
    assert {check.name for check in CHECKS} - named == set()
