"""A user changes the import line and nothing else: the official store and ours take turns."""

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints.cli.demo.children import Child
from waiting import LIMIT

PROGRAMS = {
    "sync": (
        "program_sync.py",
        "from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore\n",
        "from eventhub_checkpoints.blob import BlobCheckpointStore\n",
    ),
    "aio": (
        "program_aio.py",
        "from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore\n",
        "from eventhub_checkpoints.aio.blob import BlobCheckpointStore\n",
    ),
}


class Program:
    """The user's program in two versions, run against one hub and one container."""

    def __init__(self, variant: str, hub: Any, container: Any, folder: Path) -> None:
        name, official, ours = PROGRAMS[variant]
        text = (Path(__file__).parent / name).read_text()
        assert text.count(official) == 1
        self.official, self.ours = folder / "official.py", folder / "ours.py"
        self.official.write_text(text)
        self.ours.write_text(text.replace(official, ours))
        self._folder = folder
        self._runs = 0
        self._env = {
            "EVENTHUB_CONNECTION_STRING": hub.connection_string("orders"),
            "AZURE_STORAGE_CONNECTION_STRING": container.connection_string,
            "BLOB_CONTAINER": container.name,
            "EXPIRY": "60",
        }

    def start(self, version: Path, limit: int) -> Child:
        """Start one version; it ends after so many events."""
        self._runs += 1
        return Child(
            [sys.executable, "-W", "error::RuntimeWarning", version, str(limit)],
            log=self._folder / f"run{self._runs}.log",
            env=self._env,
        )

    def run(self, version: Path, limit: int) -> list[tuple[str, int]]:
        """Run one version to its end; partition and sequence number of what it processed."""
        with self.start(version, limit) as child:
            assert child.wait(LIMIT) == 0, child.tail()
            return processed(child)


def processed(child: Child) -> list[tuple[str, int]]:
    """What a program has printed so far; its log also has warnings, and a half written line."""
    lines = re.findall(r"^(\d+) (\d+)\n", child.log.read_text(), re.MULTILINE)
    return [(partition_id, int(number)) for partition_id, number in lines]


def by_partition(events: list[tuple[str, int]]) -> dict[str, list[int]]:
    found = defaultdict(list)
    for partition_id, number in events:
        found[partition_id].append(number)
    return dict(found)


@pytest.fixture(params=["sync", "aio"])
def program(request: pytest.FixtureRequest, hub, blob_container, tmp_path: Path) -> Program:
    return Program(request.param, hub, blob_container, tmp_path)


def test_official_ours_official_resume_after_each_other(program, hub) -> None:
    for partition_id in hub.partition_ids("orders"):
        hub.publish("orders", partition_id, ["event"] * 31)
    events = program.run(program.official, 20)
    events += program.run(program.ours, 20)
    events += program.run(program.official, 20)
    assert len(events) == 60
    numbers = by_partition(events)
    assert numbers == {key: list(range(len(found))) for key, found in numbers.items()}
