"""Callers whose hub or store is away, on the real clock; `python -m outages` tries every cell."""

import pytest

import campaigns
from outages.__main__ import main

pytestmark = pytest.mark.long

SHORT = ("driver", "task", "sink", "ehcp lag", "redis sync verify", "redis aio write")
FAULTS = ("refused", "mute")
LONGER_THAN_THE_CLIENT = 8.0


def test_every_cell_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    words: list[str] = []
    if not campaigns.IS_CAMPAIGN:
        seconds = str(LONGER_THAN_THE_CLIENT)
        words = ["--callers", *SHORT, "--faults", *FAULTS, "--seconds", seconds]
    failed = main(words)
    assert not failed, capsys.readouterr().out
