"""A file of dead letters under processes and full disks, and sinks that are made wrongly."""

import errno
import json
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dead_letter import DEAD_LETTER, EACH, append_dead_letters
from eventhub_checkpoints.dead_letters import DeadLetterFile, DeadLetterHub
from eventhub_checkpoints.dead_letters.log_file import append_line, read_lines
from eventhub_checkpoints.errors import ConfigurationError, StoreError, StoreNotReadyError
from eventhub_checkpoints.sql import DeadLetterTable

PROCESSES = 2


def test_processes_append_to_one_file(tmp_path: Path) -> None:
    path, context = tmp_path / "dead-letters.jsonl", multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=append_dead_letters, args=(path, process))
        for process in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    entries, others = read_lines(path)
    assert (len(entries), others) == (PROCESSES * EACH, [])
    assert len(DeadLetterFile(path).dead_letters()) == PROCESSES * EACH


def test_a_file_is_for_its_owner_only(tmp_path: Path) -> None:
    append_line(tmp_path / "dead-letters.jsonl", DEAD_LETTER.as_dict())
    assert (tmp_path / "dead-letters.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_part_of_a_line_is_an_error_and_spoils_no_other_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, write = tmp_path / "dead-letters.jsonl", os.write
    append_line(path, DEAD_LETTER.as_dict())
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:20]))
        with pytest.raises(StoreError, match="only 20 of"):
            append_line(path, DEAD_LETTER.as_dict())
    append_line(path, replace(DEAD_LETTER, sequence_number=17).as_dict())
    assert [each.dead_letter.sequence_number for each in DeadLetterFile(path).dead_letters()] == [
        16,
        17,
    ]
    assert "no dead letter in line 2" in caplog.text


def test_a_disk_that_is_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match=r"dead-letters.jsonl: No space left"):
        append_line(tmp_path / "dead-letters.jsonl", DEAD_LETTER.as_dict())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: DeadLetterFile(folder), "path is .*expected the path of a file"),
        (lambda folder: DeadLetterFile(folder / "no" / "file"), "in a folder that exists"),
        (lambda folder: DeadLetterFile(""), "path is ''"),
        (lambda folder: DeadLetterHub("Endpoint=sb://S3CR3T"), "client is of type str"),
        (lambda folder: DeadLetterHub.from_connection_string("S3CR3T"), "conn_str is malformed"),
        (lambda folder: DeadLetterTable("sqlite:///f.db", timeout=0), "timeout is 0"),
        (lambda folder: DeadLetterTable("oracle://app:S3CR3T@h/d"), "oracle:// is not supported"),
    ],
)
def test_a_sink_that_is_made_wrongly_is_refused_at_once(
    make: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=message) as refused:
        make(tmp_path)
    assert "S3CR3T" not in str(refused.value)


def test_a_table_that_was_not_created_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/dead-letters.db"
    with DeadLetterTable(url) as table, pytest.raises(StoreNotReadyError, match="create"):
        table.dead_letters()
    assert not (tmp_path / "dead-letters.db").exists()


def test_the_lines_of_a_file_are_json(tmp_path: Path) -> None:
    append_line(tmp_path / "dead-letters.jsonl", DEAD_LETTER.as_dict())
    row = json.loads((tmp_path / "dead-letters.jsonl").read_text())
    assert row["error_message"] == "no price"


def test_a_line_that_is_nested_too_deeply_spoils_no_other(tmp_path: Path) -> None:
    file = tmp_path / "dead-letters.jsonl"
    file.write_text(f"{DEAD_LETTER.to_json()}\n{'[' * 100_000}\n")
    assert read_lines(file) == ([DEAD_LETTER], [2])
