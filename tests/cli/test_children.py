"""Child processes: their logs, their ends, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventhub_checkpoints.cli.demo.children import Child, ChildError
from forks import is_running
from ports import free_port
from waiting import LIMIT, eventually

SLEEPS = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
IGNORES_TERM = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(60)",
]
HAS_A_CHILD = [
    sys.executable,
    "-c",
    "import subprocess, sys, time;"
    "sleeper = [sys.executable, '-c', 'import time; time.sleep(60)'];"
    "print(subprocess.Popen(sleeper).pid, flush=True);"
    "time.sleep(60)",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


def test_ready_gives_back_what_the_predicate_found(log: Path) -> None:
    with Child(SLEEPS, log=log) as child:
        assert child.wait_ready(child.tail, LIMIT) == "up"


def test_early_death_is_reported_with_the_end_of_the_log(log: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('port is taken')"]
    with (
        Child(command, log=log, name="the hub") as child,
        pytest.raises(ChildError, match=r"the hub ended with status 1 .*ready.*\n.*port is taken"),
    ):
        child.wait_ready(lambda: False, LIMIT)


def test_never_ready_is_reported_with_the_end_of_the_log(log: Path) -> None:
    with Child(SLEEPS, log=log, name="sleeper") as child:
        child.wait_ready(child.tail, LIMIT)
        with pytest.raises(ChildError, match=r"sleeper not ready after 0.05 s.*\nup"):
            child.wait_ready(lambda: False, 0.05)


def test_waiting_gives_the_exit_status(log: Path) -> None:
    with Child([sys.executable, "-c", "raise SystemExit(7)"], log=log) as child:
        assert child.wait(LIMIT) == 7


def test_waiting_too_long_is_an_error(log: Path) -> None:
    with Child(SLEEPS, log=log) as child, pytest.raises(ChildError, match="still runs"):
        child.wait(0.05)


def test_stop_ends_a_polite_process_by_sigterm(log: Path) -> None:
    assert Child(SLEEPS, log=log).stop(LIMIT) == -signal.SIGTERM


def test_stop_kills_a_process_that_ignores_sigterm(log: Path) -> None:
    child = Child(IGNORES_TERM, log=log)
    child.wait_ready(child.tail, LIMIT)
    assert child.stop(0.1) == -signal.SIGKILL


def test_stopping_twice_gives_the_same_status(log: Path) -> None:
    child = Child(SLEEPS, log=log)
    assert child.kill() == child.stop() == child.kill() == -signal.SIGKILL


def test_leaving_the_block_stops_the_child(log: Path) -> None:
    with Child(SLEEPS, log=log) as child:
        assert child.poll() is None
    assert child.poll() == -signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_child_started_ends_with_it(log: Path) -> None:
    with Child(HAS_A_CHILD, log=log) as child:
        grandchild = int(child.wait_ready(child.tail, LIMIT))
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait(LIMIT) == -signal.SIGKILL
    eventually(lambda: not is_running(grandchild))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal")
@pytest.mark.parametrize("moment", range(5))
def test_a_child_dies_with_its_killed_parent_however_early(tmp_path: Path, moment: int) -> None:
    program = (
        "import sys, time; from pathlib import Path;"
        "from eventhub_checkpoints.cli.demo.children import Child;"
        f"print(Child({SLEEPS!r}, log=Path({str(tmp_path / 'log')!r})).pid, flush=True);"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(moment * 0.002)
        parent.kill()
    eventually(lambda: not is_running(child))


def test_variables_are_added_to_the_environment(log: Path) -> None:
    command = [sys.executable, "-c", "import os; print(os.environ['COLOUR'], 'PATH' in os.environ)"]
    with Child(command, log=log, env={"COLOUR": "green"}) as child:
        child.wait(LIMIT)
        assert child.tail() == "green True"


def test_ctrl_c_of_the_terminal_does_not_reach_a_child(log: Path) -> None:
    with Child(SLEEPS, log=log) as child:
        assert os.getpgid(child.pid) == child.pid != os.getpgid(0)


def test_a_free_port_is_free() -> None:
    assert 0 < free_port() < 65536
