"""README, samples and every Python block of the pages pass mypy and pyright, as a user runs them.

Each page is one file, because its blocks share a namespace, or one file for each title of its
content tabs; blank lines stand for the prose, so that an error names the line of the page. Each
tool runs once, over everything.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import eventhub_checkpoints
from page_blocks import blocks

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
SAMPLES = sorted(ROOT.glob("samples/*.py"))
INSTALLED = Path(eventhub_checkpoints.__file__).parent.parent

OPENED = """
from collections.abc import Callable
from functools import partial
from typing import assert_type

from azure.eventhub import CheckpointStore, EventHubConsumerClient, EventData, PartitionContext
from azure.eventhub.aio import CheckpointStore as AioCheckpointStore
from eventhub_checkpoints import (
    Checkpointer,
    CheckpointManager,
    EventProcessor,
    Scope,
    aio,
    open_store,
)
from eventhub_checkpoints.arrow import BatchConsumerClient

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def forget(url: str) -> None:
    with open_store(url) as store:
        client_takes: CheckpointStore = store
        assert_type(store.list_scopes(), list[Scope])
        assert_type(store.delete_scope(*SCOPE), int)
        assert_type(store.delete_partition(*SCOPE, "0"), int)


async def forget_aio(url: str) -> None:
    async with aio.open_store(url) as store:
        client_takes: AioCheckpointStore = store
        assert_type(await store.list_scopes(), list[Scope])
        assert_type(await store.delete_scope(*SCOPE), int)


def receive(
    client: EventHubConsumerClient,
    checkpointer: Checkpointer,
    on_event_batch: Callable[[PartitionContext, list[EventData]], None],
) -> None:
    client.receive_batch(on_event_batch, prefetch=20, **checkpointer.handlers)


class Rows:
    def __init__(self, context: PartitionContext, checkpoints: CheckpointManager) -> None:
        self.count = 0

    def process_batch(self, batch: object) -> None:
        self.count += 1


def process(hub: str, store: CheckpointStore) -> None:
    EventProcessor(partial(BatchConsumerClient, hub, max_rows=9), Rows, store=store).run()
    client = BatchConsumerClient(hub, checkpoint_store=store)
    EventProcessor(client, Rows, store=store).run()
"""
"""What users do with a store that `open_store` returned, where no page shows it."""

MYPY = """
[mypy]
strict = true
# redis-py has no types for Sentinel.
untyped_calls_exclude = redis
[mypy-pyarrow.*,cassandra.*,confluent_kafka.*]
# They ship no types.
ignore_missing_imports = true
"""
PYRIGHT = {
    "typeCheckingMode": "strict",
    # These four report what other packages leave untyped: pyarrow, redis-py's Sentinel.
    "reportMissingTypeStubs": False,
    "reportUnknownArgumentType": False,
    "reportUnknownMemberType": False,
    "reportUnknownVariableType": False,
    # A page shows an import by itself, and imports again where a reader may start.
    "reportUnusedImport": False,
    "reportDuplicateImport": False,
    "reportUnusedVariable": False,
}


def python_of(page: Path, tab: str) -> str:
    """The Python of a page that stands outside of tabs, or up to the last one of a title's tabs.

    Each block is at its own line. What is folded is a program of its own.
    """
    found = blocks(page)
    is_folded = any(block.is_folded for block in found if block.tab == tab)
    shown = [block for block in found if block.tab in ({tab} if is_folded else {"", tab})]
    while tab and shown[-1].tab != tab:
        shown.pop()
    lines: list[str] = []
    for block in shown:
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each page and sample, and for what only this test has."""
    folder = tmp_path_factory.mktemp("types")
    for page in PAGES:
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
        tabs = {block.tab for block in blocks(page) if block.language == "python"} | {""}
        for number, tab in enumerate(sorted(tabs)):
            (folder / f"page_{name}_{number}.py").write_text(python_of(page, tab))
    for sample in SAMPLES:
        (folder / sample.name).write_text(sample.read_text())
    (folder / "opened.py").write_text(OPENED)
    (folder / "mypy.ini").write_text(MYPY)
    return folder


def check(tool: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed; the extra `test` has it")
    environment = dict(os.environ)
    if "site-packages" not in INSTALLED.parts:  # from a checkout
        environment["MYPYPATH"] = str(INSTALLED)
    return subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


Checked = Future[subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def checks(folder: Path) -> Iterator[dict[str, Checked]]:
    """The results of both tools, which run side by side: each keeps one core busy."""
    files = sorted(path.name for path in folder.glob("*.py"))
    settings = PYRIGHT | {"include": ["*.py"], "extraPaths": [str(INSTALLED)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    arguments = {
        "mypy": ["--config-file=mypy.ini", *files],
        "basedpyright": ["--pythonpath", sys.executable, "--outputjson"],
    }
    with ThreadPoolExecutor(len(arguments)) as pool:
        yield {tool: pool.submit(check, tool, words, folder) for tool, words in arguments.items()}


def test_mypy_strict_finds_nothing_in_what_users_copy(
    folder: Path, checks: dict[str, Checked]
) -> None:
    files = sorted(path.name for path in folder.glob("*.py"))
    checked = checks["mypy"].result()
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"no issues found in {len(files)} source files" in checked.stdout


def test_pyright_finds_nothing_in_what_users_copy(folder: Path, checks: dict[str, Checked]) -> None:
    checked = checks["basedpyright"].result()
    report = json.loads(checked.stdout)
    found = [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']} "
        f"({each.get('rule')})"
        for each in report["generalDiagnostics"]
    ]
    assert checked.returncode == 0, "\n".join(found)
    assert report["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))


def test_a_wrong_argument_would_be_found(folder: Path) -> None:
    """The types are no `Any` that hides everything."""
    (folder / "wrong").mkdir()
    (folder / "wrong" / "wrong.py").write_text(
        "from eventhub_checkpoints import open_store\n"
        "from eventhub_checkpoints.checkpointer import Handlers\n"
        "wrong: Handlers = {'on_partition_initialize': print, 'on_partition_close': 5}\n"
        "open_store('memory:').no_such_method()\n"
    )
    checked = check("mypy", ["--config-file=mypy.ini", "wrong/wrong.py"], folder)
    assert "[typeddict-item]" in checked.stdout
    assert "no_such_method" in checked.stdout
