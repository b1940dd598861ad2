"""The name by which messages print commands to copy."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from eventhub_checkpoints._shared.program import NAMES, PACKAGE, as_typed, program
from eventhub_checkpoints.cli.app import app
from messages import PACKAGE as PACKAGE_FOLDER
from messages import modules
from waiting import LIMIT

VERBS = "|".join(get_command(app).commands)  # type: ignore[attr-defined]
NAMED = re.compile(rf"\b(?:{'|'.join(NAMES)}|{PACKAGE}) (?:(?:{VERBS})\b|$)")
OTHERS = {
    "cli/app.py": "the package, before its version",
    "_shared/offset_words.py": "a column of the table in docs/reference/wire-format.md",
    "operations/doctor/examination.py": "the owner of a probe row, stored",
}


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("ehcp", "ehcp"),
        ("/opt/venv/bin/ehcp", "ehcp"),
        ("/opt/venv/bin/eventhub-checkpoints", "eventhub-checkpoints"),
        ("eventhub-checkpoints.exe", "eventhub-checkpoints"),
        ("/srv/consumer.py", "ehcp"),
        ("", "ehcp"),
    ],
)
def test_the_name_is_that_of_the_script_and_ehcp_in_other_programs(
    monkeypatch: pytest.MonkeyPatch, argument: str, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [argument])
    assert program() == name
    assert as_typed("undo --list") == f"{name} undo --list"


def test_a_program_without_arguments_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    assert program() == "ehcp"


@pytest.mark.parametrize("name", [*NAMES, f"python -m {PACKAGE}"])
def test_usage_errors_and_commands_have_the_name_that_was_typed(name: str, tmp_path: Path) -> None:
    file = tmp_path / "no-positions.json"
    file.write_text("{}")
    call = "from eventhub_checkpoints.cli import main; main()"
    as_script = ["-c", f"import sys; sys.argv[0] = '/opt/bin/{name}'; {call}"]

    def said(*words: str) -> str:
        ran = subprocess.run(
            [sys.executable, *(as_script if name in NAMES else ["-m", PACKAGE]), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        return ran.stdout + ran.stderr

    assert f"Usage: {name} undo " in said("undo", "--help")
    wrong = said("undo", str(file))
    assert wrong.startswith(f"{name}: ")
    assert f"expected one of the records that {name} undo --list shows" in wrong


def printable(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module that are not docstrings."""
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        is_text = isinstance(each, ast.Constant) and isinstance(each.value, str)
        if is_text and id(each) not in statements:
            yield each.value


def test_no_message_names_the_program_itself() -> None:
    found = {name for name, tree in modules().items() if any(map(NAMED.search, printable(tree)))}
    assert found == {*OTHERS}
    templates = [*PACKAGE_FOLDER.rglob("*.html")]
    assert templates
    assert not [path for path in templates if NAMED.search(path.read_text())]
