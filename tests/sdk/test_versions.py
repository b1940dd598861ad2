"""Which releases of azure-eventhub are tested, and what the log says of others."""

import logging
import re
from pathlib import Path

import pytest

from eventhub_checkpoints.sdk import fallback
from eventhub_checkpoints.sdk.fallback import FastPathError, check_version, note_version
from eventhub_checkpoints.sdk.versions import TESTED, VERSION, is_tested

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "_said", set())


def test_the_oldest_tested_release_is_that_of_tox_and_of_the_package() -> None:
    tox = (REPOSITORY / "tox.ini").read_text()
    assert re.findall(r"azure-eventhub==(\S+)", tox) == [TESTED[0]]
    project = (REPOSITORY / "pyproject.toml").read_text()
    assert re.findall(r'"azure-eventhub>=(\S+)"', project) == [TESTED[0]]


def test_the_installed_release_is_a_tested_one() -> None:
    assert is_tested(VERSION), (
        f"azure-eventhub {VERSION} is newer than the tested releases: if all tests pass, replace "
        f"{TESTED[-1]} in sdk/versions.py"
    )


@pytest.mark.parametrize("version", ["5.11.9", "6.0", "", "next"])
def test_releases_that_are_not_known(version: str) -> None:
    with pytest.raises(FastPathError, match="is not supported; install"):
        check_version(version)


@pytest.mark.parametrize("version", ["5.12.0", "5.13.4", "5.15.1", "5.15.99"])
def test_of_a_tested_minor_version_nothing_is_said(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_version(version)
    assert caplog.records == []


@pytest.mark.parametrize("check", [check_version, note_version])
def test_an_untested_minor_version_is_said_once(
    check: object, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        check("5.16.0b1")  # type: ignore[operator]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "azure-eventhub 5.16.0b1 is not tested with this release of eventhub-checkpoints, which "
        "uses private parts of the client; 5.12.0 to 5.15.1 are. If something does not work, look "
        "for a newer release of eventhub-checkpoints, or install 'azure-eventhub<5.16'"
    )


def test_it_is_said_as_soon_as_a_processor_reads_a_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from eventhub_checkpoints.sdk.consumer import store_of

    monkeypatch.setattr(note_version, "__defaults__", ("5.17.0",))
    store_of(object())
    assert "azure-eventhub 5.17.0 is not tested" in caplog.text
