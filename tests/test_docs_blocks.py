"""Every code block of README and docs: the Python runs, the commands work, the data parses.

No block needs Azure: the environment that a page reads names the local hub and Azurite.
"""

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from azure.storage.blob import generate_container_sas

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.stores.blob.protocol import EMULATOR_ACCOUNT, EMULATOR_KEY
from page_blocks import Block, blocks

pytestmark = pytest.mark.waits

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
BLOCKS = [block for page in PAGES for block in blocks(page)]
PAGE_SECONDS = 240
COMMAND_SECONDS = 60
GRACE_SECONDS = 2
"""In which a batch whose last line was printed is checkpointed."""

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
PLAIN = {"text", "dockerfile", "diff", "sql", "lua", "mermaid"}


@pytest.fixture
def environment(blob_container, servers, tmp_path) -> Iterator[dict[str, str]]:
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
            "BLOB_CONTAINER_SAS_URL": f"{blob_container.url}?{sas}",
            "POSTGRES_URL": servers("postgres").url,
            "REDIS_URL": servers("redis").url,
            "CASSANDRA_URL": f"{servers('cassandra').url}/eventhub_checkpoints",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUNBUFFERED": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }


WITH_PYTHON = sorted({b.page for b in BLOCKS if b.language == "python" and b.runs})


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "tools/page_blocks.py", page],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


def until_ctrl_c(code: str, folder: Path, environment: dict[str, str], lines: int) -> str:
    """What code prints that gets Ctrl-C a moment after so many lines."""
    (folder / "quick_start.py").write_text(code)
    with subprocess.Popen(
        [sys.executable, "-u", "quick_start.py"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            printed = [process.stdout.readline() for _ in range(lines)]
            time.sleep(GRACE_SECONDS)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=COMMAND_SECONDS)
        finally:
            process.kill()
    return "".join(printed) + rest


def test_the_quick_start_prints_what_readme_shows_in_both_runs(tmp_path: Path) -> None:
    page = blocks(ROOT / "README.md")
    code = next(block.text for block in page if block.language == "python")
    first, second = (
        next(block.text for block in page if block.note == note)
        for note in ("first run", "second run")
    )
    with LocalHub({"orders": 2}) as hub:
        for partition_id in hub.partition_ids("orders"):
            hub.publish("orders", partition_id, ["order"] * 3)
        given = {
            **os.environ,
            "EVENTHUB_CONNECTION_STRING": hub.connection_string("orders"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        lines = len(first.splitlines()) - 1
        printed = until_ctrl_c(code, tmp_path, given, lines)
        assert sorted(printed.splitlines()) == sorted(first.splitlines())
        # One more in each partition: were an old one printed again, it would come before these.
        for partition_id in hub.partition_ids("orders"):
            hub.publish("orders", partition_id, ["order"])
        printed = until_ctrl_c(code, tmp_path, given, 2)
        assert sorted(printed.splitlines()) == ["0 3", "1 3", *second.splitlines()]


def commands(block: Block) -> list[str]:
    """What stands after `$ `, with lines that end in a backslash joined."""
    joined = block.text.replace("\\\n", " ")
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def separate(command: str) -> list[str]:
    return [part.strip() for part in command.split("&&")]


COMMANDS = [
    pytest.param(block, part, id=f"{name_of(block.page)}:{block.line}:{part}")
    for block in BLOCKS
    if block.language == "console" and block.runs
    for command in commands(block)
    for part in separate(command)
]


def run_command(block: Block, command: str, environment: dict[str, str], folder: Path) -> None:
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}" if "|" not in command else command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            first = ""
            if block.runs_until_ctrl_c:
                assert process.stdout is not None
                first = process.stdout.readline()
                time.sleep(0.2)  # a reader is not quicker
                process.send_signal(signal.SIGINT)
            try:
                rest, _ = process.communicate(timeout=COMMAND_SECONDS / 2)
            except subprocess.TimeoutExpired:
                # The client may have swallowed the cancellation; see "Stopping" in operations.md.
                process.send_signal(signal.SIGINT)
                rest, _ = process.communicate(timeout=COMMAND_SECONDS / 2)
        finally:
            process.kill()
    ended_well = {0, 130, -signal.SIGINT} if block.runs_until_ctrl_c else {0}
    assert process.returncode in ended_well, first + rest
    assert "Traceback" not in first + rest


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


OURS = re.compile(r"python3? -m eventhub_checkpoints|eventhub-checkpoints |ehcp ")
CHECKED = [
    (re.compile(r"(python3? -m )?tox\b"), check_tox),
    (re.compile(r"(python3? -m )?pip install "), check_pip),
    (re.compile(r"python3? [\w/]+\.py\b"), check_file),
]


@pytest.mark.parametrize(("block", "command"), COMMANDS)
def test_a_command_works(
    block: Block, command: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if any(command.startswith(known) for known in TESTED_ELSEWHERE):
        return
    if OURS.match(command):
        run_command(block, command, request.getfixturevalue("environment"), tmp_path)
        return
    if command.split()[0] in FOR_THE_READER:
        return
    checks = [check for pattern, check in CHECKED if pattern.match(command)]
    assert checks, f"{block.place}: nothing here knows how to check `{command}`"
    checks[0](shlex.split(command))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_names_its_language(page: Path) -> None:
    known = RUN | PLAIN | set(PARSERS)
    odd = [f"{b.place}: {b.language!r}" for b in blocks(page) if b.language not in known]
    assert not odd, f"use one of {sorted(known)}: {odd}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_data_parses(page: Path) -> None:
    for block in blocks(page):
        if block.language in PARSERS and block.runs:
            try:
                PARSERS[block.language](block.text)
            except ValueError as error:
                raise AssertionError(f"{block.place}: {error}") from error


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_says_why(page: Path) -> None:
    for block in blocks(page):
        if not block.runs:
            assert len(block.note.partition(":")[2].split()) >= 3, f"{block.place}: give a reason"
