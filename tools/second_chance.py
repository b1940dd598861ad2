"""Run pytest; then run each test that failed once more, alone, and tell which ones were flaky.

For tests on the real clock only. A test that fails twice fails the run. One that passes alone is
printed as `FLAKY name` and is to be mended; three of them fail the run too.

    python tools/second_chance.py [ARGUMENTS OF PYTEST]
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

FLAKY_ALLOWED = 2


def pytest(cache: str, words: Sequence[str]) -> int:
    """Run pytest in a process of its own; return its exit status."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *words]
    return subprocess.run(command, check=False).returncode


def failed_in(cache: str) -> list[str]:
    """Return the names of the tests that failed in the latest run."""
    path = Path(cache, "v/cache/lastfailed")
    return sorted(json.loads(path.read_text())) if path.exists() else []


def verdict(flaky: Sequence[str], failed: Sequence[str]) -> str:
    """Return the last line of the report; a run that passes says so in its first word."""
    if failed:
        return f"failed: {len(failed)} of the tests that failed did so again"
    if len(flaky) > FLAKY_ALLOWED:
        return f"failed: {len(flaky)} flaky tests, {FLAKY_ALLOWED} are allowed"
    return f"passed: {len(flaky)} flaky" if flaky else "passed"


def main() -> int:
    """Run the tests of the command line; return the exit status of both runs together."""
    with TemporaryDirectory() as cache:
        status = pytest(cache, sys.argv[1:])
        if status != 1:
            return status
        names = failed_in(cache)
        failed = [name for name in names if pytest(cache, [name]) != 0]
        flaky = [name for name in names if name not in failed]
    for name in flaky:
        print(f"FLAKY {name}")
    for name in failed:
        print(f"FAILED TWICE {name}")
    last = verdict(flaky, failed)
    print(last)
    return int(not last.startswith("passed"))


if __name__ == "__main__":
    sys.exit(main())
