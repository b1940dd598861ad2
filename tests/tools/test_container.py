"""Containers are used where a Docker engine answers; where none does, that is known at once."""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROBE = """
import time
from container import containers_run
start = time.monotonic()
answer = containers_run()
print(answer, time.monotonic() - start)
"""
AT_ONCE, HANGING = 10.0, 20.0
"""Seconds, on a machine that is busy: mostly the import of docker, and the time-out of 2 s."""


@pytest.fixture(params=["tcp", "unix"])
def silent_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A socket that is listened on, and never answers; as an engine that hangs."""
    family = socket.AF_UNIX if request.param == "unix" else socket.AF_INET
    with socket.socket(family) as listening:
        listening.bind(str(tmp_path / "s") if request.param == "unix" else ("127.0.0.1", 0))
        listening.listen()
        name = listening.getsockname()
        yield f"unix://{name}" if request.param == "unix" else f"tcp://127.0.0.1:{name[1]}"


def probed(docker_host: str) -> tuple[bool, float]:
    """Whether containers run where the engine is at this address, and how long it took to know."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE],
        env={**os.environ, "DOCKER_HOST": docker_host, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    answer, seconds = done.stdout.split()
    return answer == "True", float(seconds)


@pytest.fixture(autouse=True)
def testcontainers() -> None:
    if importlib.util.find_spec("testcontainers") is None:
        pytest.skip("testcontainers is not installed; the extra `test` has it")


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "unix:///nowhere/docker.sock", "nonsense"]
)
def test_no_engine_is_known_at_once_and_quietly(address: str) -> None:
    answer, seconds = probed(address)
    assert not answer
    assert seconds < AT_ONCE


def test_an_engine_that_hangs_is_given_up_soon(silent_engine: str) -> None:
    answer, seconds = probed(silent_engine)
    assert not answer
    assert seconds < HANGING


@pytest.mark.parametrize("name", ["blob", "postgres", "redis"])
def test_without_an_engine_the_local_server_is_prepared(name: str) -> None:
    prepare = Path(__file__).resolve().parents[2] / "tools" / "prepare.py"
    done = subprocess.run(
        [sys.executable, prepare, "--only", name],
        env={
            **os.environ,
            "DOCKER_HOST": "tcp://127.0.0.1:1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "image" not in done.stdout
    assert done.stdout.startswith(f"{name}: ")
