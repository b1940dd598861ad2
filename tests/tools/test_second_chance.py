"""A long test that fails is run once more, alone: it is flaky, or it fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "tools/second_chance.py"
PASSES = "def test_it(): pass"
FAILS = "def test_it(): raise OSError"
FAILS_ONCE = """
from pathlib import Path
def test_it():
    seen = Path(__file__).with_suffix(".seen")
    if not seen.exists():
        seen.touch()
        raise OSError
"""
pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("tests", "status", "last", "named"),
    [
        ([PASSES], 0, "", []),
        ([PASSES, FAILS_ONCE], 0, "passed: 1 flaky", ["FLAKY test_1.py::test_it"]),
        (
            [FAILS_ONCE, FAILS],
            1,
            "failed: 1 of the tests that failed did so again",
            ["FLAKY test_0.py::test_it", "FAILED TWICE test_1.py::test_it"],
        ),
        ([FAILS_ONCE] * 3, 1, "failed: 3 flaky tests, 2 are allowed", []),
        (["not Python"], 2, "", []),
    ],
    ids=["passes", "flaky", "fails twice", "three flaky", "cannot be read"],
)
def test_the_verdict(
    tmp_path: Path, tests: list[str], status: int, last: str, named: list[str]
) -> None:
    for number, text in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(text)
    ran = subprocess.run(
        [sys.executable, PROGRAM, "-q"],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == status, ran.stdout
    lines = ran.stdout.splitlines()
    assert last in lines[-1]
    assert set(named) <= set(lines)
