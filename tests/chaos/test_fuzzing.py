"""A few inputs of every target of fuzzing, and proof that a fault is found.

`PYTHONPATH=src:tools python -m fuzzing` runs more of it.
"""

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from campaigns import IS_CAMPAIGN
from eventhub_checkpoints.errors import InvalidRecordError
from examples import examples
from fuzzing import __main__ as command
from fuzzing.mutations import inputs
from fuzzing.target import LONGEST, Target
from fuzzing.targets import TARGETS

SHORT = LONGEST if IS_CAMPAIGN else 4096
"""Bytes of an input."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def test_the_corpus_of_each_target_is_accepted() -> None:
    refused = [
        (target.name, data)
        for target in TARGETS.values()
        for data in target.corpus
        if target.run(data) != "accepted"
    ]
    assert refused == []
    assert all(target.corpus for target in TARGETS.values())


# An item is a parser of foreign bytes or text.
@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_whatever_is_parsed_is_accepted_or_refused(target: Target) -> None:
    @examples(80, suppress_health_check=list(HealthCheck))
    @given(inputs(target.corpus, SHORT) | st.binary(max_size=64))
    def run(data: bytes) -> None:
        assert target.run(data) in ("accepted", "refused")

    run()


def test_the_page_lists_every_target() -> None:
    page = (Path(__file__).parents[2] / "tools/CAMPAIGNS.md").read_text()
    section = page.partition("### Foreign bytes and text")[2].partition("## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall("`([^`]+)`", "".join(rows))) == sorted(TARGETS)


def divide(data: bytes) -> float:
    if data == b"refused":
        raise InvalidRecordError("field", data, "another value")
    return 1 / (len(data) - 5)


def test_a_fault_is_printed_with_an_input_that_shows_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path))
    # Each input takes a thousandth of a second, so 200 are tried on any machine.
    monkeypatch.setattr(command, "monotonic", itertools.count(step=0.001).__next__)
    monkeypatch.setitem(TARGETS, "divide", Target("divide", divide, [b"1234", b"refused"]))
    arguments = ["--target", "divide", "--engine", "random", "--seconds", "0.2", "--seed", "7"]
    assert command.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "random: seed 7, 1 targets" in printed
    assert "ZeroDivisionError in test_fuzzing.py, divide" in printed
    (file,) = tmp_path.iterdir()
    assert str(file) in printed
    with pytest.raises(ZeroDivisionError):
        command.main(["--target", "divide", "--input", str(file)])
    assert command.main(["--target", "divide", "--list"]) == 0


def test_no_input_is_longer_than_the_longest() -> None:
    @examples(100)
    @given(inputs([b"x" * LONGEST], LONGEST))
    def check(data: bytes) -> None:
        assert len(data) <= LONGEST

    check()
