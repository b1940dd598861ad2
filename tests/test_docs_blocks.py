"""Every code block of README and docs: the Python runs, the commands work, the data parses.

No block needs Azure: the environment that a page reads names the local hub and Azurite. A block is
judged by what it prints and how it ends; how long it takes says nothing. Pages that start Spark,
and those that go on until Ctrl-C, have the marker `long`.
"""

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from azure.storage.blob import generate_container_sas

from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from operators import ended, quiet_client
from page_blocks import Block, blocks
from running import Running
from waiting import eventually

pytestmark = [
    pytest.mark.waits,
    # The client leaves the sockets of links that the hub has ended to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BLOCKS = [block for page in PAGES for block in blocks(page)]

TESTED_ELSEWHERE = {
    "eventhub-checkpoints demo": "it runs for a minute; it has tests of its own",
    "ehcp demo": "the same command",
}
FOR_THE_READER = {
    "git": "works on the reader's clone",
    "pre-commit": "works on the reader's clone",
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def parse_ini(text: str) -> None:
    configparser.ConfigParser().read_string(text)


PARSERS: dict[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "json": json.loads,
    "ini": parse_ini,
    "yaml": yaml.safe_load,
}
RUN = {"python", "console"}
PLAIN = {"text", "dockerfile", "diff", "sql", "lua", "mermaid", "py"}
"""Neither run nor parsed; `py` is Python that needs what no test has, such as an Azure identity."""


@pytest.fixture
def environment(blob_container, tmp_path) -> Iterator[dict[str, str]]:
    """What a reader has set: a hub with events, a storage account, a container."""
    with LocalHub({"orders": 8}) as hub:
        for partition_id in hub.partition_ids("orders"):
            hub.publish("orders", partition_id, [f"order {n}" for n in range(20)])
        sas = generate_container_sas(
            EMULATOR_ACCOUNT,
            blob_container.name,
            account_key=EMULATOR_KEY,
            permission="racwdl",
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        yield {
            **os.environ,
            "EVENTHUB_CONNECTION_STRING": hub.connection_string("orders"),
            "EVENTHUB_NAMESPACE": f"127.0.0.1:{hub.port}",
            "EVENTHUB_NAME": "orders",
            "AZURE_STORAGE_CONNECTION_STRING": blob_container.connection_string,
            "BLOB_CONTAINER": blob_container.name,
            "BLOB_CONTAINER_URL": blob_container.url,
            "CHECKPOINT_STORE": blob_container.url,
            "EHCP_STORE": blob_container.url,
            "EHCP_HUB": hub.connection_string("orders"),
            "EHCP_STATE_DIR": str(tmp_path / "state"),
            "HEALTH_PORT": "0",
            "BLOB_CONTAINER_SAS_URL": f"{blob_container.url}?{sas}",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUNBUFFERED": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }


@pytest.fixture
def with_servers(environment: dict[str, str], servers) -> dict[str, str]:
    """The same, and the databases that pages name."""
    return {
        **environment,
        "POSTGRES_URL": servers("postgres").url,
        "REDIS_URL": servers("redis").url,
        "TABLE_URL": f"table+{servers('table').url}/positions",
        "CASSANDRA_URL": f"{servers('cassandra').url}/eventhub_checkpoints",
    }


def run_pages(pages: list[Path], environment: dict[str, str], folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "tools/page_blocks.py", *pages],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


PYTHON = [block for block in BLOCKS if block.language == "python" and block.runs]
OF_SPARK = sorted({block.page for block in PYTHON if "pyspark" in block.text})
OF_README = {block.text for block in PYTHON if block.page.name == "README.md"}
REPEATING = {page for page in PAGES if page.name != "README.md"} - {
    block.page for block in PYTHON if block.text not in OF_README
}
"""Pages whose only Python is that of README, such as the quick start."""
UNTIL_CTRL_C = {block.page for block in PYTHON if block.runs_until_ctrl_c}
ALONE = sorted({block.page for block in PYTHON} - {*OF_SPARK, *REPEATING})


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] if page in UNTIL_CTRL_C else [])
        for page in ALONE
    ],
    ids=name_of,
)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, with_servers: dict[str, str], tmp_path: Path
) -> None:
    run_pages([page], with_servers, tmp_path)


@pytest.mark.long
def test_the_python_of_the_pages_on_spark_runs_from_top_to_bottom(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """In one process, whose pages share a Spark session, as cells of a notebook do."""
    assert len(OF_SPARK) >= 4
    run_pages(OF_SPARK, environment, tmp_path)


def until_ctrl_c(
    code: str, folder: Path, environment: dict[str, str], ready: Callable[[], object]
) -> str:
    """What code prints that gets Ctrl-C once it has done what is waited for."""
    (folder / "quick_start.py").write_text(code)
    with Running([sys.executable, "-u", "quick_start.py"], folder, environment) as running:
        eventually(ready)
        running.stop(signal.SIGINT)
    return running.printed


OF_QUICK_START, OF_TUTORIAL = (
    [block for block in blocks(ROOT / page) if "checkpoint_store=store" in block.text]
    for page in ("README.md", "docs/tutorials/first-consumer.md")
)


def test_the_quick_start_has_a_program_for_each_client() -> None:
    assert [block.tab for block in OF_QUICK_START] == ["", "The same without asyncio"]
    assert [block.tab for block in OF_TUTORIAL] == ["asyncio", "sync"]
    assert [block.text for block in OF_TUTORIAL] == [block.text for block in OF_QUICK_START]


@pytest.mark.parametrize("program", OF_QUICK_START, ids=["aio", "sync"])
def test_the_quick_start_prints_what_readme_shows_in_both_runs(
    program: Block, tmp_path: Path
) -> None:
    code = program.text
    page = blocks(ROOT / "README.md")
    first = next(block.text for block in page if block.note == "first run")
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    with LocalHub({"orders": 2}) as hub, open_store(url) as store:
        store.create()
        partition_ids = hub.partition_ids("orders")
        address = HubAddress.from_connection_string(hub.connection_string("orders"))
        given = {
            "EVENTHUB_CONNECTION_STRING": hub.connection_string("orders"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

        def saved() -> set[int | None]:
            rows = store.list_checkpoints(*address.scope())
            return {row["sequence_number"] for row in rows if len(rows) == len(partition_ids)}

        for partition_id in partition_ids:
            hub.publish("orders", partition_id, ["order"] * 3)
        printed = until_ctrl_c(code, tmp_path, given, lambda: saved() == {2})
        assert sorted(printed.splitlines()) == sorted(first.splitlines())
        # One more in each partition: were an old one printed again, it would come before these.
        for partition_id in partition_ids:
            hub.publish("orders", partition_id, ["order"])
        printed = until_ctrl_c(code, tmp_path, given, lambda: saved() == {3})
        assert sorted(printed.splitlines()) == ["0 3", "1 3"]


def commands(block: Block) -> list[str]:
    """What stands after `$ `, with lines that end in a backslash joined."""
    joined = block.text.replace("\\\n", " ")
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def separate(command: str) -> list[str]:
    return [part.strip() for part in command.split("&&")]


COMMANDS = [
    (block, part)
    for block in BLOCKS
    if block.language == "console" and block.runs
    for command in commands(block)
    for part in separate(command)
]
OURS = re.compile(r"python3? -m eventhub_checkpoints|eventhub-checkpoints |ehcp ")
OF_MINUTES = ("python -m eventhub_checkpoints.conformance memory:",)
"""Commands that work for a minute or so on a busy machine."""
ONCE = {
    command: block
    for block, command in reversed(COMMANDS)
    if OURS.match(command) and not command.startswith(tuple(TESTED_ELSEWHERE))
}
"""Commands of this package, each with the first block that has it."""
ENDING, GOING_ON = (
    [
        pytest.param(
            command,
            id=f"{name_of(block.page)}:{block.line}:{command}",
            marks=[pytest.mark.long] if command in OF_MINUTES else [],
        )
        for command, block in reversed(ONCE.items())
        if block.runs_until_ctrl_c == goes_on
    ]
    for goes_on in (False, True)
)


def started(command: str, environment: dict[str, str], folder: Path) -> Running:
    return Running(["bash", "-c", f"exec {command}"], folder, environment)


@pytest.mark.parametrize("command", ENDING)
def test_a_command_ends_well(
    command: str,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`ehcp` runs in this process, which saves the second that Python and its imports take."""
    if not command.startswith("ehcp "):
        with started(command, environment, tmp_path) as running:
            assert running.end() == 0, running.printed
        assert "Traceback" not in running.printed
        return
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with quiet_client():
        status, sentence = ended(shlex.split(os.path.expandvars(command))[1:], monkeypatch)
    assert (status, sentence) == (0, ""), capsys.readouterr()


@pytest.mark.parametrize("command", GOING_ON)
def test_a_command_goes_on_until_ctrl_c(
    command: str, environment: dict[str, str], tmp_path: Path
) -> None:
    with started(command, environment, tmp_path) as running:
        running.until(bool)
        assert running.stop(signal.SIGINT) == 0, running.printed
    assert "Traceback" not in running.printed


def tox_environments() -> set[str]:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    return {name.removeprefix("testenv:") for name in tox.sections()} | {"py"}


def check_tox(words: list[str]) -> None:
    chosen = words[words.index("-e") + 1].split(",") if "-e" in words else []
    unknown = {name for name in chosen if not re.fullmatch(r"py3\d+", name)} - tox_environments()
    assert not unknown, f"tox.ini has no {unknown}"
    for word in words[words.index("--") + 1 :] if "--" in words else []:
        file, _, test = word.partition("::")
        assert not file.startswith("tests/") or (ROOT / file).exists(), f"there is no {file}"
        assert test.partition("[")[0] in (ROOT / file).read_text() if test else True


def check_pip(words: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word in words[words.index("install") + 1 :]:
        if found := re.fullmatch(r"eventhub-checkpoints\[(.*)\]", word):
            unknown = set(found[1].split(",")) - set(extras["optional-dependencies"])
            assert not unknown, f"pyproject.toml has no extra {unknown}"


def check_file(words: list[str]) -> None:
    assert (ROOT / words[1]).exists(), f"there is no {words[1]}"


CHECKED = [
    (re.compile(r"(python3? -m )?tox\b"), check_tox),
    (re.compile(r"(python3? -m )?pip install "), check_pip),
    (re.compile(r"python3? [\w/]+\.py\b"), check_file),
]


def test_the_commands_of_other_programs_name_what_there_is() -> None:
    wrong = []
    for block, command in COMMANDS:
        if OURS.match(command) or command.split()[0] in FOR_THE_READER:
            continue
        checks = [check for pattern, check in CHECKED if pattern.match(command)]
        try:
            assert checks, "nothing here knows how to check it"
            checks[0](shlex.split(command))
        except AssertionError as error:
            wrong.append(f"{block.place}: `{command}`: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_block_names_its_language() -> None:
    known = RUN | PLAIN | set(PARSERS)
    odd = [f"{b.place}: {b.language!r}" for b in BLOCKS if b.language not in known]
    assert not odd, f"use one of {sorted(known)}: {odd}"


WIDTH = 88
"""Columns of a block of the site; what is wider is scrolled."""


def test_code_and_commands_fit_their_column() -> None:
    wide = [
        f"{block.place}: {line}"
        for block in BLOCKS
        if block.page.parent != ROOT
        for line in block.text.splitlines()
        if len(line) > WIDTH and (block.language not in PLAIN | {"console"} or line[:2] == "$ ")
    ]
    assert not wide, "\n".join(wide)


def test_all_data_parses() -> None:
    wrong = []
    for block in BLOCKS:
        if block.language in PARSERS and block.runs:
            try:
                PARSERS[block.language](block.text)
            except ValueError as error:
                wrong.append(f"{block.place}: {error}")
    assert not wrong, "\n".join(wrong)


def test_what_is_not_run_says_why() -> None:
    silent = [
        block.place
        for block in BLOCKS
        if not block.runs and len(block.note.partition(":")[2].split()) < 3
    ]
    assert not silent, f"give a reason: {silent}"
