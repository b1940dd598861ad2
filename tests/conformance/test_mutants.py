"""The checks bite: each one catches a store with the fault that it names."""

from typing import Any

import pytest
from mutants import BY_NAME, MUTANTS, tried
from sound import Sound

from eventhub_checkpoints.conformance import CHECKS

PAIRS = [(kind, name) for kind, names in MUTANTS.items() for name in names]


def test_the_store_that_the_mutants_are_made_of_is_sound() -> None:
    report = tried(Sound, CHECKS)
    assert not report.failed, report.text()
    assert {one.verdict.value for one in report.outcomes} == {"passed"}, report.text()


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
