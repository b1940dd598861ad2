"""`python -m eventhub_checkpoints.conformance`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints.conformance.__main__ import main
from waiting import LIMIT

BROKEN = """
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.base import Listing

class Forgetful(MemoryCheckpointStore):
    def read_checkpoints(self, scope):
        return Listing([])
"""


SDK_STORE = "azure.eventhub._eventprocessor.in_memory_checkpoint_store"
STORES = """
from eventhub_checkpoints import MemoryCheckpointStore as Sync, aio
from eventhub_checkpoints.stores.memory.rows import MemoryRows

Async = aio.MemoryCheckpointStore
rows = MemoryRows()

async def opened():
    return Async(rows)

def fails():
    raise RuntimeError("no,\\nand no")
"""


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with what this process can import."""
    path = os.pathsep.join(one for one in sys.path if one)
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Factories of either variant, a coroutine function, and one that fails."""
    (tmp_path / "stores_of_a_test.py").write_text(STORES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stores_of_a_test", raising=False)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "broken_store.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    return "broken_store:Forgetful"


@pytest.mark.parametrize("variant", [[], ["--aio"]])
def test_a_store_that_keeps_the_contract_ends_with_0(
    variant: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory:", *variant, "--only", "G9"]) == 0
    output = capsys.readouterr().out
    assert "level 1, black box" in output
    assert "level 2, our base class" in output
    assert "FAILED" not in output


def test_a_store_that_does_not_ends_with_1_and_says_what_is_wrong(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([broken, "--only", "a_checkpoint_is_listed_as_stored"]) == 1
    output = capsys.readouterr().out
    assert "FAILED     a_checkpoint_is_listed_as_stored" in output
    assert "but: the stored checkpoint is not listed" in output


def test_what_could_not_be_shown_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory:", "--only", "a_stalled_list_ends", "--only", "a_store_is_true"]) == 0
    output = capsys.readouterr().out
    assert "not shown (needs stall): a_stalled_list_ends" in output
    assert "; 1 passed, 1 not shown, in " in output.splitlines()[-1]


def test_the_report_is_to_be_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory:", "--json", "--only", "G7"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["store"] == "memory: (sync)"
    assert report["totals"]["failed"] == 0
    assert {check["verdict"] for check in report["checks"]} == {"passed"}


def test_the_checks_that_passed_are_named_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    main(["memory:", "--verbose", "--only", "a_store_is_true"])
    assert "passed     a_store_is_true" in capsys.readouterr().out


def test_the_list_has_every_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "P17"]) == 0
    assert "A store is true" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense://x"], "expected one of cassandra:, http:, https:, "),
        (["no_such_module:factory"], "cannot be imported"),
        (["memory:", "--only", "G99"], "'G99' is neither a check nor a guarantee"),
        (["memory:", "--accessors", "nothing"], "expected package.module:function"),
        ([], "give a store URL"),
        (["os:getcwd"], "os:getcwd returned str; expected a checkpoint store"),
        ([f"{SDK_STORE}:InMemoryCheckpointStore", "--create"], "leave --create out"),
        (["os.path:join"], "could not be called without arguments"),
        (["stores_of_a_test:fails"], "fails could not be read: RuntimeError: no, and no"),
        (["stores_of_a_test:Sync", "--aio"], "Sync makes a sync store; leave --aio out"),
        (["stores_of_a_test:Async"], "Async makes an async store; give --aio"),
        (["stores_of_a_test:opened"], "opened makes an async store; give --aio"),
    ],
)
@pytest.mark.usefixtures("stores")
def test_what_cannot_be_tried_ends_with_2_and_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_missing_container_is_reported_once_and_created_on_request(
    azurite: Any, blob_container: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with blob_container.client() as client:
        client.delete_container()
    assert main([blob_container.url]) == 2
    assert "create = true in a configuration, or give --create" in capsys.readouterr().err
    assert main([blob_container.url, "--create", "--only", "G7"]) == 0


@pytest.mark.parametrize("variant", [[], ["--aio"]])
def test_accessors_show_more_of_a_container(
    variant: list[str], blob_container: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [blob_container.url, *variant, "--only", "an_etag_is_never_used_again"]
    assert main([*arguments, "--accessors", "blob_accessors:of_emulator"]) == 0
    assert "1 passed" in capsys.readouterr().out
    main(arguments)
    assert "not shown (needs put_raw)" in capsys.readouterr().out


@pytest.mark.usefixtures("stores")
def test_a_factory_may_be_a_coroutine_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stores_of_a_test:opened", "--aio", "--only", "G7"]) == 0
    assert "stores_of_a_test:opened (aio)" in capsys.readouterr().out


@pytest.mark.waits
def test_the_installed_command_finds_modules_of_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "stores_of_a_folder.py").write_text(STORES)
    text = (
        "from eventhub_checkpoints.cli import main; import sys\n"
        "sys.argv = ['ehcp', 'conform', 'stores_of_a_folder:Sync', '--only', 'a_store_is_true']\n"
        "main()"
    )
    # -P: as for an installed script, the current folder is not on the path by itself.
    done = run_in(tmp_path, "-P", "-c", text)
    assert done.returncode == 0, done.stderr


@pytest.mark.waits
def test_it_runs_without_pytest() -> None:
    text = (
        "import sys; sys.modules['pytest'] = None\n"
        "from eventhub_checkpoints.conformance.__main__ import main\n"
        "sys.exit(main(['memory:', '--only', 'G7']))"
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr


def test_a_factory_whose_stores_share_no_rows_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own_rows = "eventhub_checkpoints.memory:MemoryCheckpointStore"
    assert main([own_rows, "--only", "a_claim_without_an_etag_loses_to_a_stored_row"]) == 1
    assert "each must open the same backend" in capsys.readouterr().err


def test_a_store_with_another_defect_gets_no_note_about_its_rows(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{broken}", "--only", "a_checkpoint_is_listed_as_stored"]) == 1


HANGS = """
import threading
from eventhub_checkpoints import MemoryCheckpointStore

class Hangs(MemoryCheckpointStore):
    def try_claim(self, proposal):
        threading.Event().wait()
"""


@pytest.mark.waits
def test_a_check_that_does_not_end_is_named_with_where_it_hangs(tmp_path: Path) -> None:
    (tmp_path / "hanging_store.py").write_text(HANGS)
    command = ["-m", "eventhub_checkpoints.conformance", "hanging_store:Hangs"]
    options = ["--limit", "3s", "--only", "a_first_claim_wins"]
    done = run_in(tmp_path, *command, *options)
    assert done.returncode == 1
    assert "a_first_claim_wins has not ended within 3 s. Each thread is here:" in done.stderr
    assert "hanging_store.py" in done.stderr


@pytest.mark.waits
def test_a_reader_that_has_seen_enough_of_the_list_gets_no_traceback() -> None:
    command = [sys.executable, "-m", "eventhub_checkpoints.conformance", "--list"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=LIMIT)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon"])
def test_a_limit_that_is_no_time_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["memory:", "--limit", text])
    assert ended.value.code == 2
    assert "argument --limit" in capsys.readouterr().err
