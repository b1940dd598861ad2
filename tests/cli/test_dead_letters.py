"""`ehcp dead-letters` over a file, a table and a hub, and an operator's mistakes."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dead_letter import BEGAN, DEAD_LETTER
from eventhub_checkpoints.cli import output
from eventhub_checkpoints.dead_letters import DeadLetter, DeadLetterFile
from eventhub_checkpoints.dead_letters._sync import sinks
from eventhub_checkpoints.dead_letters.dead_letter import StoredDeadLetter
from eventhub_checkpoints.dead_letters.log_file import append_line
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import dead_letters
from eventhub_checkpoints.operations.dead_letters import Selection
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.sql import DeadLetterTable
from eventhub_checkpoints.stores.sql.dead_letters import values_of
from operators import ehcp, ehcp_json
from page_blocks import blocks


class Office:
    """A hub `orders` with two partitions, a hub `dead`, and dead letters in a file."""

    def __init__(self, hub: LocalHub, folder: Path) -> None:
        self.hub, self.folder = hub, folder
        self.address = HubAddress.from_connection_string(hub.connection_string("orders"), "billing")
        self.path = folder / "dead-letters.jsonl"
        scope = self.address.scope()
        first = replace(DEAD_LETTER, scope=scope)
        self.dead_letters = [
            first,
            replace(
                first,
                sequence_number=17,
                time=DEAD_LETTER.time + timedelta(hours=1),
                error_type="app.PriceError",
                body=b"\xff\x00",
                partition_key=None,
            ),
            replace(
                first,
                scope=scope._replace(consumer_group="audit"),
                partition_id="1",
                time=DEAD_LETTER.time + timedelta(hours=2),
                error_message="too\nlate [now]",
            ),
        ]
        for dead_letter in self.dead_letters:
            append_line(self.path, dead_letter.as_dict())

    @property
    def table(self) -> str:
        """The URL of a table with the same dead letters."""
        url = f"sqlite:///{self.folder}/dead-letters.db"
        with DeadLetterTable(url) as table:
            table.create()
            table.create()
            for dead_letter in self.dead_letters:
                table._request(
                    table._store.database.write, table._sql.record, values_of(dead_letter)
                )
        return url

    @property
    def dead(self) -> str:
        """The connection string of a hub with the same dead letters."""
        connection_string = self.hub.connection_string("dead")
        with HubAddress.from_connection_string(connection_string).open_producer() as producer:
            for dead_letter in self.dead_letters:
                producer.send_batch(
                    [dead_letter.to_event()], partition_key=dead_letter.partition_key
                )
        return connection_string

    def sent(self) -> int:
        """Number of events in the hub."""
        ids = self.hub.partition_ids("orders")
        properties = [self.hub.partition_properties("orders", id_) for id_ in ids]
        return sum(each.last_sequence_number + 1 for each in properties)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    for name in [name for name in os.environ if name.startswith("EHCP_")]:
        monkeypatch.delenv(name)
    with LocalHub({"orders": 2, "dead": 2}) as hub:
        opened = Office(hub, tmp_path)
        monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
        monkeypatch.setenv("EHCP_DEAD_LETTERS", str(opened.path))
        yield opened


def listed(*words: str) -> list[int]:
    """The hours at which the listed dead letters failed."""
    rows = ehcp_json("dead-letters", "list", *words)
    return [int(row["time"][11:13]) - 10 for row in rows]


def refusal(*words: str) -> str:
    result = ehcp("dead-letters", *words)
    assert isinstance(result.exception, CheckpointStoreError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_the_table_with_redriven_dead_letters_is_readable_in_80_columns(office: Office) -> None:
    assert ehcp("dead-letters", "redrive", "--group", "billing", "--execute").exit_code == 0
    heading, *rows = ehcp("dead-letters", "list", "--all").stdout.splitlines()
    assert max(map(len, [heading, *rows])) <= 80
    assert heading.split() == [
        *("ID", "FAILED", "GROUP", "PARTITION", "NUMBER", "ERROR", "REDRIVEN")
    ]
    first = next(row for row in rows if office.dead_letters[0].id in row)
    assert "billing  orders/0       16  ValueError" in first
    assert first.rstrip().endswith("s ago")
    others = [row for row in rows if office.dead_letters[2].id in row]
    assert [row.rstrip()[-3:] for row in others] == ["  -"]


def test_dead_letters_are_listed_and_filtered(office: Office) -> None:
    shown = ehcp("dead-letters", "list").stdout
    assert all(dead_letter.id in shown for dead_letter in office.dead_letters)
    assert "orders/1" in shown
    assert "[now]" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert listed() == [0, 1, 2]
    assert listed("--group", "Audit") == [2]
    assert listed("--partition", "0") == [0, 1]
    assert listed("--since", "2026-11-23T11:00") == [1, 2]
    assert listed("--since", "9000d") == [0, 1, 2]
    assert listed("--since", "1s") == []
    assert listed("--error", "PRICE") == [0, 1]
    assert listed("--error", "priceerror", "--partition", "0") == [1]
    assert listed("--error", "PriceError: no") == [1]
    assert listed("--group", "absent") == []
    assert listed("--from", office.path.as_uri()) == [0, 1, 2]


def test_errors_are_compared_in_any_case() -> None:
    stored = StoredDeadLetter(replace(DEAD_LETTER, error_message="keine Straße"))
    assert Selection(error="STRASSE").choose([stored]) == [stored]
    assert Selection(error="strase").choose([stored]) == []
    assert Selection(error="").choose([stored]) == [stored]


def test_a_dead_letter_is_shown_as_a_table_as_json_and_as_its_body(office: Office) -> None:
    first, second, _ = office.dead_letters
    shown = ehcp("dead-letters", "show", first.id[:8]).stdout
    assert "ValueError" in shown
    assert "application/json" in shown
    assert '{"order": 16}' in shown
    assert "2 bytes, not UTF-8" in ehcp("dead-letters", "show", second.id).stdout
    row = ehcp_json("dead-letters", "show", second.id)
    assert DeadLetter.from_dict(row) == second
    assert (row["redriven_time"], row["redriven_to"]) == (None, None)
    body = ehcp("dead-letters", "show", second.id, "--body-only").stdout_bytes
    assert body == b"\xff\x00\n"


@pytest.mark.parametrize("kind", ["path", "table"])
def test_what_was_redriven_is_not_sent_twice(
    kind: str, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(getattr(office, kind))
    monkeypatch.setenv("EHCP_DEAD_LETTERS", source)
    first = office.dead_letters[0].id
    dry = ehcp("dead-letters", "redrive", first)
    assert "1 dead letter would be redriven to" in dry.stdout
    assert office.sent() == 0
    assert "1 dead letter redriven to" in ehcp("dead-letters", "redrive", first, "--execute").stdout
    assert office.sent() == 1
    assert listed() == [1, 2]
    assert listed("--all") == [0, 1, 2]
    assert "1 more were redriven; --all shows them" in ehcp("dead-letters", "list").stdout
    assert "pass --again to send it again" in refusal("redrive", first, "--execute")
    assert len(ehcp_json("dead-letters", "redrive", "--execute")["letters"]) == 2
    assert ehcp_json("dead-letters", "redrive", "--execute")["letters"] == []
    assert office.sent() == 3
    assert ehcp("dead-letters", "redrive", first, "--execute", "--again").exit_code == 0
    assert office.sent() == 4


@pytest.mark.parametrize("kind", ["path", "table"])
def test_dead_letters_are_discarded(
    kind: str, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EHCP_DEAD_LETTERS", str(getattr(office, kind)))
    assert "2 dead letters would be discarded" in ehcp("dead-letters", "discard", "-p", "0").stdout
    assert listed() == [0, 1, 2]
    assert (
        "2 dead letters discarded" in ehcp("dead-letters", "discard", "-p", "0", "--execute").stdout
    )
    assert listed("--all") == [2]
    assert len(ehcp_json("dead-letters", "discard", "--all", "--execute")["letters"]) == 1
    assert listed("--all") == []


def test_a_hub_of_dead_letters_is_read_redriven_and_not_discarded(office: Office) -> None:
    source = office.dead
    office.hub.publish("dead", "0", ["not a dead letter"])
    by_name = ["--from", "dead"]
    first = office.dead_letters[0].id
    assert ehcp("dead-letters", "redrive", first, "--from", source, "--execute").exit_code == 0
    assert office.sent() == 1
    assert listed(*by_name) == [1, 2]
    assert "expire with its retention, and cannot be discarded" in refusal(
        "discard", "--all", *by_name
    )


def test_dead_letters_are_sent_to_another_hub_on_request(office: Office) -> None:
    redriven = ehcp_json("dead-letters", "redrive", "--to", "dead", "-p", "1", "--execute")
    assert redriven["to"].endswith("/dead")
    assert office.sent() == 0
    ids = office.hub.partition_ids("dead")
    numbers = [office.hub.partition_properties("dead", id_).last_sequence_number for id_ in ids]
    assert sorted(numbers) == [-1, 0]


def test_a_dead_letter_that_is_sent_and_not_recorded_is_reported(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.path.chmod(0o400)
    if os.access(office.path, os.W_OK):  # root may write everything

        def full(*_: Any) -> int:
            raise OSError("no space")

        monkeypatch.setattr(os, "write", full)
    result = ehcp("dead-letters", "redrive", "--execute")
    assert "  redriven: 0 of 3 dead letters\n" in result.stderr
    said = str(result.exception)
    assert "could not be recorded, so that the next redrive sends it again" in said
    assert office.sent() == 1


@pytest.mark.parametrize("verb", ["redrive", "discard --all"])
def test_a_command_that_is_interrupted_says_which_dead_letters_are_done(
    office: Office, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = office.dead_letters
    lines: list[Any] = []

    def once(path: Path, line: Any) -> None:
        if lines:
            raise KeyboardInterrupt
        lines.append(line)
        append_line(path, line)

    monkeypatch.setattr(sinks, "append_line", once)
    result = ehcp("dead-letters", *verb.split(), "--execute")
    what = "redriven" if verb == "redrive" else "discarded"
    assert result.exit_code == 130
    assert result.stderr.splitlines() == [
        "ehcp: ended early",
        f"  {what}: 1 of 3 dead letters ({first.id})",
        "  to continue: run the same command again",
    ]


def test_the_functions_are_for_programs_too(office: Office) -> None:
    source = DeadLetterFile(office.path)
    chosen = dead_letters.Selection(group="billing").choose(source.dead_letters())
    sent = [each.dead_letter.id for each in dead_letters.redrive(source, chosen, office.address)]
    assert sent == [dead_letter.id for dead_letter in office.dead_letters[:2]]
    assert len(source.dead_letters()) == 3


PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/dead-letters.md"
SESSIONS = [block for block in blocks(PAGE) if block.language == "console"]


def test_every_session_prints_what_the_page_shows(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = (BEGAN + timedelta(hours=2, minutes=1)).timestamp()
    monkeypatch.setattr(output, "time", SimpleNamespace(time=lambda: noon))
    office.path.unlink()
    price = {"error_type": "app.PriceError", "error_message": "no price for item 4711"}
    later = replace(
        DEAD_LETTER,
        sequence_number=17,
        time=DEAD_LETTER.time + timedelta(hours=1),
        body=b"{}",
        **price,
    )
    names = {office.address.fully_qualified_namespace: "ns.servicebus.windows.net"}
    for dead_letter in (DEAD_LETTER, later):
        here = replace(dead_letter, scope=office.address.scope())
        append_line(office.path, here.as_dict())
        names[here.id] = dead_letter.id
    assert len(SESSIONS) == 4
    for session in SESSIONS:
        command, _, shown = session.text.partition("\n")
        words = command.removeprefix("$ ehcp ").split()
        for here_id, page_id in names.items():
            words = [here_id if page_id.startswith(word) else word for word in words]
        printed = ehcp(*words).output
        for here_name, page_name in names.items():
            printed = printed.replace(here_name, page_name)
        assert printed.split() == shown.split(), session.place
    assert office.sent() == 1


NAMESPACE = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=S3CR3T="


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--from", ""], "no dead letters: pass --from or set EHCP_DEAD_LETTERS"),
        (["list", "--from", "./absent.jsonl"], "absent.jsonl does not exist"),
        (["list", "--from", "./no/such/folder.jsonl"], "in a folder that exists"),
        (["list", "--from", "other.jsonl"], "is not a file of dead letters"),
        (["list", "--from", "sqlite:///absent.db"], "create"),
        (["list", "--from", "redis://:S3CR3T@host/0"], "expected a file"),
        (["list", "--from", "mssql://app:S3CR3T@host"], "mssql|expected a file"),
        (["list", "--from", NAMESPACE], "names no hub; add ;EntityPath=HUB"),
        (["list", "--from", "dead", "--hub", ""], "expected a connection string"),
        (
            ["list", "--since", "yesterday"],
            "--since is 'yesterday'; expected a time",
        ),
        (["show", "zz"], "no dead letter has an id that begins with 'zz'"),
        (["show", ""], "no dead letter has an id that begins with ''"),
        (["redrive", "zz", "--execute"], "no dead letter has an id"),
        (["redrive", "--hub", f"{NAMESPACE};EntityPath=orders"], "pass --to to send it elsewhere"),
        (["discard", "--execute"], "pass ids or filters, or --all"),
        (["discard", "zz", "--all", "--execute"], "no dead letter has an id"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    office: Office, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(office.folder)
    (office.folder / "other.jsonl").write_text(json.dumps({"order": 1}) + "\n[]\nnot json\n")
    before = office.path.read_bytes()
    with pytest.raises(CheckpointStoreError, match=said) as refused:
        raise AssertionError if not (error := ehcp("dead-letters", *words).exception) else error
    assert "\n" not in str(refused.value)
    assert "S3CR3T" not in str(refused.value)
    assert office.path.read_bytes() == before
    assert office.sent() == 0
    assert not (office.folder / "absent.db").exists()
