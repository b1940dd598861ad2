"""The whole demo with small numbers: real processes, real kills, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.storage.blob import BlobServiceClient

from eventhub_checkpoints.cli.azurite import Azurite, connection_string
from eventhub_checkpoints.cli.demo.requirements import java_version

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(java_version() is None, reason="no Java, which PySpark needs"),
]
PARTITIONS, EVENTS = 4, 400
RUN = [sys.executable, "-c", "from eventhub_checkpoints.cli import main; main()", "demo"]
SMALL = ["--partitions", str(PARTITIONS), "--events", str(EVENTS)]


class Demo:
    """A running demo, and what it has printed so far."""

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        self.folder = folder
        self.text = ""
        self._process = subprocess.Popen(
            [*RUN, *SMALL, *options],
            env={**os.environ, "TMPDIR": str(folder), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, words: str) -> None:
        """Read on, to the line that has these words."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.text += line
            if words in line:
                return
        raise AssertionError(f"it never said {words!r}:\n{self.text}")

    def end(self) -> int:
        """Read to the end; the exit status."""
        assert self._process.stdout is not None
        self.text += self._process.stdout.read()
        self._process.stdout.close()
        return self._process.wait()

    def stop(self, number: int) -> int:
        self._process.send_signal(number)
        return self.end()

    def processes(self) -> dict[int, str]:
        """What it has started and what those have started: command lines by process id."""
        parents, found = {}, {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        family = {self._process.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        for pid in family - {self._process.pid}:
            with suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        return found

    def wait_for_process(self, words: str) -> int:
        """Wait for a process whose command line has these words; its id."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for pid, command in self.processes().items():
                if words in command:
                    return pid
            time.sleep(0.05)
        raise AssertionError(f"no process with {words!r} among {self.processes()}")

    def __enter__(self) -> "Demo":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop(signal.SIGTERM)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where all temporary files of the demo go. On a path short enough for a socket's name."""
    return tmp_path


@pytest.fixture
def storage(azurite: Azurite) -> Iterator[dict[str, str]]:
    """The tests' own Azurite; it must be left as it was."""
    with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
        before = {container.name for container in client.list_containers()}
        yield {"AZURITE_BLOB_ENDPOINT": azurite.endpoint}
        assert {container.name for container in client.list_containers()} == before


def assert_gone(pids: dict[int, str]) -> None:
    """Spark's own processes end by themselves when their parent has; a moment later."""
    deadline = time.monotonic() + 10
    while left := {pid: text for pid, text in pids.items() if is_alive(pid)}:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def table(text: str) -> dict[str, list[str]]:
    """The rows of the last table, by partition."""
    rows = re.findall(r"^ +(\d+(?: +[\d-]+){7}) *$", text, flags=re.MULTILINE)
    return {row.split()[0]: row.split()[1:] for row in rows}


def assert_complete(text: str) -> None:
    assert "A is killed (kill -9)" in text
    assert "B has taken over every partition" in text
    rows = table(text)
    assert list(rows) == [str(number) for number in range(PARTITIONS)], text
    for published, processed, _twice, lost, checkpoint, first, read in rows.values():
        assert (published, processed, lost) == ("100", "80", "0")
        # 80 events are numbers 0 to 79: saved is the last of them, read is what follows.
        assert (checkpoint, first, read) == ("79", "80", "20")
    assert "Nothing was lost." in text


def test_nothing_is_lost_and_spark_reads_exactly_the_rest(
    folder: Path, storage: dict[str, str]
) -> None:
    with Demo(folder, "--consumer", "sync", **storage) as demo:
        assert demo.end() == 0, demo.text
    assert_complete(demo.text)
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("azurite")  # installed, and of the same version
def test_the_same_by_the_aio_client_and_what_is_kept_up_can_be_used(folder: Path) -> None:
    with Demo(folder, "--consumer", "aio", "--keep", AZURITE_BLOB_ENDPOINT="") as demo:
        demo.until("conformance")
        assert_complete(demo.text)
        found = dict(re.findall(r"export (\w+)='(.*)'", demo.text))
        client = EventHubConsumerClient.from_connection_string(
            found["EVENTHUB_CONNECTION_STRING"], "$Default"
        )
        with client:
            assert len(client.get_partition_ids()) == PARTITIONS
        endpoint, _, container = found["CHECKPOINT_STORE"].rpartition("/")
        with BlobServiceClient.from_connection_string(connection_string(endpoint)) as service:
            assert [one.name for one in service.list_containers()] == [container]
        started = demo.processes()
        assert demo.stop(signal.SIGINT) == 0, demo.text
    assert_gone(started)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("words", "program", "number"),
    [
        ("share the partitions", "consumer B.journal", signal.SIGINT),
        ("PySpark starts", "SparkSubmit", signal.SIGTERM),
    ],
    ids=["Ctrl-C while consumers work", "SIGTERM while Spark works"],
)
@pytest.mark.usefixtures("azurite")  # installed, and of the same version
def test_stopped_in_the_middle_it_leaves_nothing(
    words: str, program: str, number: int, folder: Path
) -> None:
    with Demo(folder, AZURITE_BLOB_ENDPOINT="") as demo:
        demo.until(words)
        demo.wait_for_process(program)
        started = demo.processes()
        assert demo.stop(number) == 128 + number, demo.text
    assert "everything that was started has ended" in demo.text
    assert_gone(started)
    assert not list(folder.iterdir())


def test_a_consumer_that_dies_by_itself_fails_the_demo(
    folder: Path, storage: dict[str, str]
) -> None:
    with Demo(folder, **storage) as demo:
        demo.until("are started")
        os.kill(demo.wait_for_process("consumer B.journal"), signal.SIGKILL)
        assert demo.end() == 1, demo.text
    assert "consumer B ended with status -9" in demo.text
    assert not list(folder.iterdir())
