"""The benchmark command, as small as it can be asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.usefixtures("azurite")
def test_one_quick_case_prints_its_row_and_writes_its_figures(tmp_path: Path) -> None:
    """It starts a server of its own, as it does for a user: that of the tests holds their rows."""
    written = tmp_path / "figures.json"
    words = ["--quick", "--rounds", "1", "--only", "renew", "--json", str(written)]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "renew an ownership" in ran.stdout
    assert "at most 1.1 x bare" in ran.stdout
    (case,) = json.loads(written.read_text())["cases"]
    assert case["name"] == "renew"
    assert {*case["measures"]} == {"cpu", "wall"}
    for measure in case["measures"].values():
        assert {*measure["median"]} == {"ours", "official", "bare"}
        assert all(value > 0 for value in measure["median"].values())


def test_an_unknown_case_is_answered_with_the_known_ones() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "first-claim" in ran.stderr
