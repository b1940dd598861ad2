"""The checks bite: each one catches a store with the fault that it names."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from mutants import BY_NAME, GALLERY, MUTANTS, tried
from mutants_of_processes import LocksInMemoryOnly, SoundOnFile
from sound import Sound

from conformance_checks import LIMITS, PROMPT, without
from eventhub_checkpoints.conformance import CHECKS, Check, Verdict, faults
from eventhub_checkpoints.conformance.contract import BASE

pytestmark = pytest.mark.waits

APART = {"mutants_of_limits", "mutants_of_processes"}
"""Files of mutants that have tests of their own: below, and in `test_processes.py`."""


def not_passed(kind: type[Sound], checks: list[Check]) -> dict[str, str]:
    outcomes = tried(kind, checks).outcomes
    return {each.check.name: each.reason for each in outcomes if each.verdict != Verdict.PASSED}


def missed(kind: type[Sound], names: Sequence[str]) -> list[str]:
    """What is wrong with the checks of these names that should catch a mutant."""
    found = []
    for outcome in tried(kind, [BY_NAME[name] for name in names]).outcomes:
        if outcome.verdict is not Verdict.FAILED:
            found.append(f"{kind.__name__} {outcome.verdict.value} {outcome.check.name}")
        elif not outcome.reason:
            found.append(f"{outcome.check.name} does not say what is wrong with {kind.__name__}")
    return found


def test_the_store_that_the_mutants_are_made_of_is_sound() -> None:
    assert not_passed(Sound, PROMPT) == {}


def test_the_mutants_that_processes_race_are_made_of_a_sound_store() -> None:
    assert not_passed(SoundOnFile, without([BASE, "put_raw", "shift_clock"])) == {}


@pytest.mark.long
def test_threads_find_no_fault_in_a_store_that_a_lock_in_memory_guards() -> None:
    assert not_passed(LocksInMemoryOnly, [one for one in CHECKS if not one.needs]) == {}


@pytest.mark.parametrize(
    "gallery",
    [each for each in GALLERY if each.__name__ not in APART],
    ids=lambda gallery: gallery.__name__,
)
def test_each_mutant_is_caught_by_the_checks_that_name_its_fault(
    gallery: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item is a file of mutants; its message lists those that a check let pass."""
    monkeypatch.setattr(faults, "DELAY_LIMIT", 0.5)  # for what a mutant never does
    kinds = [kind for kind in MUTANTS if kind.__module__ == gallery.__name__]
    assert kinds
    found = [line for kind in kinds for line in missed(kind, MUTANTS[kind])]
    assert not found, "\n".join(found)


@pytest.mark.long
def test_on_the_real_clock_the_sync_stores_that_exceed_a_limit_are_caught() -> None:
    """All at once, beside a sound one; `test_limits.py` has aio stores on a simulated clock."""
    faulty = [
        (kind, [name])
        for kind, names in MUTANTS.items()
        if kind.__module__ == "mutants_of_limits"
        for name in names
    ]
    with ThreadPoolExecutor(len(faulty) + len(LIMITS)) as pool:
        found = pool.map(missed, *zip(*faulty, strict=True))
        sound = pool.map(lambda check: not_passed(Sound, [check]), LIMITS)
        assert [line for lines in found for line in lines] == []
        assert [*sound] == [{}] * len(LIMITS)


def test_every_check_is_needed_by_a_mutant() -> None:
    named = {name for names in MUTANTS.values() for name in names}
    assert {check.name for check in CHECKS} - named == set()
