"""Finds positions at which a client is to start, or has started, and that its hub does not have."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from eventhub_checkpoints._shared._async.compat import for_each, sleep, within
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints.processing import start_position
from eventhub_checkpoints.processing._async.receive_loop import to_the_end
from eventhub_checkpoints.processing.start_position import StartChoice, Stored
from eventhub_checkpoints.sdk.consumer import is_link_open, opening_of, receiver_at

log = logging.getLogger("eventhub_checkpoints")

MAX_CONCURRENT_QUERIES = 8
"""Partitions that the hub is queried about at the same time."""
ABANDONED_AFTER = 5.0
"""Seconds until a request to the hub is abandoned after its caller stopped waiting."""
CONFIRM_AFTER = 1.0
"""Seconds before a second query confirms that the hub lacks a position."""
ATTACH_TIMEOUT = 10.0
"""Seconds that the hub has to accept or refuse a receiver at a position."""

AT_START = "change starting_position, which names it"
BY_NUMBER = (
    "pass a callable that makes the client, so that the partition continues by its sequence number"
)

T = TypeVar("T")


class ClientState(Protocol):
    """Client of one run of a processor, and the partitions that it has open.

    Attributes:
        client: the client; None before it was created.
        is_ready: whether it was already constructed, and uses the store itself.
    """

    client: Any
    is_ready: bool

    @property
    def open_partitions(self) -> set[str]:
        """Return the partitions that are open or being closed."""

    def reached(self, partition_id: str) -> int | None:
        """Return the number of the last event received, or after which it started, if known."""

    def refused(self, partition_id: str, problem: str, remedy: str | None) -> None:
        """Handle a position that the hub lacks; no remedy: `on_invalid_checkpoint` applies."""


class PositionValidator:
    """Finds positions that the hub does not have.

    A sequence number and a decimal offset are compared with those of the partition. Of any other
    offset nothing is known, so a receiver without an owner level is opened there for a moment. If
    the hub neither accepts nor refuses the position, because it does not answer or because an owner
    reads the partition, the query is repeated in later rounds, until events arrive.

    The client keeps reopening a link that the service refuses because of its position, and does not
    call `on_error`; only a sync client with `retry_total=0` does.
    Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`: a link that is not
    ready yet ends the loop that counts the attempts.

    Args:
        choice: the positions that the client was shown.
        state: the client whose hub is queried, and what it has open.
    """

    def __init__(self, choice: StartChoice, state: ClientState) -> None:
        self._choice = choice
        self._state = state
        self._before: dict[str, int | None] = {}
        self._turn = 0
        self._unsure: dict[str, tuple[str, str | None]] = {}

    async def opening(self, partition_ids: Sequence[str]) -> None:
        """Validate the positions of partitions that are opened next."""
        await for_each(self._opening, partition_ids, MAX_CONCURRENT_QUERIES)

    async def _opening(self, partition_id: str) -> None:
        refused = self._state.refused
        shown = self._choice.last_shown(partition_id)
        if shown is not None:
            if problem := await self._problem(partition_id, shown, None):
                refused(partition_id, problem, None)
            # An already constructed client reads the store itself, and resumes from the stored
            # offset even if the number is known.
            elif (
                self._state.is_ready
                and isinstance(shown[0], int)
                and (problem := await self._problem(partition_id, (None, shown[1]), BY_NUMBER))
            ):
                refused(partition_id, problem, BY_NUMBER)
            if partition_id not in self._choice.refused:
                return
        start = self._choice.start_of(partition_id)
        if isinstance(start, int | str):  # any other start, such as a time, exists in every hub
            position = (start, None) if isinstance(start, int) else (None, start)
            if problem := await self._problem(partition_id, position, AT_START):
                refused(partition_id, problem, AT_START)

    async def idle(self) -> None:
        """Validate one of the open partitions that receive nothing; if it fails, all of them.

        A partition whose position the hub lacks is opened again, at a different position.
        """
        open_partitions = self._state.open_partitions
        reached = {
            partition_id: self._state.reached(partition_id)
            for partition_id in sorted(open_partitions - self._choice.refused)
        }
        before, self._before = self._before, reached
        idle = [
            key
            for key, number in reached.items()
            if number is not None and number == before.get(key)
        ]
        self._turn += 1
        first = idle[self._turn % len(idle)] if idle else None
        if first and not await self._has_position(first):
            for partition_id in idle:
                if partition_id != first:
                    await self._has_position(partition_id)
        await self._ask_again(open_partitions)

    async def _ask_again(self, open_partitions: set[str]) -> None:
        """Ask about one of the positions that the hub has neither accepted nor refused."""
        for partition_id in [*self._unsure]:
            is_open = partition_id in open_partitions
            if not is_open or self._state.reached(partition_id) is not None:
                del self._unsure[partition_id]
        if not self._unsure:
            return
        partition_id = [*self._unsure][self._turn % len(self._unsure)]
        offset, remedy = self._unsure[partition_id]
        if problem := await self._refusal(partition_id, offset, remedy):
            self._state.refused(partition_id, problem, remedy)

    async def _has_position(self, partition_id: str) -> bool:
        """Return whether the hub has the position that a partition has reached."""
        reached = self._state.reached(partition_id), None
        if problem := await self._problem(partition_id, reached, None):
            self._state.refused(partition_id, problem, None)
        return problem is None

    async def has_events(self, partition_id: str) -> bool:
        """Return whether the hub has events for a partition that has received none yet."""
        number, offset = self._choice.last_shown(partition_id) or (None, None)
        is_shown = number is not None or bool(offset)
        start = number if is_shown else self._choice.start_of(partition_id)
        check = partial(start_position.has_events_after, start)
        return bool(await self._check(partition_id, check))

    async def _problem(self, partition_id: str, position: Stored, remedy: str | None) -> str | None:
        """Return what is wrong with a position; None if nothing is, or the hub does not answer."""
        number, offset = position
        is_known = isinstance(number, int) and number >= 0
        if not is_known and isinstance(offset, str) and start_position.is_opaque(offset):
            return await self._refusal(partition_id, offset, remedy)
        check = partial(start_position.beyond, position)
        if not await self._check(partition_id, check):
            return None
        # Events that were received a moment ago may not be counted yet.
        await sleep(CONFIRM_AFTER)
        return await self._check(partition_id, check)

    async def _refusal(self, partition_id: str, offset: str, remedy: str | None) -> str | None:
        """Return why the hub refuses to begin at an offset; None if it does not, or is silent."""
        self._unsure[partition_id] = offset, remedy
        problem = None
        try:
            # An aio client that is cancelled while it connects leaks its connection.
            await to_the_end(self._attach, partition_id, offset, seconds=ABANDONED_AFTER)
        except Exception as error:
            problem = start_position.refused_position(error)
            if problem is None:
                log.debug(
                    "partition %s: offset %r was not tried: %s",
                    partition_id,
                    offset,
                    described(error),
                )
                return None
        self._unsure.pop(partition_id, None)
        return problem

    async def _attach(self, partition_id: str, offset: str) -> None:
        """Open a receiver at an offset, and close it.

        Raises:
            Exception: the hub refuses it, or does not answer in time.
        """
        receiver = receiver_at(self._state.client, partition_id, offset)
        if receiver is None:
            return
        ends = time.monotonic() + ATTACH_TIMEOUT
        try:
            while not is_link_open(receiver):
                await within(ends - time.monotonic(), opening_of(receiver))
        finally:
            await receiver.close()

    async def _check(self, partition_id: str, check: Callable[[Any], T]) -> T | None:
        """Apply a function to a partition's properties; return None if the hub does not answer."""
        try:
            # An aio client that is cancelled during the query leaks its connection.
            query = self._state.client.get_partition_properties
            return check(await to_the_end(query, partition_id, seconds=ABANDONED_AFTER))
        except Exception as error:
            log.debug(
                "partition %s: its properties could not be read: %s", partition_id, described(error)
            )
            return None
