"""The sessions of docs/how-to/doctor.md print what the page shows, from the first to the last."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import peek
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.sql import SqlCheckpointStore
from page_blocks import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/doctor.md"
SESSIONS = [block for block in blocks(PAGE) if block.language == "console"]
BEGAN = 1795428000.0
"""2026-11-23T10:00:00Z."""


@pytest.fixture
def namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The group of the page; gives the name under which it really runs."""
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    with LocalHub({"orders": 4}) as hub, SqlCheckpointStore(url, create_tables=True) as store:
        text = hub.connection_string("orders")
        address = HubAddress.from_connection_string(text, "billing")
        monkeypatch.setenv("EHCP_STORE", url)
        monkeypatch.setenv("EHCP_HUB", text)
        monkeypatch.setenv("EHCP_GROUP", "billing")
        for number in range(20):
            for partition_id in ("0", "1", "2"):
                hub.publish(
                    "orders",
                    partition_id,
                    [f'{{"order": {number}}}'],
                    properties={"kind": "order"},
                    enqueued_time=BEGAN + 60 * number,
                )
        last = hub.partition_properties("orders", "0").last_offset
        position = EventPosition.from_sequence_number(15, inclusive=True)
        [event] = peek(None, address, "0", position)
        saved = {"0": (15, event.offset), "1": (19, last), "2": (19, None), "7": (3, "3")}
        names = address.scope().as_dict()
        for partition_id, (number, offset) in saved.items():
            row = {"partition_id": partition_id, "sequence_number": number, "offset": offset}
            store.update_checkpoint({**names, **row})
        for partition_id, owner in {"0": "first", "1": "first", "3": "second"}.items():
            store.claim_ownership([{**names, "partition_id": partition_id, "owner_id": owner}])
        yield address.fully_qualified_namespace


def test_every_session_prints_what_the_page_shows(namespace: str) -> None:
    assert len(SESSIONS) == 5
    for session in SESSIONS:
        command, _, shown = session.text.partition("\n")
        result = CliRunner().invoke(app, command.removeprefix("$ ehcp ").split())
        printed = result.output.replace(namespace, "ns.servicebus.windows.net")
        # Lines are wrapped at another place where the name of the namespace is longer.
        assert words(printed) == words(shown), session.place


def words(text: str) -> list[str]:
    """Return the words of an output, without the names of records, which have a time."""
    return re.sub(r"\S+\.json", "RECORD", text).split()
