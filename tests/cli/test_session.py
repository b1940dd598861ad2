"""The session of docs/tutorials/operate-a-group.md prints what the page shows, line by line."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import SqlCheckpointStore
from page_blocks import blocks

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

PAGE = Path(__file__).resolve().parents[2] / "docs/tutorials/operate-a-group.md"
[SESSION] = [block for block in blocks(PAGE) if "tests/cli/test_session.py" in block.note]
BEGAN = 1795428000.0
"""2026-11-23T10:00:00Z."""
STOP = "the consumers of billing are stopped"
OWNERS = {"0": "worker-1", "1": "worker-1", "2": "worker-2", "3": "worker-2"}
VARYING = re.compile(r"\b(\d+[dhms] ?)+\b|\S+\+00:00|\S+\.json")
"""Ages, and the times and names of records."""


class Scene:
    """A group of which partition 0 hangs on event 16, which is not JSON."""

    def __init__(self, hub: LocalHub, store: SqlCheckpointStore) -> None:
        self.hub, self.store = hub, store
        address = HubAddress.from_connection_string(hub.connection_string("orders"), "billing")
        self.scope = address.scope()
        for number in range(20):
            for partition_id in OWNERS:
                body = (
                    "{order: 16" if (partition_id, number) == ("0", 16) else f'{{"id": {number}}}'
                )
                time = BEGAN + 60 * number
                hub.publish("orders", partition_id, [body], enqueued_time=time)
                if number == (15 if partition_id == "0" else 19):
                    self.save(partition_id, number)
        self.own(OWNERS)

    def save(self, partition_id: str, number: int) -> None:
        """Store the newest event as checkpoint."""
        offset = self.hub.partition_properties("orders", partition_id).last_offset
        row = {"partition_id": partition_id, "sequence_number": number, "offset": offset}
        self.store.update_checkpoint({**self.scope.as_dict(), **row})

    def own(self, owners: dict[str, str]) -> None:
        """Let members own partitions, or nobody."""
        rows = {row["partition_id"]: row for row in self.store.list_ownership(*self.scope)}
        claims = [
            {**rows.get(id_, self.scope.as_dict()), "partition_id": id_, "owner_id": owner}
            for id_, owner in owners.items()
        ]
        assert len(self.store.claim_ownership(claims)) == len(claims)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EHCP_STATE_DIR", str(tmp_path / "state"))
    with LocalHub({"orders": 4}) as hub, SqlCheckpointStore(url, create_tables=True) as store:
        monkeypatch.setenv("EHCP_STORE", url)
        monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
        monkeypatch.setenv("EHCP_GROUP", "billing")
        yield Scene(hub, store)


def words(text: str) -> list[str]:
    """Return the words of an output, without what varies and how lines are wrapped."""
    return VARYING.sub("VARYING ", text).split()


def test_the_session_prints_what_the_page_shows(scene: Scene) -> None:
    expected, printed = "", ""
    for line in SESSION.text.splitlines():
        if line == f"# {STOP}":
            scene.own(dict.fromkeys(OWNERS, ""))
        elif line.startswith("$ ehcp "):
            assert words(printed) == words(expected)
            result = CliRunner().invoke(app, line.removeprefix("$ ehcp ").split())
            printed, expected = result.output, ""
            printed = printed.replace(
                scene.scope.fully_qualified_namespace, "ns.servicebus.windows.net"
            )
            print(line, result.output, sep="\n")
        else:
            expected += f"{line}\n"
    assert words(printed) == words(expected)
    assert STOP in SESSION.text
    assert "$ ehcp undo --execute" in SESSION.text
