"""Processes that race for a store: what certifies it, what does not, and that all of them end."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import stores_in_processes
from mutants_of_processes import FileRows, LocksInMemoryOnly, RowsLockedInMemory, SoundOnFile

from eventhub_checkpoints import CoalescingCheckpointStore, MemoryCheckpointStore, aio
from eventhub_checkpoints.conformance import CHECKS, Certificate, Outcome, Report, Verdict, certify
from eventhub_checkpoints.conformance.__main__ import main
from eventhub_checkpoints.conformance.contract import PROCESSES
from forks import is_running

pytestmark = pytest.mark.waits

RACES = [check for check in CHECKS if PROCESSES in check.needs]
TESTS = Path(__file__).parent
NOT_CERTIFIED = "not certified: processes could not race the store: "


@pytest.fixture
def rows() -> FileRows:
    return FileRows()


def raced(make_store: Any) -> Report:
    """What the races say of a store; the processes have ended."""
    report = certify(make_store, checks=RACES)
    assert active_children() == []
    return report


def last_line(report: Report) -> str:
    return report.text().splitlines()[-1]


@pytest.fixture
def others() -> list[Outcome]:
    """All checks but the races, of a store that keeps them."""
    checks = [check for check in CHECKS if PROCESSES not in check.needs]
    return [Outcome(check, Verdict.PASSED, "", 0.0) for check in checks]


def test_a_store_that_processes_have_raced_is_certified(
    rows: FileRows, others: list[Outcome]
) -> None:
    report = Report("it", [*others, *raced(partial(SoundOnFile, rows)).outcomes])
    assert report.certificate is Certificate.CERTIFIED
    assert last_line(report) == "certified"


@pytest.mark.parametrize(
    "make_store", [MemoryCheckpointStore, aio.MemoryCheckpointStore], ids=["sync", "aio"]
)
def test_a_store_that_is_for_one_process_is_certified_within_it(
    make_store: Any, others: list[Outcome]
) -> None:
    report = Report("it", [*others, *raced(make_store).outcomes])
    assert report.certificate is Certificate.WITHIN_ONE_PROCESS
    assert last_line(report) == "certified within one process"


def test_a_store_that_only_a_lock_in_memory_guards_is_refused_by_name(
    others: list[Outcome],
) -> None:
    rows = RowsLockedInMemory()
    report = Report("it", [*others, *raced(partial(LocksInMemoryOnly, rows)).outcomes])
    assert report.certificate is Certificate.NOT_CERTIFIED
    names = ", ".join(one.name for one in RACES)
    assert last_line(report).endswith(f"checks failed: {names}")
    assert "were won by more than one process" in report.text()


@pytest.mark.parametrize(
    ("make_store", "reason"),
    [
        (lambda rows: lambda: SoundOnFile(rows), "cannot be passed to another process"),
        (
            lambda rows: partial(stores_in_processes.fails_elsewhere, rows),
            "could not open the store: RuntimeError: no store here",
        ),
        (
            lambda rows: partial(stores_in_processes.dies_elsewhere, rows),
            "could not open the store: a process ended with exit code 7",
        ),
    ],
    ids=["a lambda", "fails", "dies"],
)
def test_a_store_that_could_not_be_raced_is_not_certified(
    make_store: Any, reason: str, rows: FileRows
) -> None:
    report = raced(make_store(rows))
    assert report.certificate is Certificate.NOT_CERTIFIED
    assert last_line(report).startswith(NOT_CERTIFIED)
    assert reason in last_line(report)
    assert {one.verdict for one in report.outcomes} == {Verdict.NOT_SHOWN}


def test_a_process_that_does_not_open_its_store_is_killed(
    rows: FileRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "eventhub_checkpoints.conformance.processes"
    monkeypatch.setattr(f"{module}.START_SECONDS", 3.0)
    monkeypatch.setattr(f"{module}.STOP_SECONDS", 0.2)
    report = raced(partial(stores_in_processes.hangs_elsewhere, rows))
    assert "could not open the store: no answer within 3 s" in last_line(report)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (stores_in_processes.HangsInTheRace, "no answer within 1 s"),
        (stores_in_processes.DiesInTheRace, "a process ended with exit code 7"),
        (stores_in_processes.FailsInTheRace, "OSError: the backend is away"),
    ],
)
def test_a_process_that_fails_in_the_race_fails_the_check(
    kind: Any, reason: str, rows: FileRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "eventhub_checkpoints.conformance.processes"
    monkeypatch.setattr(f"{module}.RACE_SECONDS", 1.0)
    monkeypatch.setattr(f"{module}.STOP_SECONDS", 0.2)
    [outcome] = certify(partial(kind, rows), checks=RACES[:1]).outcomes
    assert outcome.verdict is Verdict.FAILED
    assert outcome.reason == reason
    assert active_children() == []


def test_after_a_race_that_failed_the_next_has_processes_of_its_own(rows: FileRows) -> None:
    report = raced(partial(stores_in_processes.FailsInTheRace, rows))
    assert [one.verdict for one in report.outcomes] == [Verdict.FAILED, Verdict.PASSED]


def test_a_coalescing_store_is_for_one_process_where_its_store_is(rows: FileRows) -> None:
    assert CoalescingCheckpointStore(MemoryCheckpointStore()).for_one_process
    assert not CoalescingCheckpointStore(SoundOnFile(rows)).for_one_process


MODULE = """
from multiprocessing import parent_process
from stores_in_processes import SoundOnFile
from mutants_of_processes import FileRows, LocksInMemoryOnly, RowsLockedInMemory

{condition}

def make_store():
    return {store}({rows}({folder!r}))
"""
NOT_ELSEWHERE = "assert parent_process() is None, 'only here'"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module with a factory, and names it."""
    (tmp_path / "rows").mkdir()

    def written(store: str = "SoundOnFile", rows: str = "FileRows", condition: str = "") -> str:
        name = f"factory_{store}_{bool(condition)}".lower()
        text = MODULE.format(
            store=store, rows=rows, condition=condition, folder=str(tmp_path / "rows")
        )
        (tmp_path / f"{name}.py").write_text(text)
        return f"{name}:make_store"

    monkeypatch.syspath_prepend(tmp_path)
    return written


def test_the_command_ends_with_3_where_processes_cannot_import_the_factory(
    module: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([module(condition=NOT_ELSEWHERE), "--only", RACES[0].name]) == 3
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{NOT_CERTIFIED}another process could not open the store")
    assert "only here" in last


def test_the_command_ends_with_0_where_they_can(
    module: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([module(), "--only", RACES[0].name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["totals"] == {"passed": 1, "failed": 0, "not shown": 0}
    assert report["certificate"] == "not certified"
    assert report["why_not_certified"] == f"only 1 of {len(CHECKS)} checks were tried"


def test_the_command_ends_with_1_where_more_than_one_wins(
    module: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    url = module("LocksInMemoryOnly", "RowsLockedInMemory")
    assert main([url, "--only", RACES[0].name]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"not certified: 1 of 1 checks failed: {RACES[0].name}"


def python(text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a program in a folder prints; the modules of this one are there too."""
    path = os.pathsep.join([str(folder), str(TESTS), *filter(None, sys.path)])
    (folder / "program.py").write_text(text)
    return subprocess.run(
        [sys.executable, *(arguments or ["program.py"])],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_module_run_as_a_command_races_too(module: Any, tmp_path: Path) -> None:
    command = ["-m", "eventhub_checkpoints.conformance", module(), "--only", RACES[0].name]
    done = python("", tmp_path, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


CERTIFYING = """
from functools import partial
from eventhub_checkpoints.conformance import certify, CHECKS
from mutants_of_processes import FileRows, SoundOnFile

def make_store():
    return SoundOnFile(FileRows({folder!r}))

def tried():
    checks = [check for check in CHECKS if "processes" in check.needs]
    print(certify(make_store, checks=checks).text(), flush=True)
"""


def test_a_program_races_a_factory_of_its_main_module(tmp_path: Path) -> None:
    text = CERTIFYING.format(folder=str(tmp_path)) + 'if __name__ == "__main__":\n    tried()\n'
    done = python(text, tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_program_that_certifies_on_import_gets_an_error(tmp_path: Path) -> None:
    done = python(CERTIFYING.format(folder=str(tmp_path)) + "tried()\n", tmp_path)
    assert NOT_CERTIFIED in done.stdout, done.stdout + done.stderr
    assert "put the call under `if __name__ == '__main__':`" in done.stderr


KILLED = """
import signal, time
from functools import partial
from multiprocessing import active_children
from eventhub_checkpoints.conformance.processes import Racers
from mutants_of_processes import FileRows, SoundOnFile

if __name__ == "__main__":
    racers = Racers(partial(SoundOnFile, FileRows({folder!r})))
    racers.start()
    print(*(child.pid for child in active_children()), flush=True)
    time.sleep(600)
"""


def test_the_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(KILLED.format(folder=str(tmp_path)))
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        racers = [int(word) for word in parent.stdout.readline().split()]
        assert len(racers) == 2
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 20
    while any(map(is_running, racers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, racers))
