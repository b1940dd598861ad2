"""The JSON of every command has the keys that the documentation lists, in that order."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dead_letter import DEAD_LETTER, append_line
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.sql import SqlCheckpointStore
from operators import Site, ehcp

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command-line.md"
NAMES = ["fully_qualified_namespace", "eventhub_name", "consumer_group"]
ROW = re.compile(r"^\| (`[a-z].*?) \| (array|object|lines?) \| (.*?) \| (.*?) ?\|$", re.MULTILINE)
ROWS = [
    (command, match[2], match[3], match[4])
    for match in ROW.finditer(PAGE.read_text("utf-8"))
    for command in re.findall(r"`(.*?)`", match[1])
]
ARGUMENTS = {
    "check": "--samples 1",
    "reset": "--to-earliest --execute",
    "undo": "--execute",
    "import": "positions.json --force",
    "copy": "--to-group new",
    "dead-letters show": DEAD_LETTER.id,
    "dead-letters redrive": "--to orders",
    "dead-letters discard": "--all",
    "peek": "0",
    "at": "2026-01-01",
    "mirror": "--to-store sqlite:///other.db --once --execute",
    "move": "--to-store sqlite:///other.db",
    "serve": "--port 0",
    "ui": "--port 0",
}
"""What the commands of the table need."""
ENDS_WITH_A_VERDICT = {"check", "doctor"}
WITHOUT_JSON = {"demo", "conform"}
"""They have no store, hub and group; `conform --json` is that of the suite."""


def keys_of(cell: str) -> list[str]:
    """Return the keys that a cell of the table lists."""
    keys: list[str] = []
    for word in re.findall(r"\*names\*|`(\w+)`", cell.replace("*names*", "`names`")):
        keys += NAMES if word == "names" else [word]
    return keys


def test_every_command_is_in_the_table() -> None:
    commands = {*get_command(app).commands}  # type: ignore[attr-defined]
    assert {command.split()[0] for command, *_ in ROWS} == commands - WITHOUT_JSON


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_json_has_the_documented_keys(site: Site, row, tmp_path, monkeypatch) -> None:
    command, kind, keys, partition_keys = row
    if command == "migrate":
        return  # it needs blobs, and prints as `mirror` does
    monkeypatch.chdir(tmp_path)
    SqlCheckpointStore("sqlite:///other.db").create()
    monkeypatch.setattr(signal, "sigwait", lambda _: signal.SIGTERM)
    if command == "describe --members":
        site.own("0")
    if command.startswith("undo"):
        ehcp("reset", "--to-earliest", "--execute")
    if command == "history":
        ehcp("reset", "--to-latest", "--execute")
    ehcp("export", "positions.json")
    append_line(tmp_path / "dead-letters.jsonl", DEAD_LETTER.as_dict())
    monkeypatch.setenv("EHCP_DEAD_LETTERS", "dead-letters.jsonl")
    words = command.replace("FILE", "out.json").split()
    result = ehcp(*words, *ARGUMENTS.get(command, "").split(), "--json")
    assert result.exit_code == 0 or command in ENDS_WITH_A_VERDICT
    if kind in ("lines", "line"):
        [line] = result.stdout.splitlines()
        value: Any = json.loads(line)
    else:
        value = json.loads(result.stdout)
    assert isinstance(value, list) == (kind == "array")
    first = value[0] if kind == "array" else value
    of_list = next(each[2] for each in ROWS if each[0] == "dead-letters list")
    assert [*first] == keys_of(of_list if keys == "as `dead-letters list`" else keys)
    if partition_keys:
        of_lag = next(each[3] for each in ROWS if each[0] == "lag")
        cell = of_lag if partition_keys == "as `lag`" else partition_keys
        assert [*first["partitions"][0]] == keys_of(cell)
