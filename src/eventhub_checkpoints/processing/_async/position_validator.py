"""Whether the hub has the positions where partitions go on: it is asked, because nobody is told.

The client opens a link again and again that the service refuses because of its position, and does
not call `on_error`. Only a sync client with `retry_total=0` does.

Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`: a link that is not ready
yet ends the loop that counts the attempts.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from eventhub_checkpoints._shared._async.compat import for_each, sleep
from eventhub_checkpoints.processing._async.handler_task import to_the_end
from eventhub_checkpoints.processing.invalid_positions import beyond, foreign, has_events_behind
from eventhub_checkpoints.processing.start_choice import Place, Steering

log = logging.getLogger("eventhub_checkpoints")

AT_ONCE = 8
"""Partitions that the hub is asked about at the same time."""
ENDING = 5.0
"""Seconds that the hub has to answer when nobody waits for that any more."""
AGAIN = 1.0
"""Seconds after which the hub is asked again, before it is believed to lack a position."""

AT_START = "starting_position says to start there"
BY_NUMBER = (
    "pass a callable that makes the client, and the partition goes on by its sequence number"
)


class Vetting:
    """Finds positions that the hub does not have.

    Args:
        steering: where partitions start.
        start_of: the start position that was given for a partition, or None.
        reached: the number of the last event that a partition has received, or that it began
            behind; None: it is not known.
        refused: called with a partition, what is wrong, and what to do about it; None: what
            `on_invalid_checkpoint` says.

    Attributes:
        client: whose hub it is.
        goes_by_offset: whether the client resumes by the stored offset although the number is
            known: one that is ready reads the store itself.
    """

    def __init__(
        self,
        steering: Steering,
        start_of: Callable[[str], Any],
        reached: Callable[[str], int | None],
        refused: Callable[[str, str, str | None], None],
    ) -> None:
        self.client: Any = None
        self.goes_by_offset = False
        self._steering = steering
        self._start_of = start_of
        self._reached = reached
        self._refused = refused
        self._before: dict[str, int | None] = {}
        self._turn = 0

    async def opening(self, partition_ids: Sequence[str]) -> None:
        """Ask for partitions that are opened next."""
        await for_each(self._opening, partition_ids, AT_ONCE)

    async def _opening(self, partition_id: str) -> None:
        shown = (self._steering.shown or {}).get(partition_id)
        if shown is not None:
            said = await self._lack(partition_id, shown)
            if said is not None:
                self._refused(partition_id, said, None)
            elif self.goes_by_offset and (said := await self._foreign(partition_id, shown)):
                self._refused(partition_id, said, BY_NUMBER)
            if partition_id not in self._steering.refused:
                return
        start = place_of_start(self._start_of(partition_id))
        said = start and await self._lack(partition_id, start)
        if said:
            self._refused(partition_id, said, AT_START)

    async def idle(self, partition_ids: Collection[str]) -> set[str]:
        """Ask for one of the open partitions that receive nothing, and for all if it is lost.

        Returns:
            Those that have to be opened again, at another position.
        """
        refused = self._steering.refused
        reached = {key: self._reached(key) for key in sorted(partition_ids) if key not in refused}
        before, self._before = self._before, reached
        idle = [key for key, number in reached.items() if number is not None]
        idle = [key for key in idle if reached[key] == before.get(key)]
        self._turn += 1
        first = idle[self._turn % len(idle)] if idle else None
        if first and not await self._is_there(first):
            for partition_id in idle:
                if partition_id != first:
                    await self._is_there(partition_id)
        return refused & {*partition_ids}

    async def has_events(self, partition_id: str) -> bool:
        """Ask whether the hub has events for a partition that has received none yet."""
        number, offset = (self._steering.shown or {}).get(partition_id, (None, None))
        start = self._start_of(partition_id) if number is None and not offset else number
        try:
            return has_events_behind(start, await self._properties(partition_id))
        except Exception as error:
            log.debug("partition %s: the hub was not asked: %r", partition_id, error)
            return False

    async def _is_there(self, partition_id: str) -> bool:
        said = await self._lack(partition_id, (self._reached(partition_id), None))
        if said is not None:
            self._refused(partition_id, said, None)
        return said is None

    async def _foreign(self, partition_id: str, place: Place) -> str | None:
        try:
            return foreign(place[1], await self._properties(partition_id))
        except Exception as error:
            log.debug("partition %s: the hub was not asked: %r", partition_id, error)
            return None

    async def _lack(self, partition_id: str, place: Place) -> str | None:
        """What is wrong with a position; None where nothing is, or the hub does not answer."""
        try:
            said = beyond(place, await self._properties(partition_id))
            if said is not None:
                # What has been received just now might not be counted yet.
                await sleep(AGAIN)
                said = beyond(place, await self._properties(partition_id))
        except Exception as error:
            log.debug("partition %s: the hub was not asked: %r", partition_id, error)
            return None
        return said

    async def _properties(self, partition_id: str) -> Any:
        # An aio client that is cancelled while it asks leaves its connection open.
        ask = self.client.get_partition_properties
        return await to_the_end(ask, partition_id, seconds=ENDING)


def place_of_start(start: object) -> Place | None:
    """The place that a start position names; None where every hub has it."""
    if isinstance(start, int):
        return start, None
    return (None, start) if isinstance(start, str) else None
