"""Commands that change positions and are ended at any of their calls of the store."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from eventhub_checkpoints.cli import target
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.operations.groups import FENCE
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.sql import SqlCheckpointStore
from killed_calls import Killer
from operators import Site, ehcp
from waiting import LIMIT, eventually

# The client leaves the sockets of links that the hub has ended to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

ENDINGS: dict[str, Callable[[], BaseException]] = {
    "Ctrl-C": KeyboardInterrupt,
    "SIGTERM": lambda: SystemExit(143),
    "store": lambda: StoreUnavailableError("the store gave no answer"),
}
STATUSES = {"Ctrl-C": 130, "SIGTERM": 143, "store": 1}
VERBS = {
    "reset": "reset --to-earliest --execute",
    "forced reset": "reset --to-earliest --force --hold 0.05 --execute",
    "undo": "undo {record} --force --hold 0 --execute",
    "delete": "delete --execute",
    "import": "import {file} --force --hold 0 --execute",
    "copy": "copy --to-group copied --execute",
}


class Once(Killer):
    """Ends one call, and lets those after it through: the program goes on to its end."""

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        ended = super()._counted(call)
        return lambda *args, **kwargs: (ended if self.calls < self._last else call)(*args, **kwargs)


@pytest.fixture
def file(site: Site, tmp_path: Path) -> Path:
    """A file with other positions of the group."""
    path = tmp_path / "positions.csv"
    ehcp("export", str(path))
    lines = path.read_text().splitlines()
    path.write_text("\n".join(re.sub(r",\d+,\d+$", ",7,700", line) for line in lines))
    return path


def endings(words: str, way: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, str]]:
    """End a command at each of its calls, before it and before its answer; yield what it says."""
    for is_answered in (False, True):
        for number in range(1, 100):
            killer = Once(number, is_answered=is_answered, ending=ENDINGS[way])
            with monkeypatch.context() as patch:
                patch.setattr(
                    target,
                    "open_store",
                    lambda *a, killer=killer, **k: killer.guards(open_store(*a, **k)),
                )
                result = ehcp(*words.split())
            if killer.calls < number:
                assert result.exit_code == 0
                if "to take it back" in result.stdout:
                    take_back(result.stdout)
                break
            assert result.exit_code == STATUSES[way], result.output
            yield number, result.stderr
        else:
            pytest.fail("the command never came to its end")


def take_back(said: str) -> None:
    """Run the command that a text names."""
    [undo] = re.findall(r"to take it back: (?:ehcp|python -m \S+) (.+)$", said, re.MULTILINE)
    assert ehcp(*shlex.split(undo), "--force", "--hold", "0", "--execute").exit_code == 0


def listed(said: str, what: str) -> set[str]:
    """Return the partitions that a line names."""
    found = re.search(rf"^  {what}: partition (.+?) of ", said, re.MULTILINE)
    return set(found[1].split(", ")) if found else set()


@pytest.mark.parametrize("way", ENDINGS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_command_that_is_ended_says_what_it_has_changed_and_can_be_taken_back(
    site: Site, file: Path, verb: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_group = "copied" if verb == "copy" else None
    record = ""
    if verb == "undo":
        [record] = re.findall(r"ehcp undo (.+)$", ehcp("reset", "--to-latest", "--execute").stdout)
    before = site.rows(changed_group)
    partial = 0
    for number, said in endings(VERBS[verb].format(file=file, record=record), way, monkeypatch):
        after = site.rows(changed_group)
        assert "ehcp: ended early\n" in said, (number, said)
        changed, left = listed(said, "changed"), listed(said, "not changed")
        assert all(after.get(id_) != before.get(id_) for id_ in changed), (number, said)
        assert all(after.get(id_) == before.get(id_) for id_ in left), (number, said)
        assert not any(owner.startswith(FENCE) for owner in site.owners().values()), number
        if "nothing" in said:
            assert after == before, (number, said)
            continue
        partial += bool(changed and left)
        take_back(said)
        assert site.rows(changed_group) == before, (number, said)
    assert partial


@pytest.mark.parametrize("way", ENDINGS)
def test_a_mirror_that_is_ended_says_what_it_has_copied(
    site: Site, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    partial = 0
    with SqlCheckpointStore(url, create_tables=True) as other:
        other.create()
        for number, said in endings(f"mirror --to-store {url} --once --execute", way, monkeypatch):
            found = re.search(r"^  copied: partition (.+)$", said, re.MULTILINE)
            copied = {*found[1].split(", ")} if found else set()
            stored = {row["partition_id"] for row in other.list_checkpoints(*site.scope)}
            assert copied <= stored, (number, said)
            assert copied or "  nothing was changed\n" in said, (number, said)
            partial += 0 < len(copied) < 3
            for partition_id in stored:
                other.delete_partition(*site.scope, partition_id)
    assert partial


@pytest.mark.parametrize("way", ENDINGS)
def test_a_move_that_is_ended_anywhere_is_continued_and_releases_the_source(
    site: Site,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    before = site.rows()
    words = f"move --to-store {url} --expires-after 1 --settle 0 --execute"
    with SqlCheckpointStore(url, create_tables=True) as other:
        other.create()
        for number in range(1, 40):
            killer = Once(number, is_answered=number % 2 == 0, ending=ENDINGS[way])
            with monkeypatch.context() as patch:
                patch.setattr(
                    target,
                    "open_store",
                    lambda *a, killer=killer, **k: killer.guards(open_store(*a, **k)),
                )
                result = ehcp(*words.split())
            held = any(owner.startswith(FENCE) for owner in site.owners().values())
            # The call that fails may be the one that releases.
            assert not held or "could not be released, and stay until they expire" in caplog.text, (
                number
            )
            caplog.clear()
            if killer.calls < number:
                break
            if result.exit_code:  # an outage of a store is waited out
                assert "ehcp: ended early\n" in result.stderr, result.output
        assert result.exit_code == 0, result.output
        rows = other.list_checkpoints(*site.scope)
        assert {row["partition_id"]: row["sequence_number"] for row in rows} == {
            id_: number for id_, (number, _) in before.items()
        }


def test_a_command_that_sigterm_ends_says_so_and_releases_the_partitions(site: Site) -> None:
    site.own("0")
    before = site.owners()
    words = "reset", "--to-earliest", "--force", "--hold", "600", "--execute"
    with subprocess.Popen(
        [sys.executable, "-m", "eventhub_checkpoints.cli", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        eventually(lambda: all(number == -1 for number, _ in site.rows().values() if number != 9))
        eventually(lambda: site.owners() != before and len(site.rows()) == 4)
        process.terminate()
        _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 143
    assert not any(site.owners().values())
    assert "not held to the end: a consumer that had not noticed" in said
    assert listed(said, "changed") == {"0", "1", "2", "3"}
    take_back(said)


def unwritable(kind: str) -> BinaryIO:
    """Open an output that cannot be written: on a full disk, or a pipe that nobody reads."""
    if kind == "full":
        return Path("/dev/full").open("wb")
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb")


@pytest.mark.parametrize(
    ("output", "status", "said"),
    [
        ("full", 1, "standard output cannot be written (No space left on device)"),
        ("closed", 1, ""),
    ],
)
def test_a_change_whose_output_cannot_be_written_is_reported_on_standard_error(
    site: Site, output: str, status: int, said: str
) -> None:
    before = site.rows()
    with unwritable(output) as stdout:
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "eventhub_checkpoints.cli"),
                *("reset", "--to-earliest", "--execute"),
            ],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    assert ended.returncode == status, ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert site.rows() != before
    take_back(ended.stderr)
    assert site.rows() == before


def test_a_character_that_the_output_does_not_have_is_escaped(site: Site) -> None:
    site.save("0", 4, group="ünï")
    ended = subprocess.run(
        [sys.executable, "-m", "eventhub_checkpoints.cli", "groups"],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONIOENCODING": "ascii",
        },
    )
    assert r"\xfcn\xef" in ended.stdout
