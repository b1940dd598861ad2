"""Containers are used where a Docker engine answers; where none does, that is known at once."""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import LIMIT

PROBE = """
import os, sys
from container import containers_run
for os.environ["DOCKER_HOST"] in sys.argv[1:]:
    print(containers_run())
"""


@pytest.fixture
def silent_engines(tmp_path: Path) -> Iterator[list[str]]:
    """Sockets that are listened on, and never answer; as an engine that hangs."""
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        yield [f"unix://{unix.getsockname()}", f"tcp://127.0.0.1:{tcp.getsockname()[1]}"]


def probed(*addresses: str) -> list[str]:
    """Whether containers run where the engine is at each address, said without a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, *addresses],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(autouse=True)
def testcontainers() -> None:
    if importlib.util.find_spec("testcontainers") is None:
        pytest.skip("testcontainers is not installed; the extra `test` has it")


def test_that_there_is_no_engine_is_known_quietly() -> None:
    addresses = "tcp://127.0.0.1:1", "unix:///nowhere/docker.sock", "nonsense"
    assert probed(*addresses) == ["False"] * 3


def test_engines_that_hang_are_given_up(silent_engines: list[str]) -> None:
    assert probed(*silent_engines) == ["False"] * 2


def test_without_an_engine_the_local_servers_are_prepared() -> None:
    prepare = Path(__file__).resolve().parents[2] / "tools" / "prepare.py"
    names = "blob", "postgres", "redis"
    done = subprocess.run(
        [sys.executable, prepare, *(f"--only={name}" for name in names)],
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
    assert tuple(line.partition(": ")[0] for line in done.stdout.splitlines()) == names
