"""A process with the real client and a coalescing store is killed: how much is read again."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backends import Place
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.localhub import LocalHub
from waiting import eventually

pytestmark = pytest.mark.long

FOREVER = 10**9
EXPIRY = 2.5
"""Seconds: short, because the killed one's partition is waited for."""
EVENTS, WINDOW = 130, 50


@pytest.fixture
def program(program_with: Callable[[str, str], Path]) -> Path:
    """One that checkpoints each event, with a coalescing store."""
    return program_with(
        "CoalescingCheckpointStore, open_store\nfrom eventhub_checkpoints import every",
        'CoalescingCheckpointStore(open_store(os.environ["STORE_URL"]), '
        f"every(events={WINDOW}, seconds=600))",
    )


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
