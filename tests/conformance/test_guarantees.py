"""`docs/reference/guarantees.md` and the checks say the same."""

import re
from pathlib import Path

from eventhub_checkpoints.conformance import CHECKS
from eventhub_checkpoints.conformance.contract import GUARANTEES

PAGE = (Path(__file__).parents[2] / "docs/reference/guarantees.md").read_text()
TITLES = dict(re.findall(r"^## (G\d+) (.+)$", PAGE, re.MULTILINE))
NOT_SEEN_BY_CHECKS = {"G4"}


def section(number: str) -> str:
    return PAGE.partition(f"## {number} ")[2].partition("\n## ")[0]


def test_the_page_has_every_guarantee_under_its_name() -> None:
    assert {number: title.lower() for number, title in TITLES.items()} == GUARANTEES


def test_every_guarantee_names_the_checks_that_show_it() -> None:
    named = {
        number: re.findall(r"`(\w+)`", section(number).partition("\nChecks: ")[2])
        for number in GUARANTEES
    }
    assert named == {
        number: [check.name for check in CHECKS if number in check.guarantees]
        for number in GUARANTEES
    }
    assert {number for number, names in named.items() if not names} == NOT_SEEN_BY_CHECKS


def test_the_page_explains_every_habit_that_a_check_names() -> None:
    explained = set(re.findall(r"^\| (P\d+) \|", PAGE, re.MULTILINE))
    assert explained == {habit for check in CHECKS for habit in check.habits}


def test_the_docstring_of_every_check_is_a_sentence_of_the_contract() -> None:
    assert [check.name for check in CHECKS if not check.sentence.endswith(".")] == []


def test_every_check_belongs_to_a_guarantee() -> None:
    assert [check.name for check in CHECKS if not check.guarantees] == []


def test_names_of_checks_are_used_once() -> None:
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))
