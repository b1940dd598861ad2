"""A run with several processes starts one server, tells how it ended, and leaves none."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forks import is_running
from waiting import LIMIT, eventually

ROOT = Path(__file__).parents[2]
BEGINNING = f"""
import os, signal
from pathlib import Path
from waiting import eventually

def note(servers):
    with servers("redis").place() as place, Path("notes").open("a") as notes:
        notes.write(f"{{place.raw.info('server')['process_id']}}\\n")

def noted():
    return Path("notes").read_text().split() if Path("notes").exists() else []

def other_has_noted():
    eventually(lambda: len(noted()) >= 2, {LIMIT})
"""
pytestmark = pytest.mark.long


class Run:
    """pytest with two workers on files of one test each, with this project's conftest."""

    def __init__(self, folder: Path, *bodies: str) -> None:
        self._notes = folder / "notes"
        (folder / "conftest.py").symlink_to(ROOT / "tests/conftest.py")
        for number, body in enumerate(bodies):
            test = f"{BEGINNING}\ndef test_it(servers):\n{body}\n"
            (folder / f"test_{number}.py").write_text(test)
        paths = [ROOT / each for each in ("src", "tools", "tests/support")]
        words = ["-n2", "--dist=loadfile", "-pno:cacheprovider"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.text = ""

    @property
    def server(self) -> int:
        """The process of the one server that the tests have used."""
        (pid,) = set(self._notes.read_text().split())
        return int(pid)

    def until_both_use_it(self) -> None:
        eventually(lambda: self._notes.exists() and self._notes.read_text().count("\n") == 2)

    def end(self) -> int:
        self.text = self._process.communicate(timeout=LIMIT)[0]
        return self._process.returncode

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


NOTES = "    note(servers)"
BOTH_NOTE = NOTES + "\n    other_has_noted()"
DIES_ONCE = f"""{NOTES}
    if not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""
WAITS = "    note(servers)\n    eventually(lambda: False)"


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    with Run(tmp_path, *request.param) as running:
        yield running


def with_tests(*bodies: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("run", [bodies], indirect=True, ids=[""])


@with_tests(NOTES, NOTES)
def test_two_processes_share_one_server_that_ends_with_the_run(run: Run) -> None:
    assert run.end() == 0, run.text
    assert run.text.count("redis started for all processes") == 1, run.text
    assert not is_running(run.server)


@with_tests(DIES_ONCE, BOTH_NOTE)
def test_a_process_that_dies_takes_no_server_with_it(run: Run) -> None:
    assert run.end() == 1, run.text
    # xdist runs the test again, in a new process.
    assert "1 failed, 2 passed" in run.text
    assert not is_running(run.server)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@with_tests(WAITS, WAITS)
def test_an_interrupted_run_leaves_no_server(run: Run, number: int) -> None:
    run.until_both_use_it()
    run.send(number)
    assert run.end() != 0
    eventually(lambda: not is_running(run.server))


@with_tests(
    f"{BOTH_NOTE}\n    os.kill(int(noted()[0]), signal.SIGKILL)\n    note(servers)", BOTH_NOTE
)
def test_a_server_that_is_killed_is_named_and_the_other_tests_go_on(run: Run) -> None:
    assert run.end() == 1, run.text
    assert "1 failed, 1 passed" in run.text
    assert "redis has ended with status -9" in run.text
