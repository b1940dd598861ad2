"""Journals of the demo's programs, written by one process and read by another."""

from pathlib import Path

import pytest

from eventhub_checkpoints.cli.demo.programs import JournalReader, JournalWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_one_that_is_not_there_yet_says_nothing(path: Path) -> None:
    assert JournalReader(path).read() == []


def test_what_is_written_can_be_read_at_once(path: Path) -> None:
    writer, reader = JournalWriter(path), JournalReader(path)
    writer.took("3")
    writer.processed("3", [7, 8])
    assert reader.read() == [("3", 7), ("3", 8)]
    assert reader.held == {"3"}
    writer.saved("3", 8)
    writer.processed("3", [8])
    writer.left("3")
    assert reader.read() == [("3", 8)]
    assert (reader.events, reader.saved, reader.held) == ({"3": [7, 8, 8]}, {"3": 8}, set())
    assert reader.count == 3


def test_a_line_that_a_kill_cut_off_did_not_happen(path: Path) -> None:
    reader = JournalReader(path)
    path.write_text("event 0 1\nevent 0 1")
    assert reader.read() == [("0", 1)]
    with path.open("a") as file:
        file.write("2\n")
    assert reader.read() == [("0", 12)]


def test_a_line_of_no_meaning_is_an_error(path: Path) -> None:
    path.write_text("evnt 0 1\n")
    with pytest.raises(ValueError, match="evnt 0 1"):
        JournalReader(path).read()


def test_without_a_path_it_goes_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    JournalWriter(None).processed("0", [1])
    assert capfd.readouterr().out == "event 0 1\n"
