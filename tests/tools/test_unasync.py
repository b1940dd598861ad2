"""The sync modules are the async ones without the waiting, and nothing else.

That the committed files are the derived ones is checked by `tox -e twins`.
"""

import asyncio
import shutil
import threading
import tokenize
from pathlib import Path

import pytest

import unasync
from eventhub_checkpoints._shared._async import compat as aio_compat
from eventhub_checkpoints._shared._sync import compat as sync_compat
from simulated_time import now, simulate
from waiting import LIMIT

ROOM = Path("stores/memory")
STORE = ROOM / "_sync/store.py"
COUNT, MOST = 12, 4


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One folder of the package in a folder of its own, under the same configuration."""
    package = tmp_path / unasync.PACKAGE.relative_to(unasync.ROOT)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(unasync.PACKAGE / ROOM, package / ROOM, ignore=ignored)
    shutil.copy(unasync.ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(unasync, "PACKAGE", package)
    monkeypatch.setattr(unasync, "ROOT", tmp_path)
    used: set[str] = set()
    for source in unasync.targets().values():
        unasync.derived(source, used)
    for table in ("RENAMED", "PATTERNS"):
        needed = {key: value for key, value in getattr(unasync, table).items() if key in used}
        monkeypatch.setattr(unasync, table, needed)
    return package


def test_a_sync_file_that_was_edited_fails_with_its_difference(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied / STORE
    path.write_text(path.read_text() + "EDITED = True\n")
    assert unasync.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert f"{STORE} as committed" in printed
    assert "\n-EDITED = True" in printed


def test_a_sync_file_that_is_missing_fails_with_all_of_it(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copied / STORE).unlink()
    assert unasync.main(["--check"]) == 1
    assert "+class MemoryCheckpointStore" in capsys.readouterr().out


def test_checking_writes_nothing_and_deriving_makes_it_right(copied: Path) -> None:
    path = copied / STORE
    path.write_text("EDITED = True\n")
    assert unasync.main(["--check"]) == 1
    assert path.read_text() == "EDITED = True\n"
    assert unasync.main([]) == 0
    assert unasync.main(["--check"]) == 0


def test_a_rename_that_nothing_needs_is_an_error(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(unasync.RENAMED, "AsyncThing", "Thing")
    monkeypatch.setitem(unasync.PATTERNS, "AsyncThing", ["AsyncThing"])
    assert unasync.main(["--check"]) == 1
    assert capsys.readouterr().out == "renames that nothing needs: AsyncThing\n"


def test_a_derived_text_waits_for_nothing() -> None:
    found = unasync.targets()
    assert len(found) > 20
    for target, source in found.items():
        with target.open("rb") as file:
            words = [token.string for token in tokenize.tokenize(file.readline)]
        assert not {"async", "await", "asyncio", "__aenter__", "__aexit__"} & set(words), target
        assert target.read_text().startswith(f"# Derived from _async/{source.name} by tools/")


def test_every_sync_file_is_derived_or_marked() -> None:
    found = unasync.targets()
    for path in unasync.PACKAGE.rglob("_sync/*.py"):
        twin = path.parent.with_name("_async") / path.name
        assert path.name == "__init__.py" or path in found or unasync.is_hand_written(path)
        assert twin.exists(), f"{path} has no async twin"


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
    together = threading.Barrier(MOST)

    def call(number: int) -> int:
        overlap.enter()
        together.wait(LIMIT)
        overlap.leave()
        return number

    assert sync_compat.for_each(call, range(COUNT), MOST) == list(range(COUNT))
    assert overlap.most == MOST


def test_aio_calls_overlap_up_to_the_limit_and_answer_in_order() -> None:
    overlap = Overlap()

    async def call(number: int) -> int:
        overlap.enter()
        await asyncio.sleep(1 if number % 2 else 2)
        overlap.leave()
        return number

    async def all_calls() -> tuple[list[int], float]:
        return await aio_compat.for_each(call, range(COUNT), MOST), now()

    answers, seconds = simulate(all_calls)
    assert answers == list(range(COUNT))
    assert overlap.most == MOST
    # Of 18 s of work, four at a time; a call that ends makes room for the next.
    assert seconds == 5


def test_a_lock_that_is_not_free_in_time_is_said_in_both_variants() -> None:
    lock = sync_compat.Lock()
    with (
        lock,
        pytest.raises(TimeoutError),
        sync_compat.holding(lock, 0.01),
    ):
        raise AssertionError("the lock was held twice")

    async def wait_for_it() -> float:
        lock = aio_compat.Lock()
        async with lock:
            with pytest.raises(TimeoutError):
                async with aio_compat.holding(lock, 7):
                    raise AssertionError("the lock was held twice")
        async with aio_compat.holding(lock, 7):
            assert lock.locked()
        assert not lock.locked()
        return now()

    assert simulate(wait_for_it) == 7
