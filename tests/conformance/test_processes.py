"""Processes that race for a store: what certifies it, what does not, and that all of them end."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import stores_in_processes
from mutants_of_processes import FileRows, KeepsToItsProcess, LocksInMemoryOnly, SoundOnFile
from sound import MUTANTS

from eventhub_checkpoints import CoalescingCheckpointStore, MemoryCheckpointStore, aio
from eventhub_checkpoints._shared.wrapping import declares
from eventhub_checkpoints.conformance import (
    CHECKS,
    Certificate,
    Outcome,
    Report,
    Verdict,
    certify,
    processes,
)
from eventhub_checkpoints.conformance.__main__ import main
from eventhub_checkpoints.conformance.contract import PROCESSES
from forks import is_running
from waiting import LIMIT, eventually

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
    assert last_line(report).startswith(f"certified; {len(CHECKS)} passed, in ")


@pytest.mark.parametrize(
    "make_store", [MemoryCheckpointStore, aio.MemoryCheckpointStore], ids=["sync", "aio"]
)
def test_a_store_that_is_for_one_process_is_certified_within_it(
    make_store: Any, others: list[Outcome]
) -> None:
    report = Report("it", [*others, *raced(make_store).outcomes])
    assert report.certificate is Certificate.WITHIN_ONE_PROCESS
    totals = f"{len(others)} passed, {len(RACES)} not shown"
    assert last_line(report).startswith(f"certified within one process; {totals}, in ")


@pytest.mark.parametrize(
    "kind",
    [KeepsToItsProcess, pytest.param(LocksInMemoryOnly, marks=pytest.mark.long)],
    ids=lambda kind: kind.__name__,
)
def test_a_store_whose_claims_other_processes_do_not_see_is_refused_by_name(
    kind: Any, others: list[Outcome]
) -> None:
    """The lock in memory is caught by chance, though in nearly every race: hence `long`."""
    assert MUTANTS[kind] == tuple(one.name for one in RACES)
    report = Report("it", [*others, *raced(partial(kind, kind.rows_class())).outcomes])
    assert report.certificate is Certificate.NOT_CERTIFIED
    names, totals = ", ".join(MUTANTS[kind][:3]), f"{len(others)} passed, {len(RACES)} FAILED"
    assert f"checks failed: {names}, ...; {totals}, in " in last_line(report)
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


@pytest.mark.long
def test_a_process_that_does_not_open_its_store_is_killed(
    rows: FileRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "START_SECONDS", 3.0)
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.2)
    report = raced(partial(stores_in_processes.hangs_elsewhere, rows))
    assert "could not open the store: no answer within 3 s" in last_line(report)


@pytest.mark.long
def test_a_process_that_hangs_in_the_race_fails_the_check_and_is_killed(
    rows: FileRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "RACE_SECONDS", 1.0)
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.2)
    hangs = partial(stores_in_processes.HangsInTheRace, rows)
    [outcome] = certify(hangs, checks=RACES[:1]).outcomes
    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "no answer within 1 s")
    assert active_children() == []


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            stores_in_processes.DiesInTheRace,
            "a process ended with exit code 7 instead of answering",
        ),
        (stores_in_processes.FailsInTheRace, "OSError: the backend is away"),
    ],
)
def test_a_process_that_fails_in_the_race_fails_the_check_and_the_next_race_has_others(
    kind: Any, reason: str, rows: FileRows
) -> None:
    report = raced(partial(kind, rows))
    assert [one.verdict for one in report.outcomes] == [Verdict.FAILED, *[Verdict.PASSED] * 3]
    assert report.outcomes[0].reason == reason


def test_a_coalescing_store_is_for_one_process_where_its_store_is(rows: FileRows) -> None:
    for store, is_one in (MemoryCheckpointStore(), True), (SoundOnFile(rows), False):
        assert declares(CoalescingCheckpointStore(store), "for_one_process") is is_one


MODULE = """
from multiprocessing import parent_process
from stores_in_processes import SoundOnFile
from mutants_of_processes import FileRows

{condition}

def make_store():
    return SoundOnFile(FileRows({folder!r}))
"""
NOT_ELSEWHERE = "assert parent_process() is None, 'only here'"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module with a factory, and names it."""
    (tmp_path / "rows").mkdir()

    def written(condition: str = "") -> str:
        name = f"factory_{bool(condition)}".lower()
        text = MODULE.format(condition=condition, folder=str(tmp_path / "rows"))
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


def environment(folder: Path) -> dict[str, str]:
    """In which a program imports the modules of a folder and of this one."""
    path = os.pathsep.join([str(folder), str(TESTS), *filter(None, sys.path)])
    return os.environ | {"PYTHONPATH": path}


def python(text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a program in a folder prints."""
    (folder / "program.py").write_text(text)
    return subprocess.run(
        [sys.executable, *(arguments or ["program.py"])],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def test_the_command_ends_with_0_where_they_can(module: Any, tmp_path: Path) -> None:
    arguments = [module(), "--only", RACES[0].name, "--json"]
    done = python("", tmp_path, "-m", "eventhub_checkpoints.conformance", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["totals"] == {"passed": 1, "failed": 0, "not shown": 0}
    assert report["certificate"] == "not certified"
    assert report["why_not_certified"] == f"only 1 of {len(CHECKS)} checks were tried"


CERTIFYING = """
from functools import partial
from eventhub_checkpoints.conformance import certify, CHECKS
from mutants_of_processes import FileRows, SoundOnFile

def make_store():
    return SoundOnFile(FileRows({folder!r}))

def tried():
    check = next(check for check in CHECKS if "processes" in check.needs)
    print(certify(make_store, checks=[check]).text(), flush=True)
"""


@pytest.mark.long
def test_a_program_races_a_factory_of_its_main_module(tmp_path: Path) -> None:
    text = CERTIFYING.format(folder=str(tmp_path)) + 'if __name__ == "__main__":\n    tried()\n'
    done = python(text, tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
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


@pytest.mark.long
def test_the_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(KILLED.format(folder=str(tmp_path)))
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        racers = [int(word) for word in parent.stdout.readline().split()]
        assert len(racers) == 2
        parent.send_signal(signal.SIGKILL)
    eventually(lambda: not any(map(is_running, racers)))
