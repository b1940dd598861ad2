"""The pytest class, as the author of a store sees it: one run of pytest over several classes."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eventhub_checkpoints import conformance
from waiting import LIMIT

pytestmark = pytest.mark.waits

AUTHORS = """
from functools import partial
import pytest
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.sql import SqlCheckpointStore
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from eventhub_checkpoints.conformance import Accessors, CheckpointStoreConformance

class Mine(CheckpointStoreConformance):
    @pytest.fixture
    def make_store(self):
        rows = MemoryRows()
        return lambda: MemoryCheckpointStore(rows)

class TestPlain(Mine):
    pass

class TestLacksStall(Mine):
    lacks = ("stall",)

class TestLacksWhatItHas(Mine):
    lacks = ("put_raw",)

class TestWithAccessors(Mine):
    @pytest.fixture
    def accessors(self):
        return Accessors()

class OnFile(CheckpointStoreConformance):
    @pytest.fixture
    def url(self, tmp_path):
        url = f"sqlite:///{tmp_path}/checkpoints.db"
        with SqlCheckpointStore(url) as store:
            store.create()
        return url

class TestWithALambda(OnFile):
    @pytest.fixture
    def make_store(self, url):
        return lambda: SqlCheckpointStore(url)

class TestLacksRaces(TestWithALambda):
    lacks = ("processes", "put_raw")

class TestRacedByItsFactory(OnFile):
    @pytest.fixture
    def make_store(self, url):
        return partial(SqlCheckpointStore, url)

class TestLacksRacesThatItHas(TestRacedByItsFactory):
    lacks = ("processes",)
"""
RACED = "TestRacedByItsFactory or TestLacksRacesThatItHas"
Ran = Callable[[str, str], list[tuple[str, str]]]


def outcomes(folder: Path, chosen: str) -> Ran:
    """Run the authors' tests; return a function from class and check to outcomes and messages."""
    (folder / "test_mine.py").write_text(AUTHORS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml", "run.xml"]
    subprocess.run(
        [*command, "-k", chosen], cwd=folder, capture_output=True, check=False, timeout=LIMIT
    )
    cases = [*ElementTree.parse(folder / "run.xml").iter("testcase")]

    def found(of_class: str, check: str) -> list[tuple[str, str]]:
        return [
            next(((each.tag, each.get("message", "")) for each in case), ("passed", ""))
            for case in cases
            if case.get("classname", "").endswith(f".{of_class}") and check in case.get("name", "")
        ]

    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    named = "stalled_list or vanished_row_wins or processes or lacking"
    return outcomes(tmp_path_factory.mktemp("authors"), f"({named}) and not ({RACED})")


@pytest.fixture(scope="module")
def ran_in_processes(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    chosen = f"({RACED}) and (processes or lacking)"
    return outcomes(tmp_path_factory.mktemp("authors"), chosen)


def test_what_cannot_be_shown_is_a_skip_with_its_reason(ran: Ran) -> None:
    [(outcome, reason)] = ran("TestPlain", "a_stalled_list_ends")
    assert outcome == "skipped"
    assert "needs stall" in reason


def test_what_is_declared_to_be_lacking_is_not_a_test(ran: Ran) -> None:
    assert ran("TestLacksStall", "stalled") == []
    assert ran("TestLacksStall", "lacking") == [("passed", "")]


def test_a_declaration_that_is_not_true_fails(ran: Ran) -> None:
    [(outcome, reason)] = ran("TestLacksWhatItHas", "lacking")
    assert outcome == "failure"
    assert "`lacks` leaves out what could be shown" in reason


def test_accessors_of_the_class_take_the_place_of_the_stores_own(ran: Ran) -> None:
    found = ran("TestWithAccessors", "vanished_row_wins")
    assert [outcome for outcome, _ in found] == ["skipped"] * 2
    assert all("needs put_raw" in reason for _, reason in found)
    assert ran("TestPlain", "vanished_row_wins") == [("passed", "")] * 2


def test_a_store_for_one_process_is_raced_by_none(ran: Ran) -> None:
    found = ran("TestPlain", "processes")
    assert [outcome for outcome, _ in found] == ["skipped"] * 2
    assert all("the store declares that it is for one process" in reason for _, reason in found)


def test_a_factory_that_no_process_can_import_fails(ran: Ran) -> None:
    found = ran("TestWithALambda", "processes")
    assert [outcome for outcome, _ in found] == ["failure"] * 2
    sentence = "the store is not certified: the factory cannot be passed to another process"
    assert all(sentence in reason for _, reason in found)


def test_that_processes_cannot_race_may_be_declared(ran: Ran) -> None:
    assert ran("TestLacksRaces", "processes") == []
    assert ran("TestLacksRaces", "lacking") == [("passed", "")]


@pytest.mark.long
def test_processes_race_a_store_by_its_factory(ran_in_processes: Ran) -> None:
    assert ran_in_processes("TestRacedByItsFactory", "processes") == [("passed", "")] * 2


@pytest.mark.long
def test_processes_that_can_race_must_not_be_left_out(ran_in_processes: Ran) -> None:
    [(outcome, reason)] = ran_in_processes("TestLacksRacesThatItHas", "lacking")
    assert outcome == "failure"
    assert "`lacks` leaves out what could be shown" in reason


def test_pytest_does_not_add_to_the_reasons_of_a_report() -> None:
    """The package ships a plugin, so pytest would rewrite the assertions of all its modules."""
    folder = Path(conformance.__file__).parent
    modules = {path.name: path.read_text() for path in folder.rglob("*.py")}
    asserting = {name for name, text in modules.items() if re.search(r"^\s+assert ", text, re.M)}
    assert asserting
    assert {name for name in asserting if "PYTEST_DONT_REWRITE" not in modules[name]} == set()
