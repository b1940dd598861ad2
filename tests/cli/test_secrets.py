"""Secrets in the wrong option, argument or variable: no command shows one, or records it."""

import os
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dead_letter import DEAD_LETTER, append_line
from eventhub_checkpoints.cli.app import app
from operators import Site, ended, quiet_client

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

MARK = "S3CR3T"
OUTPUT = "command lines, their output and records"
SECRETS = [
    f"Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=n;SharedAccessKey={MARK}=;EntityPath=orders",
    f"https://127.0.0.1:1/container?sv=2022-11-02&sig={MARK}&se=2030",
    f"postgresql://app:{MARK}@127.0.0.1:1/database",
    f"Bearer {MARK}",
]
NEEDED = {
    "reset": ["--to-latest"],
    "peek": ["0"],
    "at": ["2026-11-23"],
    "import": ["positions.json"],
    "copy": ["--to-group", "new"],
    "mirror": ["--to-store", "sqlite:///secrets.db", "--once"],
    "migrate": ["--from", "eph"],
}
"""What a command needs besides the secret."""
RUNNING = {"serve", "ui"}
"""Commands that go on until a signal, unless their address is not available."""
OTHERS = {"demo", "conform"}
"""Commands that have no store, hub and group."""
CONNECTING = {"--store", "--hub"}
"""Common options that take each kind of secret where it belongs; any other one refuses all."""


def commands() -> Iterator[tuple[list[str], Any]]:
    """The words and the object of every other command, of a group the commands in it."""
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        if name in OTHERS:
            continue
        inner = getattr(command, "commands", None)
        if inner is None:
            yield [name], command
        else:
            yield from (([name, each], inner[each]) for each in inner)


def lines() -> Iterator[list[str]]:
    """Every own option and argument of each command, and the common ones of one command.

    An item shows that one way in leads to no way out; the kinds of secrets take turns.
    """
    secrets = cycle(SECRETS)
    common: set[str] = set()
    for words, command in commands():
        for parameter in command.params:
            option, *_ = parameter.opts
            if getattr(parameter, "is_flag", False) or option in common:
                continue
            if words[0] in RUNNING and option != "--host":
                continue
            if getattr(parameter, "rich_help_panel", None):
                common.add(option)
                kinds = SECRETS if option in CONNECTING else [next(secrets)]
                yield from ([*words, option, secret] for secret in kinds)
            elif parameter.param_type_name == "argument":
                yield [*words, next(secrets)]
            else:
                yield [*words, *NEEDED.get(words[0], []), option, next(secrets)]


LINES = [*lines()]
VARIABLES = ["EHCP_STORE", "EHCP_HUB", "EHCP_GROUP", "EHCP_CREDENTIAL", "EHCP_PROFILE"]
VARIABLES += ["EHCP_DEAD_LETTERS", "EHCP_CONFIG", "EHCP_STATE_DIR", "EHCP_THROUGH", "EHCP_TO_STORE"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("secrets")
    with (
        quiet_client(),
        pytest.MonkeyPatch.context() as patch,
        Site.opened(folder, patch) as opened,
    ):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "300")
        patch.setenv("EHCP_CONFIG", str(folder / "config.toml"))
        patch.setenv("EHCP_DEAD_LETTERS", str(folder / "dead-letters.jsonl"))
        append_line(folder / "dead-letters.jsonl", DEAD_LETTER.as_dict())
        yield opened


def shown(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys) -> str:
    """Run a command; return all that it prints and records."""
    _, sentence = ended([*words, "--timeout", "0.3"], monkeypatch)
    printed = capsys.readouterr()
    records = Path(os.environ["EHCP_STATE_DIR"]).glob("*.json")
    return printed.out + printed.err + sentence + "".join(each.read_text() for each in records)


def test_every_command_is_tried() -> None:
    tried = {tuple(words) for words, _ in commands()}
    assert tried <= {tuple(line[:end]) for line in LINES for end in (1, 2)}
    assert {"--store", "--hub", "--to-hub", "--through"} <= {
        word for each in LINES for word in each
    }


@pytest.mark.parametrize("words", LINES, ids=lambda words: " ".join(words[:-1]))
def test_a_secret_in_a_command_is_not_shown(site, words, monkeypatch, capsys, searched) -> None:
    text = shown(words, monkeypatch, capsys)
    assert MARK not in text
    assert "Traceback" not in text
    searched(OUTPUT, 1)


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_secret_in_a_variable_is_not_shown(site, variable, monkeypatch, capsys, searched) -> None:
    command = {
        "EHCP_CONFIG": ["lag", "--profile", "prod"],
        "EHCP_DEAD_LETTERS": ["dead-letters", "list"],
        "EHCP_STATE_DIR": ["undo"],
        "EHCP_THROUGH": ["lag", "--seconds"],
        "EHCP_TO_STORE": ["mirror", "--once"],
    }
    for secret in SECRETS:
        monkeypatch.setenv(variable, secret)
        assert MARK not in shown(command.get(variable, ["lag"]), monkeypatch, capsys)
        searched(OUTPUT, 1)
