"""Two processes with the real client share a hub; one is killed."""

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

# The clients and the base class decide who takes over; a backend says how old an ownership is, for
# which it is certified alone. So one that claims singly and one that does in batches, each with
# another client.
SHOWN = [("blob", "aio"), ("postgres", "sync")]
FOREVER = 10**9
EXPIRY = 6.0
"""Seconds: longer than a pause of the machine, and short, because the heir waits for it."""
EVENTS = 1000
"""So many that the one that is killed in their midst cannot have come to their end by then."""


@pytest.fixture
def program(program_with: Callable[[str, str], Path]) -> Path:
    return program_with("open_store", 'open_store(os.environ["STORE_URL"])')


@pytest.fixture
def start(program: Path, place: Place, tmp_path: Path) -> Callable[..., Child]:
    def started(name: str, hub: LocalHub) -> Child:
        return Child(
            [sys.executable, "-W", "error::RuntimeWarning", program, str(FOREVER)],
            log=tmp_path / f"{name}.log",
            env={
                "EVENTHUB_CONNECTION_STRING": hub.connection_string("orders"),
                "STORE_URL": place.url,
                "EXPIRY": str(EXPIRY),
            },
        )

    return started


def processed(child: Child) -> dict[str, list[int]]:
    """Sequence numbers that a program has printed, by partition."""
    found: dict[str, list[int]] = {}
    for key, number in re.findall(r"^(\d+) (\d+)\n", child.log.read_text(), re.M):
        found.setdefault(key, []).append(int(number))
    return found


def owners(place: Place) -> dict[str, str]:
    return {key: row["ownerid"] for key, row in place.rows("ownership").items()}


def sole_owner(place: Place) -> str:
    """Who owns both partitions; `""` where nobody does yet."""
    found = owners(place)
    return "".join({*found.values()}) if len(found) == 2 and len({*found.values()}) == 1 else ""


def saved(place: Place) -> dict[str, int]:
    return {key: int(row["sequencenumber"]) for key, row in place.rows("checkpoint").items()}


@pytest.mark.parametrize(("backend", "variant"), SHOWN, indirect=True)
def test_what_a_killed_process_owned_is_taken_over_and_every_event_is_processed(
    place: Place, start: Callable[..., Child]
) -> None:
    with LocalHub({"orders": 2}) as hub, start("victim", hub) as victim:
        owner = eventually(lambda: sole_owner(place))
        with start("heir", hub) as heir:
            eventually(lambda: len({*owners(place).values()} - {""}) == 2)
            lost, kept = sorted(owners(place), key=lambda key: owners(place)[key] != owner)
            hub.publish("orders", lost, ["event"] * EVENTS)
            eventually(lambda: len(processed(victim).get(lost, [])) > EVENTS / 100)
            victim.kill()
            hub.publish("orders", kept, ["event"] * 5)
            eventually(lambda: saved(place) == {lost: EVENTS - 1, kept: 4})
            eventually(lambda: processed(heir).get(lost, [])[-1:] == [EVENTS - 1])
            eventually(lambda: processed(heir).get(kept) == list(range(5)))
            before, after = processed(victim), processed(heir)[lost]
            assert before == {lost: list(range(len(before[lost])))}
            # Killed between saving and printing, it has saved one more than it could print.
            assert after[0] in (len(before[lost]), len(before[lost]) + 1)
            assert after == list(range(after[0], EVENTS))
            assert owner not in owners(place).values()
