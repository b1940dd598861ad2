"""A stalled link is opened again, and opening takes long."""

from functools import partial
from typing import Any

import pytest

from eventhub_checkpoints.aio import EventProcessor, MemoryCheckpointStore, PartitionProcessor
from simulated_hub import HUB, SimulatedHub
from simulated_time import Simulation, now, quiet, simulation

LIMIT = 10.0
"""Seconds without progress that make a stall."""


class Counted(SimulatedHub):
    """Counts how often a client begins to open a link.

    Attributes:
        begun: when each was begun.
    """

    def __init__(self) -> None:
        self.begun: list[float] = []
        super().__init__()

    @property
    def opening(self) -> float:
        self.begun.append(now())
        return self._opening

    @opening.setter
    def opening(self, seconds: float) -> None:
        self._opening = seconds


class Numbers(PartitionProcessor):
    """Notes which events it receives."""

    received: list[int | None]

    async def process_events(self, events: Any) -> None:
        self.received += [event.sequence_number for event in events]


def started(running: Simulation, hub: Counted) -> tuple[EventProcessor, list[int | None]]:
    """A processor that has received the event 0, whose link is mute from then on."""
    received: list[int | None] = []
    kind: Any = type("Processor", (Numbers,), {"received": received})
    make = partial(
        hub.client.from_connection_string,
        hub.connection_string(HUB),
        "$Default",
        load_balancing_interval=1.0,
    )
    store = MemoryCheckpointStore()
    processor = EventProcessor(make, kind, store=store, stalled_after=LIMIT, on_stall="reopen")
    hub.publish(HUB, "0", ["event"])
    running.finished(processor.start())
    running.eventually(lambda: received == [0])
    hub.mute_receivers(HUB)
    hub.publish(HUB, "0", ["event"])
    hub.begun.clear()
    return processor, received


@pytest.mark.parametrize("opening", [25.0, 50.0])
def test_a_link_that_opens_slowly_is_opened_once(opening: float) -> None:
    hub = Counted()
    with simulation() as running, quiet():
        processor, received = started(running, hub)
        hub.opening = opening
        running.eventually(lambda: received == [0, 1], 150.0)
        assert len(hub.begun) == 1
        assert processor.healthy()
        running.finished(processor.stop())


def test_a_link_that_stays_mute_is_opened_again_later_each_time() -> None:
    hub = Counted()
    with simulation() as running, quiet():
        processor, received = started(running, hub)
        hub.opens_mute = True
        running.elapse(600.0)
        assert received == [0]
        pauses = [later - time for time, later in zip(hub.begun, hub.begun[1:], strict=False)]
        assert [round(pause / LIMIT) for pause in pauses] == [2, 4, 8, 16, 16]
        hub.opens_mute = False
        hub.begun.clear()
        running.eventually(lambda: received == [0, 1], 20 * LIMIT)
        assert len(hub.begun) == 1
        running.finished(processor.stop())
