"""A Python that leaves assertions out must not certify anything."""

import subprocess
import sys

import pytest

from waiting import LIMIT

pytestmark = pytest.mark.waits


def test_nothing_is_certified_where_assertions_are_left_out() -> None:
    command = [sys.executable, "-O", "-m", "eventhub_checkpoints.conformance", "memory:"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode not in (0, 1)  # 1 is a store that fails
    assert "without -O" in ran.stderr
    assert "Traceback" not in ran.stderr
