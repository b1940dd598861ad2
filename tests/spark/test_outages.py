"""A hub that is away for longer than the client tries: driver, tasks and sink wait for it.

`python -m outages` tries every fault for 3, 12 and 45 seconds, and for ever.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eventhub_checkpoints._shared import deadline
from eventhub_checkpoints.errors import CheckpointStoreError
from outages.hub_callers import HUB_CALLERS, PATIENT
from outages.place import Place, opened
from outages.result import Result
from waiting import eventually

CLIENTS_ATTEMPTS = 4
"""Source: azure-eventhub 5.15.1, `_configuration.py`: `retry_total` is 3."""
CALLERS = [name for name in HUB_CALLERS if name not in (*PATIENT, "ehcp lag")]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(deadline, "LONGEST_PAUSE", 0.01)
    with opened("reset") as place:
        yield place


@pytest.fixture
def back_later(place: Place) -> Iterator[Callable[[], None]]:
    """Lets the hub fail until the callers have tried more often than the client would."""
    healing: list[threading.Thread] = []

    def heal() -> None:
        eventually(lambda: place.gate.attempts > 2 * CLIENTS_ATTEMPTS)
        place.gate.heal()

    def fail() -> None:
        place.gate.fail("reset")
        healing.append(threading.Thread(target=heal))
        healing[0].start()

    yield fail
    for thread in healing:
        thread.join()


@pytest.mark.parametrize("caller", CALLERS)
def test_an_outage_costs_no_event_and_is_said_once(
    place: Place, back_later: Callable[[], None], caplog: Any, caller: str
) -> None:
    act, result = HUB_CALLERS[caller](place), Result(caller, "reset", 0.0)
    caplog.set_level(logging.WARNING, "eventhub_checkpoints")
    back_later()
    act(result)
    assert (result.lost, result.twice) == (0, 0)
    said = [each.getMessage() for each in caplog.records if "eventhub_checkpoints" in each.name]
    assert said
    # Of each partition that is read at the same time.
    assert len(said) == len({each.partition(": no answer since")[0] for each in said})


@pytest.mark.parametrize("caller", CALLERS)
def test_a_refusal_is_told_as_what_it_is(place: Place, caller: str) -> None:
    act = HUB_CALLERS[caller](place)
    place.hub.refuse_tokens()
    place.hub.drop_connections()
    with pytest.raises(CheckpointStoreError, match="wrong key"):
        act(Result(caller, "key", 0.0))
