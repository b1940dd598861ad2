"""The sync shells are the async ones without the waiting, and nothing else."""

import asyncio
import shutil
import threading
import time
import tokenize
from pathlib import Path

import pytest

import twins
from eventhub_checkpoints import _compat as sync_compat
from eventhub_checkpoints.aio import _compat as aio_compat

ROOT = twins.PACKAGE.parent.parent
COUNT, LIMIT = 12, 4


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's files in a folder of their own, under the same configuration."""
    package = tmp_path / "src" / "eventhub_checkpoints"
    shutil.copytree(twins.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(twins, "PACKAGE", package)
    return package


def test_the_committed_files_are_the_derived_ones(capsys: pytest.CaptureFixture[str]) -> None:
    status = twins.main(["--check"])
    assert status == 0, capsys.readouterr().out


def test_a_sync_file_that_was_edited_fails_with_its_difference(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied / "memory.py"
    path.write_text(path.read_text() + "EDITED = True\n")
    assert twins.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert "memory.py as committed" in printed
    assert "\n-EDITED = True" in printed


def test_a_sync_file_that_is_missing_fails_with_all_of_it(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copied / "memory.py").unlink()
    assert twins.main(["--check"]) == 1
    assert "+class MemoryCheckpointStore" in capsys.readouterr().out


def test_checking_writes_nothing_and_deriving_makes_it_right(copied: Path) -> None:
    path = copied / "memory.py"
    path.write_text("EDITED = True\n")
    assert twins.main(["--check"]) == 1
    assert path.read_text() == "EDITED = True\n"
    assert twins.main([]) == 0
    assert twins.main(["--check"]) == 0


def test_a_rename_that_nothing_needs_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(twins.RENAMED, "AsyncThing", "Thing")
    monkeypatch.setitem(twins.PATTERNS, "AsyncThing", ["AsyncThing"])
    assert twins.main(["--check"]) == 1
    assert "AsyncThing" in capsys.readouterr().out


@pytest.mark.parametrize("name", twins.DERIVED)
def test_a_derived_text_waits_for_nothing(name: str) -> None:
    path = twins.PACKAGE / name
    with path.open("rb") as file:
        words = [token.string for token in tokenize.tokenize(file.readline)]
    assert not {"async", "await", "asyncio", "__aenter__", "__aexit__"} & set(words)
    assert path.read_text().startswith(f"# Derived from aio/{name} by tools/twins.py")


def test_every_file_of_both_colours_is_derived_or_written_twice_for_a_reason() -> None:
    both = {path.name for path in (twins.PACKAGE / "aio").glob("*.py")}
    both &= {path.name for path in twins.PACKAGE.glob("*.py")}
    written_twice = {
        "__init__.py": "each exports its colour",
        "_background.py": "a thread looks after something, or a task",
        "_colour.py": "each tells what is of the other",
        "_life.py": "a thread receives and is closed, or a task and is cancelled",
        "_runner.py": "a handler runs in the client's thread, or in a task that outlives a cancel",
        "_tracking.py": "a call can wait for room, or is awaited",
        "arrow.py": "Arrow's readers only wait, so one colour has none",
        "_arrow_source.py": "a thread waits for a batch, and a loop is told of one",
        "_compat.py": "the one place where waiting differs",
        "_blob_transport.py": "each colour has a transport of its own",
        "_cassandra_transport.py": "a thread and a loop wait for the driver in their own ways",
        "_redis_transport.py": "a socket is bounded by its own time-out, or by the event loop",
        "_sql_engine.py": "each colour has engines, and ends a wait, in its own way",
        "registry.py": "the async one calls the sync one",
    }
    assert both - set(twins.DERIVED) <= written_twice.keys()


class Overlap:
    """Counts how many calls are under way at one moment."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = self.most = 0

    def enter(self) -> None:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)

    def leave(self) -> None:
        with self.lock:
            self.running -= 1


def test_sync_calls_overlap_up_to_the_limit_and_answer_in_order() -> None:
    overlap = Overlap()

    def call(number: int) -> int:
        overlap.enter()
        time.sleep(0.02 if number % 2 else 0.04)
        overlap.leave()
        return number

    assert sync_compat.for_each(call, range(COUNT), LIMIT) == list(range(COUNT))
    assert overlap.most == LIMIT


def test_aio_calls_overlap_up_to_the_limit_and_answer_in_order() -> None:
    overlap = Overlap()

    async def call(number: int) -> int:
        overlap.enter()
        await asyncio.sleep(0.02 if number % 2 else 0.04)
        overlap.leave()
        return number

    assert asyncio.run(aio_compat.for_each(call, range(COUNT), LIMIT)) == list(range(COUNT))
    assert overlap.most == LIMIT


def test_a_lock_that_is_not_free_in_time_is_said_in_both_colours() -> None:
    lock = sync_compat.Lock()
    with (
        lock,
        pytest.raises(TimeoutError),
        sync_compat.holding(lock, 0.01),
    ):
        raise AssertionError("the lock was held twice")

    async def wait_for_it() -> None:
        lock = aio_compat.Lock()
        async with lock:
            with pytest.raises(TimeoutError):
                async with aio_compat.holding(lock, 0.01):
                    raise AssertionError("the lock was held twice")
        async with aio_compat.holding(lock, 0.01):
            assert lock.locked()
        assert not lock.locked()

    asyncio.run(wait_for_it())
