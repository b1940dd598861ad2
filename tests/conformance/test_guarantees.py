"""`docs/guarantees.md` and the checks say the same."""

import re
from pathlib import Path

import pytest

from eventhub_checkpoints.conformance import CHECKS
from eventhub_checkpoints.conformance.contract import GUARANTEES

PAGE = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text()
TITLES = dict(re.findall(r"^## (G\d+) (.+)$", PAGE, re.MULTILINE))
NOT_SEEN_BY_CHECKS = {"G4"}


def section(number: str) -> str:
    return PAGE.partition(f"## {number} ")[2].partition("\n## ")[0]


def test_the_page_has_every_guarantee_under_its_name() -> None:
    assert {number: title.lower() for number, title in TITLES.items()} == GUARANTEES


@pytest.mark.parametrize("number", GUARANTEES)
def test_a_guarantee_names_the_checks_that_show_it(number: str) -> None:
    named = re.findall(r"`(\w+)`", section(number).partition("\nChecks: ")[2])
    expected = [check.name for check in CHECKS if number in check.guarantees]
    assert named == expected
    assert bool(named) != (number in NOT_SEEN_BY_CHECKS)


def test_the_page_explains_every_habit_that_a_check_names() -> None:
    explained = set(re.findall(r"^\| (P\d+) \|", PAGE, re.MULTILINE))
    assert explained == {habit for check in CHECKS for habit in check.habits}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_is_a_sentence_with_a_guarantee(check: object) -> None:
    assert check.sentence.endswith("."), "the docstring is the sentence of the contract"
    assert check.guarantees, "every check belongs to a guarantee"


def test_names_of_checks_are_used_once() -> None:
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))
