"""The rule about missing parts: a skip names the part, and may be forbidden."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.waits

ROOT = Path(__file__).resolve().parents[2]
SKIPS = {
    "test_in_a_test": "import pytest\ndef test_it(): pytest.skip('no hub')",
    "test_in_a_fixture": (
        "import pytest\n@pytest.fixture\ndef hub(): pytest.skip('no hub')\ndef test_it(hub): pass"
    ),
    "test_by_a_mark": "import pytest\n@pytest.mark.skip(reason='no hub')\ndef test_it(): pass",
    "test_of_a_whole_file": "import pytest\npytest.skip('no hub', allow_module_level=True)",
}


def run(folder: Path, files: dict[str, str], required: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    paths = [str(ROOT / "tools"), *filter(None, sys.path)]
    environment = {"REQUIRE_SERVERS": required, "PYTHONPATH": os.pathsep.join(paths)}
    options = ["-q", "-ra", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    options += ["-p", "no:asyncio"]  # as in this project's own settings
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"{name}.py" for name in files)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


EXPECTED = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert False"
"""A failure that is expected, which is no skip."""


def test_a_missing_part_fails_the_run_where_all_are_required(tmp_path: Path) -> None:
    ran = run(tmp_path, SKIPS | {"test_expected": EXPECTED}, required="1")
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    assert ran.stdout.count("REQUIRE_SERVERS is set, so this is a failure") >= len(SKIPS)
    assert "1 failed, 1 xfailed, 3 errors in" in ran.stdout


def test_a_missing_part_is_otherwise_a_skip_with_its_reason(tmp_path: Path) -> None:
    ran = run(tmp_path, SKIPS, required="0")
    assert ran.returncode == pytest.ExitCode.OK, ran.stdout
    assert "no hub" in ran.stdout
    assert "4 skipped" in ran.stdout
