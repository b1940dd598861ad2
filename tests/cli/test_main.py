"""The command itself: what it says about itself, and about what is missing."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from typer.main import get_command

from eventhub_checkpoints import __version__
from eventhub_checkpoints.cli import main
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.cli.usage import STATUSES
from waiting import LIMIT

RUN = "from eventhub_checkpoints.cli import main; main()"


def run(*words: str, without: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, where some modules cannot be imported."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({without.split()!r})); "
    return subprocess.run(
        [sys.executable, "-c", blocked + RUN, *words],
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run the command in this process, which takes a fraction of the time."""

    def run_here(
        *words: str, without: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        for name, value in {"COLUMNS": "120", "NO_COLOR": "1", **variables}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["eventhub-checkpoints", *words])
        with monkeypatch.context() as blocked:
            for name in without.split():
                blocked.setitem(sys.modules, name, None)
            with pytest.raises(SystemExit) as ended:
                main()
        printed, code = capsys.readouterr(), ended.value.code
        # The interpreter prints a sentence that a program ends with.
        sentence = f"{code}\n" if isinstance(code, str) else ""
        status = code if isinstance(code, int) else int(code is not None)
        return subprocess.CompletedProcess(words, status, printed.out, printed.err + sentence)

    return run_here


def test_both_names_are_installed() -> None:
    found = {
        entry.name: entry.value
        for entry in entry_points(group="console_scripts")
        if entry.value.startswith("eventhub_checkpoints.")
    }
    target = "eventhub_checkpoints.cli:main"
    assert found == {"eventhub-checkpoints": target, "ehcp": target}


def test_the_package_of_the_command_can_be_run() -> None:
    command = [sys.executable, "-m", "eventhub_checkpoints.cli", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    assert __version__ in ran.stdout


def test_it_tells_its_version(here: Here) -> None:
    ran = here("--version")
    assert (ran.returncode, ran.stdout) == (0, f"eventhub-checkpoints {__version__}\n")


def test_help_lists_the_commands(here: Here) -> None:
    ran = here("--help")
    assert ran.returncode == 0
    assert "demo" in ran.stdout
    assert "conform" in ran.stdout


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ehcp de", {"describe", "dead-letters", "delete", "demo"}),
        ("ehcp reset --to-l", {"--to-latest"}),
    ],
)
def test_shells_complete_commands_and_options(words: str, completed: set[str]) -> None:
    number = str(len(words.split()) - 1)
    variables = {"_EHCP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": number}
    program = f"import sys; sys.argv = ['ehcp']; {RUN}"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    assert set(ran.stdout.split()) == completed


def test_the_help_of_every_command_on_groups_names_its_exit_statuses() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    without = {name for name, each in commands.items() if not each.epilog}
    assert without == {"demo", "conform"}
    of_dead_letters = commands["dead-letters"].commands.values()
    assert {each.epilog for each in of_dead_letters} == {STATUSES}
    refuses = {name for name, each in commands.items() if "4 refused" in (each.epilog or "")}
    assert refuses == {"reset", "undo", "delete", "import", "copy", "move"}


def test_help_comes_without_the_other_extras() -> None:
    assert run("demo", "--help", without="azure.storage aiohttp pyspark pyarrow").returncode == 0


@pytest.mark.parametrize("missing", ["typer", "rich", "filelock", "platformdirs"])
def test_without_its_extra_it_says_which_to_install(here: Here, missing: str) -> None:
    ran = here("--version", without=missing)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == (
        f"eventhub-checkpoints: the command line needs {missing}: "
        "python -m pip install 'eventhub-checkpoints[cli]'\n"
    )


@pytest.mark.parametrize("variant", [(), ("--aio",)], ids=["sync", "aio"])
def test_conform_tries_a_store(variant: tuple[str, ...]) -> None:
    ran = run("conform", "memory:", *variant, "--only", "G9")
    assert ran.returncode == 0, ran.stderr
    assert "G9" in ran.stdout
    assert ("aio" if variant else "sync") in ran.stdout


def test_conform_takes_the_options_of_the_suite(here: Here) -> None:
    ran = here("conform", "--help")
    assert ran.returncode == 0
    assert ran.stdout.startswith("usage: eventhub-checkpoints conform ")
    assert {"--aio", "--create"} <= set(ran.stdout.replace("[", " ").replace("]", " ").split())


def test_conform_of_an_unknown_store_is_one_sentence(here: Here) -> None:
    ran = here("conform", "nope:")
    assert ran.returncode == 2
    assert ran.stderr.startswith("'nope:' names no store")


def test_an_unknown_command_is_refused(here: Here) -> None:
    ran = here("dance")
    assert ran.returncode == 2
    assert "dance" in ran.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--events", "10"], "--events: 10 is below 400, which is 50 for each of 8 partitions"),
        (["--events", "many"], "--events"),
        (["--partitions", "1"], "--partitions"),
        (["--consumer", "rust"], "--consumer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_demo_refuses(here: Here, words: list[str], message: str) -> None:
    ran = here("demo", *words)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "without", "said"),
    [
        (
            [],
            "pyspark aiosqlite",
            "pyspark and the driver of the store: python -m pip install "
            "'eventhub-checkpoints[spark,sql]' (about 510 MB to download)",
        ),
        (
            ["--consumer", "sync"],
            "aiosqlite sqlalchemy azure.storage.blob",
            "the driver of the store: python -m pip install 'eventhub-checkpoints[sql]'",
        ),
    ],
    ids=["aio", "sync"],
)
def test_the_demo_names_every_package_that_it_needs_and_does_not_find(
    words: list[str], without: str, said: str
) -> None:
    # In a process of its own: here, the stores have their drivers already.
    ran = run("demo", *words, without=without)
    assert ran.returncode == 2
    assert ran.stderr == f"ehcp: the demo needs {said}\n"


def test_the_demo_says_that_java_is_missing(here: Here) -> None:
    ran = here("demo", JAVA_HOME="/nowhere")
    assert ran.returncode == 2
    assert ran.stderr.startswith("eventhub-checkpoints: the demo needs Java 17 or newer")
    assert "none was found" in ran.stderr


def fake_java(home: Path, version: str) -> str:
    (home / "bin").mkdir()
    java = home / "bin/java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return str(home)


def test_the_demo_says_that_java_is_too_old(here: Here, tmp_path: Path) -> None:
    ran = here("demo", JAVA_HOME=fake_java(tmp_path, "1.8.0_292"))
    assert ran.returncode == 2
    assert "Java 8 was found" in ran.stderr


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("azurite", "cannot go to 'azurite'"),
        ("nope:", "cannot go to 'nope:': 'nope:' names no store; expected one of "),
        ("sqlite:///nowhere/a.db", "the file cannot be opened; does its folder exist"),
        (
            "postgresql://me:hushhush@127.0.0.1/db?password=hushhush",
            "python -m pip install 'eventhub-checkpoints[postgres]'",
        ),
    ],
    ids=["no URL", "unknown scheme", "no such folder", "no driver"],
)
def test_the_demo_says_in_a_sentence_why_a_store_cannot_be_used(
    here: Here, store: str, message: str, tmp_path: Path
) -> None:
    java = fake_java(tmp_path, "17.0.2")
    ran = here("demo", "--store", store, without="psycopg", JAVA_HOME=java)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "hushhush" not in ran.stdout + ran.stderr
    assert "hub" not in ran.stdout  # nothing was started
