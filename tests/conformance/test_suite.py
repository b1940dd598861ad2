"""The pytest class, as the author of a store sees it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.waits

AUTHORS = """
from functools import partial
import pytest
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from eventhub_checkpoints.conformance import Accessors, CheckpointStoreConformance

class TestMine(CheckpointStoreConformance):
    lacks = {lacks}

    @pytest.fixture
    def make_store(self):
        rows = MemoryRows()
        return lambda: MemoryCheckpointStore(rows)
"""
RACED = """
from eventhub_checkpoints.sql import SqlCheckpointStore

class TestMine(TestMine):
    @pytest.fixture
    def make_store(self, tmp_path):
        url = f"sqlite:///{tmp_path}/checkpoints.db"
        with SqlCheckpointStore(url) as store:
            store.create()
        return FACTORY
"""
LAMBDA, PARTIAL = (
    RACED.replace("FACTORY", factory)
    for factory in ("lambda: SqlCheckpointStore(url)", "partial(SqlCheckpointStore, url)")
)
ACCESSORS = """
    @pytest.fixture
    def accessors(self):
        return Accessors()
"""


@pytest.fixture
def ran(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    lacks, more, chosen = request.param
    (tmp_path / "test_mine.py").write_text(AUTHORS.format(lacks=lacks) + more)
    command = [sys.executable, "-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider", "-k", chosen]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("ran", [((), "", "stalled_list")], indirect=True)
def test_what_cannot_be_shown_is_a_skip_with_its_reason(ran: str) -> None:
    assert "1 skipped" in ran
    assert "needs stall" in ran


@pytest.mark.parametrize("ran", [(("stall",), "", "stalled or lacking")], indirect=True)
def test_what_is_declared_to_be_lacking_is_not_a_test(ran: str) -> None:
    assert "1 passed" in ran
    assert "skipped" not in ran


@pytest.mark.parametrize("ran", [(("put_raw",), "", "lacking")], indirect=True)
def test_a_declaration_that_is_not_true_fails(ran: str) -> None:
    assert "1 failed" in ran
    assert "`lacks` leaves out what could be shown" in ran


@pytest.mark.parametrize("ran", [((), ACCESSORS, "vanished_row_wins")], indirect=True)
def test_accessors_of_the_class_take_the_place_of_the_stores_own(ran: str) -> None:
    assert "2 skipped" in ran
    assert "needs put_raw" in ran


@pytest.mark.parametrize("ran", [((), PARTIAL, "processes")], indirect=True)
def test_processes_race_a_store_by_its_factory(ran: str) -> None:
    assert "2 passed" in ran


@pytest.mark.parametrize("ran", [((), LAMBDA, "processes")], indirect=True)
def test_a_factory_that_no_process_can_import_fails(ran: str) -> None:
    assert "2 failed" in ran
    assert "the store is not certified: the factory cannot be passed to another process" in ran


@pytest.mark.parametrize(
    "ran", [(("processes", "put_raw"), LAMBDA, "processes or lacking")], indirect=True
)
def test_that_processes_cannot_race_may_be_declared(ran: str) -> None:
    assert "1 passed" in ran
    assert "failed" not in ran


@pytest.mark.parametrize("ran", [(("processes",), PARTIAL, "lacking")], indirect=True)
def test_processes_that_can_race_must_not_be_left_out(ran: str) -> None:
    assert "1 failed" in ran
    assert "`lacks` leaves out what could be shown" in ran


@pytest.mark.parametrize("ran", [((), "", "processes")], indirect=True)
def test_a_store_for_one_process_is_raced_by_none(ran: str) -> None:
    assert "2 skipped" in ran
    assert "the store declares that it is for one process" in ran
