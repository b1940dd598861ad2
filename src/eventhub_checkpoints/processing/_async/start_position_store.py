"""Store that an EventProcessor passes to its client; it decides where each partition starts.

`StartPositions` has the configured start positions, `PositionValidator` queries whether the hub has
a position, and `StartPositionStore` shows the client the checkpoint to start from.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from azure.eventhub.aio import CheckpointStore
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared._async.client_check import called
from eventhub_checkpoints._shared._async.compat import Lock, for_each, holding, sleep
from eventhub_checkpoints._shared.client import explanation, scope_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.start_position import client_position
from eventhub_checkpoints.processing._async.receive_loop import to_the_end
from eventhub_checkpoints.processing.options import Options, require_start
from eventhub_checkpoints.processing.start_position import (
    Place,
    StartChoice,
    beyond,
    foreign,
    has_events_behind,
)
from eventhub_checkpoints.records import RELEASED, SequenceOffset


class StartPositions:
    """Configured start positions: a value, a mapping by partition, or a function.

    Args:
        options: options of the processor.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._asked: dict[str, Any] = {}

    def of(self, partition_id: str) -> Any:
        """Return the start position of a partition; None: the beginning."""
        return self._asked.get(partition_id, self._options.start_of(partition_id))

    def has(self, partition_id: str) -> bool:
        """Return whether a start position is configured for a partition."""
        return self.of(partition_id) is not None

    async def ask(self, client: Any) -> Any:
        """Return the `starting_position` argument for the client.

        Raises:
            ConfigurationError: one names no partition, or the function returned no start position;
                or they are set by partition, and the hub does not exist or refuses access.
            HubUnavailableError: they are set by partition, and the hub does not answer.
        """
        given = self._options.starting_position
        if not callable(given) and not isinstance(given, Mapping):
            return client_position(given)
        try:
            partition_ids = await client.get_partition_ids()
        except EventHubError as error:
            raise explanation(error, scope_of(client)) from error
        self._options.check_partitions(partition_ids)
        for partition_id in partition_ids:
            if isinstance(given, Mapping):
                found = given.get(partition_id)
            else:
                found = await called(given, partition_id)
            require_start(f"starting_position of partition {quoted(partition_id)}", found)
            self._asked[partition_id] = found
        return {key: client_position(start) for key, start in self._asked.items()}


log = logging.getLogger("eventhub_checkpoints")

AT_ONCE = 8
"""Partitions that the hub is queried about at the same time."""
ENDING = 5.0
"""Seconds that the hub has to answer once nobody waits for it any more."""
AGAIN = 1.0
"""Seconds before a second query confirms that the hub lacks a position."""

AT_START = "starting_position says to start there"
BY_NUMBER = (
    "pass a callable that makes the client, and the partition goes on by its sequence number"
)


class PositionValidator:
    """Finds positions that the hub does not have.

    Args:
        steering: where partitions start.
        start_of: returns the start position configured for a partition, or None.
        reached: returns the number of the last event that a partition has received, or after which
            it started; None: unknown.
        refused: called with a partition, the problem and its remedy; a remedy of None means that
            `on_invalid_checkpoint` applies.

    Attributes:
        client: the client whose hub is queried.
        goes_by_offset: whether the client resumes from the stored offset even if the number is
            known: an already constructed client reads the store itself.
    """

    def __init__(
        self,
        steering: StartChoice,
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
        """Validate the positions of partitions that are opened next."""
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
        """Validate one of the open partitions that receive nothing, and all of them if it is lost.

        Returns:
            Partitions that have to be opened again, at a different position.
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
        """Return whether the hub has events for a partition that has received none yet."""
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
        """Return what is wrong with a position; None if nothing is, or the hub does not answer."""
        try:
            said = beyond(place, await self._properties(partition_id))
            if said is not None:
                # Events that were received a moment ago may not be counted yet.
                await sleep(AGAIN)
                said = beyond(place, await self._properties(partition_id))
        except Exception as error:
            log.debug("partition %s: the hub was not asked: %r", partition_id, error)
            return None
        return said

    async def _properties(self, partition_id: str) -> Any:
        # An aio client that is cancelled during the query leaks its connection.
        ask = self.client.get_partition_properties
        return await to_the_end(ask, partition_id, seconds=ENDING)


def place_of_start(start: object) -> Place | None:
    """Return the place that a start position names; None if every hub has it."""
    if isinstance(start, int):
        return start, None
    return (None, start) if isinstance(start, str) else None


T = TypeVar("T")


class StartPositionStore(CheckpointStore):
    """Shows a client only the saved positions at which it is to start.

    Args:
        store: the store of the processor.
        steering: decides which positions are shown.
        vetting: validates each position before it is used.
        settled: waits until no partition is being closed.
        patience: seconds that a running claim has to end when the processor stops.
        beside: calls a function in the background.

    Attributes:
        is_stopping: whether claims are refused: a sync client still balances its load after it was
            closed.
        is_asked: whether the client uses it and has listed ownerships.
        asked_at: when the client last did so.
        open_partitions: partitions that the client has open.
    """

    def __init__(
        self,
        store: CheckpointStore,
        steering: StartChoice,
        vetting: PositionValidator,
        settled: Callable[[], Awaitable[None]],
        patience: float,
        beside: Callable[..., Awaitable[None]],
    ) -> None:
        self._store = store
        self._beside = beside
        self._steering = steering
        self._vetting = vetting
        self._settled = settled
        self._patience = patience
        self._lost: set[str] = set()
        self._claiming = Lock()
        self._held: dict[str, dict[str, Any]] = {}
        self.is_stopping = False
        self.open_partitions: set[str] = set()
        self.is_asked = False
        self.asked_at = -math.inf
        self._failing: dict[str, float] = {}

    async def _ask(self, function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
        """Call the store below, and record since when it has not answered."""
        what = getattr(function, "__name__", "")
        try:
            found = await function(*args, **kwargs)
        except Exception:
            self._failing.setdefault(what, time.monotonic())
            raise
        self._failing.pop(what, None)
        return found

    def has_failed_for(self, seconds: float) -> bool:
        """Return whether claims or lists have failed for this long."""
        now = time.monotonic()
        return any(now - since > seconds for since in list(self._failing.values()))

    async def list_ownership(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        self.is_asked, self.asked_at = True, time.monotonic()
        if not self.is_stopping:
            self._lost = await self._vetting.idle(self.open_partitions)
        return await self._ask(self._store.list_ownership, *names, **kwargs)

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        proposed = list(ownership_list)
        if any(row.get("owner_id") for row in proposed):
            return await to_the_end(self._claim, proposed, kwargs, seconds=self._patience)
        for row in proposed:
            self._held.pop(row["partition_id"], None)
        if self.is_stopping:
            # A sync client closes partitions one after another, and the storage may hang.
            await self._beside(self._release, proposed, kwargs)
            return []
        return await to_the_end(self._asked, proposed, kwargs)

    async def _release(self, rows: list[dict[str, Any]], kwargs: dict[str, Any]) -> None:
        try:
            await self._asked(rows, kwargs)
        except Exception as error:
            partition_ids = ", ".join(row["partition_id"] for row in rows)
            log.warning("partitions %s stay owned until that expires: %r", partition_ids, error)

    async def _claim(
        self, proposed: list[dict[str, Any]], kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        async with self._claiming:
            if self.is_stopping:
                # Open partitions stay claimed until they are released, after their last checkpoint.
                opened = self.open_partitions
                proposed = [row for row in proposed if row["partition_id"] in opened]
            won = await self._asked(proposed, kwargs)
            self._held |= {row["partition_id"]: dict(row) for row in won}
            # The client closes a partition missing from the result, and opens it again next time.
            return [row for row in won if row["partition_id"] not in self._lost]

    async def _asked(
        self, proposed: list[dict[str, Any]], kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        if not proposed:
            return []
        return list(await self._ask(self._store.claim_ownership, proposed, **kwargs))

    async def give_back(self) -> None:
        """Release what was claimed and never opened, once the client has stopped.

        A client that is stopped between claiming and opening forgets the partition, and nobody else
        could claim it until the ownership expires.
        """
        try:
            # A running claim ends first; none follows it.
            async with holding(self._claiming, self._patience):
                left = [{**row, "owner_id": RELEASED} for row in self._held.values()]
                self._held.clear()
        except TimeoutError as error:
            log.warning("what was claimed last may stay owned until that expires: %r", error)
            return
        if left:
            await self._beside(self._release, left, {})

    async def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        names = fully_qualified_namespace, eventhub_name, consumer_group
        # Either client may open a partition again while it is still closing it: not before its last
        # checkpoint.
        await self._settled()
        rows = await self._ask(self._store.list_checkpoints, *names, **kwargs)
        scope = dict(zip(SCOPE, names, strict=True))
        saved = {row["partition_id"]: place_of(row) for row in rows}
        shown = self._steering.show(saved)
        if not self.is_stopping:
            won = [key for key in self._held if key not in self.open_partitions]
            await self._vetting.opening(won)
            shown = self._steering.show(saved)
        return [row_of({**scope, "partition_id": key}, place) for key, place in shown.items()]

    async def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        if self._steering.saves:
            await self._store.update_checkpoint(dict(checkpoint), **kwargs)


SCOPE = ("fully_qualified_namespace", "eventhub_name", "consumer_group")


def place_of(row: Mapping[str, Any]) -> Place:
    """Return the position of a row."""
    return row.get("sequence_number"), row.get("offset")


def row_of(names: Mapping[str, str], place: Place) -> dict[str, Any]:
    """Return a row for the client, which resumes by the sequence number if that is known.

    An offset may have become invalid: a hub that became geo-replicated refuses a decimal one.
    """
    sequence_number, offset = place
    if isinstance(sequence_number, int) and sequence_number >= 0:
        offset = SequenceOffset(sequence_number)
    return {**names, "sequence_number": sequence_number, "offset": offset}
