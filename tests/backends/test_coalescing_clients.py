"""A process with the real client and a coalescing store is killed: how much is read again."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends import Colour, Place
from eventhub_checkpoints.cli.children import Child
from eventhub_checkpoints.localhub import LocalHub

PROGRAMS = Path(__file__).parents[1] / "sdk"
IMPORT = re.compile(r"^from azure\.eventhub\.extensions\.\w+ import BlobCheckpointStore$", re.M)
OPENING = re.compile(r"BlobCheckpointStore\.from_connection_string\([^)]*\)", re.S)
PACKAGES = {"sync": "eventhub_checkpoints", "aio": "eventhub_checkpoints.aio"}
FOREVER = 10**9
EXPIRY = 2.5
"""Seconds: short, because the killed one's partition is waited for."""
EVENTS, WINDOW = 130, 50
DEADLINE = 60.0


def eventually(predicate: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE
    while not (found := predicate()):
        assert time.monotonic() < deadline, f"not in {DEADLINE:g} s"
        time.sleep(0.02)
    return found


@pytest.fixture
def program(colour: Colour, tmp_path: Path) -> Path:
    """The program of `tests/sdk`, which checkpoints each event, with a coalescing store."""
    text = (PROGRAMS / f"program_{colour}.py").read_text()
    text, imports = IMPORT.subn(
        f"from {PACKAGES[colour]} import CoalescingCheckpointStore, open_store\n"
        "from eventhub_checkpoints import every",
        text,
    )
    text, openings = OPENING.subn(
        'CoalescingCheckpointStore(open_store(os.environ["STORE_URL"]), '
        f"every(events={WINDOW}, seconds=600))",
        text,
    )
    assert (imports, openings) == (1, 1)
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


def processed(child: Child) -> list[int]:
    return [int(number) for number in re.findall(r"^0 (\d+)\n", child.log.read_text(), re.M)]


def saved(place: Place) -> int:
    row = place.rows("checkpoint").get("0")
    return -1 if row is None else int(row["sequencenumber"])


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_what_a_killed_process_has_not_saved_is_read_again_and_is_within_the_policy(
    place: Place, program: Path, tmp_path: Path
) -> None:
    def start(name: str) -> Child:
        return Child(
            [sys.executable, "-W", "error::RuntimeWarning", program, str(FOREVER)],
            log=tmp_path / f"{name}.log",
            env={
                "EVENTHUB_CONNECTION_STRING": hub.connection_string("orders"),
                "STORE_URL": place.url,
                "EXPIRY": str(EXPIRY),
            },
        )

    def publish(count: int) -> int:
        """So many events, and how many there are when all that is due is saved."""
        hub.publish("orders", "0", ["event"] * count)
        total = len(processed(victim)) + count
        eventually(lambda: len(processed(victim)) == total and saved(place) >= total - WINDOW)
        return total

    with LocalHub({"orders": 1}) as hub, start("victim") as victim:
        total = publish(EVENTS)
        if saved(place) == total - 1:  # a save is of the newest, which may have been the last
            total = publish(EVENTS // 10)
        victim.kill()
        first = saved(place) + 1
        assert total - WINDOW < first < total
        with start("heir") as heir:
            eventually(lambda: len(processed(heir)) == total - first)
            assert processed(heir) == list(range(first, total))
