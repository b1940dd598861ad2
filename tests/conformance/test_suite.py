"""The pytest class, as the author of a store sees it."""

import subprocess
import sys
from pathlib import Path

import pytest

AUTHORS = """
import pytest
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints._memory import MemoryRows
from eventhub_checkpoints.conformance import Accessors, CheckpointStoreConformance

class TestMine(CheckpointStoreConformance):
    lacks = {lacks}

    @pytest.fixture
    def make_store(self):
        rows = MemoryRows()
        return lambda: MemoryCheckpointStore(rows)
"""
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
def test_what_is_declared_to_be_lacking_is_no_test(ran: str) -> None:
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
