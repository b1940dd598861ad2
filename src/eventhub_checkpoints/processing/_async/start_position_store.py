"""Store that an EventProcessor passes to its client; it decides where each partition starts.

`PositionValidator` queries whether the hub has a position, and `StartPositionStore` shows the
client the checkpoint to start from.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from azure.eventhub.aio import CheckpointStore
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared._async.client_check import called
from eventhub_checkpoints._shared._async.compat import Lock, for_each, holding, sleep, within
from eventhub_checkpoints._shared.client import explanation
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.start_position import client_position
from eventhub_checkpoints._shared.wrapping import require_wrappable
from eventhub_checkpoints.processing import start_position
from eventhub_checkpoints.processing._async.receive_loop import to_the_end
from eventhub_checkpoints.processing.options import Options, require_start
from eventhub_checkpoints.processing.start_position import StartChoice, Stored
from eventhub_checkpoints.records import RELEASED, Scope, SequenceOffset
from eventhub_checkpoints.sdk.consumer import is_link_open, opening_of, receiver_at, scope_of

log = logging.getLogger("eventhub_checkpoints")

AT_ONCE = 8
"""Partitions that the hub is queried about at the same time."""
ABANDONED_AFTER = 5.0
"""Seconds until a request to the hub is abandoned after its caller stopped waiting."""
AGAIN = 1.0
"""Seconds before a second query confirms that the hub lacks a position."""
ATTACHING = 10.0
"""Seconds that the hub has to accept or refuse a receiver at a position."""

AT_START = "starting_position says to start there"
BY_NUMBER = (
    "pass a callable that makes the client, and the partition goes on by its sequence number"
)

T = TypeVar("T")


class Partitions(Protocol):
    """Open partitions of a client, as the proxy needs to know them."""

    def reached(self, partition_id: str) -> int | None:
        """Return the number of the last event received, or after which it started, if known."""

    def refused(self, partition_id: str, problem: str, remedy: str | None) -> None:
        """Handle a position that the hub lacks; no remedy: `on_invalid_checkpoint` applies."""

    async def wait_closed(self) -> None:
        """Wait until no partition is being closed."""

    async def in_background(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Call a function in the background."""


class PositionValidator:
    """Finds positions that the hub does not have.

    A sequence number and a decimal offset are compared with those of the partition. Of any other
    offset nothing is known, so a receiver without an owner level is opened there for a moment. If
    the hub says nothing about the position, because it is away or because an owner reads the
    partition, it is asked again in later rounds, until events arrive.

    The client keeps reopening a link that the service refuses because of its position, and does not
    call `on_error`; only a sync client with `retry_total=0` does.
    Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`: a link that is not
    ready yet ends the loop that counts the attempts.

    Attributes:
        client: the client whose hub is queried.
        goes_by_offset: whether the client resumes from the stored offset even if the number is
            known: an already constructed client reads the store itself.
    """

    def __init__(
        self, choice: StartChoice, start_of: Callable[[str], Any], partitions: Partitions
    ) -> None:
        self.client: Any = None
        self.goes_by_offset = False
        self._choice = choice
        self._start_of = start_of
        self._partitions = partitions
        self._before: dict[str, int | None] = {}
        self._turn = 0
        self._unsure: dict[str, tuple[str, str | None]] = {}

    async def opening(self, partition_ids: Sequence[str]) -> None:
        """Validate the positions of partitions that are opened next."""
        await for_each(self._opening, partition_ids, AT_ONCE)

    async def _opening(self, partition_id: str) -> None:
        refused = self._partitions.refused
        shown = self._choice.last_shown(partition_id)
        if shown is not None:
            if problem := await self._problem(partition_id, shown, None):
                refused(partition_id, problem, None)
            elif (
                self.goes_by_offset
                and isinstance(shown[0], int)
                and (problem := await self._problem(partition_id, (None, shown[1]), BY_NUMBER))
            ):
                refused(partition_id, problem, BY_NUMBER)
            if partition_id not in self._choice.refused:
                return
        start = self._start_of(partition_id)
        if isinstance(start, int | str):  # every hub has the others
            position = (start, None) if isinstance(start, int) else (None, start)
            if problem := await self._problem(partition_id, position, AT_START):
                refused(partition_id, problem, AT_START)

    async def idle(self, partition_ids: Collection[str]) -> set[str]:
        """Validate one of the open partitions that receive nothing, and all of them if it is lost.

        Returns:
            Partitions that have to be opened again, at a different position.
        """
        refused, reached_of = self._choice.refused, self._partitions.reached
        reached = {key: reached_of(key) for key in sorted(partition_ids) if key not in refused}
        before, self._before = self._before, reached
        idle = [
            key
            for key, number in reached.items()
            if number is not None and number == before.get(key)
        ]
        self._turn += 1
        first = idle[self._turn % len(idle)] if idle else None
        if first and not await self._is_there(first):
            for partition_id in idle:
                if partition_id != first:
                    await self._is_there(partition_id)
        await self._ask_again(partition_ids)
        return refused & {*partition_ids}

    async def _ask_again(self, partition_ids: Collection[str]) -> None:
        """Ask about one of the positions that the hub has neither accepted nor refused."""
        for partition_id in [*self._unsure]:
            is_open = partition_id in partition_ids
            if not is_open or self._partitions.reached(partition_id) is not None:
                del self._unsure[partition_id]
        if not self._unsure:
            return
        partition_id = [*self._unsure][self._turn % len(self._unsure)]
        offset, remedy = self._unsure[partition_id]
        if problem := await self._refusal(partition_id, offset, remedy):
            self._partitions.refused(partition_id, problem, remedy)

    async def _is_there(self, partition_id: str) -> bool:
        reached = self._partitions.reached(partition_id), None
        if problem := await self._problem(partition_id, reached, None):
            self._partitions.refused(partition_id, problem, None)
        return problem is None

    async def has_events(self, partition_id: str) -> bool:
        """Return whether the hub has events for a partition that has received none yet."""
        number, offset = self._choice.last_shown(partition_id) or (None, None)
        start = self._start_of(partition_id) if number is None and not offset else number
        check = partial(start_position.has_events_behind, start)
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
        await sleep(AGAIN)
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
                log.debug("partition %s: offset %r was not tried: %r", partition_id, offset, error)
                return None
        self._unsure.pop(partition_id, None)
        return problem

    async def _attach(self, partition_id: str, offset: str) -> None:
        """Open a receiver at an offset, and close it.

        Raises:
            Exception: the hub refuses it, or does not answer in time.
        """
        receiver = receiver_at(self.client, partition_id, offset)
        if receiver is None:
            return
        ends = time.monotonic() + ATTACHING
        try:
            while not is_link_open(receiver):
                await within(ends - time.monotonic(), opening_of(receiver))
        finally:
            await receiver.close()

    async def _check(self, partition_id: str, check: Callable[[Any], T]) -> T | None:
        """Apply a function to a partition's properties; return None if the hub does not answer."""
        try:
            # An aio client that is cancelled during the query leaks its connection.
            query = self.client.get_partition_properties
            return check(await to_the_end(query, partition_id, seconds=ABANDONED_AFTER))
        except Exception as error:
            log.debug("partition %s: its properties could not be read: %r", partition_id, error)
            return None


class StartPositionStore(CheckpointStore):
    """Shows a client only the saved positions at which it is to start.

    Attributes:
        store: the wrapped store.
        choice: decides which positions are shown.
        validator: validates each position before it is used.
        is_stopping: whether claims are refused: a sync client still balances its load after it was
            closed.
        is_used: whether the client uses it and has listed ownerships.
        listed_at: when the client last did so.
        open_partitions: partitions that the client has open.
        won: partitions that the client has been told it holds.
    """

    def __init__(self, store: CheckpointStore, options: Options, partitions: Partitions) -> None:
        require_wrappable(self, store)
        self.store = store
        self._options = options
        self._partitions = partitions
        self._starts: dict[str, Any] = {}
        self.choice = StartChoice(options.save, self._has_start, options.from_saved)
        self.validator = PositionValidator(self.choice, self.start_of, partitions)
        self.is_stopping = False
        self.open_partitions: set[str] = set()
        self.is_used = False
        self.listed_at = -math.inf
        self._claiming = Lock()
        self._held: dict[str, dict[str, Any]] = {}
        self.won: set[str] = set()
        self._lost: set[str] = set()
        self._reopening: set[str] = set()
        self._failing: dict[str, float] = {}

    def start_of(self, partition_id: str) -> Any:
        """Return the configured start position of a partition; None: the beginning."""
        return self._starts.get(partition_id, self._options.start_of(partition_id))

    def _has_start(self, partition_id: str) -> bool:
        return self.start_of(partition_id) is not None

    async def starting_position(self, client: Any) -> Any:
        """Return the `starting_position` argument for the client.

        Raises:
            ConfigurationError: one names no partition, or the function returned no start position;
                or they are set by partition, and the hub does not exist or refuses access.
            HubUnavailableError: they are set by partition, and the hub does not answer.
        """
        option = self._options.starting_position
        if not callable(option) and not isinstance(option, Mapping):
            return client_position(option)
        try:
            partition_ids = await client.get_partition_ids()
        except EventHubError as error:
            raise explanation(error, scope_of(client)) from error
        self._options.check_partitions(partition_ids)
        for partition_id in partition_ids:
            if isinstance(option, Mapping):
                start = option.get(partition_id)
            else:
                start = await called(option, partition_id)
            require_start(f"starting_position of partition {quoted(partition_id)}", start)
            self._starts[partition_id] = start
        return {key: client_position(start) for key, start in self._starts.items()}

    async def _call(self, function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
        """Call the store below, and record since when it has not answered."""
        name = getattr(function, "__name__", "")
        self._failing.setdefault(name, time.monotonic())
        try:
            result = await function(*args, **kwargs)
        except Exception:
            raise
        except BaseException:  # a call that is cancelled says nothing about the store
            self._failing.pop(name, None)
            raise
        self._failing.pop(name, None)
        return result

    @property
    def trying(self) -> frozenset[tuple[str, float]]:
        """Names and times of calls of the store below since which it has not answered."""
        return frozenset(self._failing.copy().items())

    def reopen(self, partition_id: str) -> None:
        """Have the client close a partition, and open it again in its next round."""
        self._reopening.add(partition_id)

    def has_failed_for(self, seconds: float) -> bool:
        """Return whether claims or lists have failed or hung for this long."""
        now = time.monotonic()
        return any(now - since > seconds for since in list(self._failing.values()))

    async def list_ownership(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        self.is_used, self.listed_at = True, time.monotonic()
        if not self.is_stopping:
            self._lost = await self.validator.idle(self.open_partitions)
        return await self._call(self.store.list_ownership, *names, **kwargs)

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **kwargs: Any
    ) -> Iterable[dict[str, Any]]:
        rows = list(ownership_list)
        if any(row.get("owner_id") for row in rows):
            patience = self._options.write_timeout
            return await to_the_end(self._claim, rows, kwargs, seconds=patience)
        for row in rows:
            self._held.pop(row["partition_id"], None)
        if self.is_stopping:
            # A sync client closes partitions one after another, and the storage may hang.
            await self._partitions.in_background(self._release, rows, kwargs)
            return []
        return await to_the_end(self._claim_below, rows, kwargs)

    async def _release(self, rows: list[dict[str, Any]], kwargs: dict[str, Any]) -> None:
        try:
            await self._claim_below(rows, kwargs)
        except Exception as error:
            partition_ids = ", ".join(row["partition_id"] for row in rows)
            log.warning("partitions %s stay owned until that expires: %r", partition_ids, error)

    async def _claim(
        self, rows: list[dict[str, Any]], kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        async with self._claiming:
            if self.is_stopping:
                # Open partitions stay claimed until they are released, after their last checkpoint.
                rows = [row for row in rows if row["partition_id"] in self.open_partitions]
            won = await self._claim_below(rows, kwargs)
            self._held |= {row["partition_id"]: dict(row) for row in won}
            # The client closes a partition missing from the result, and opens it again next time.
            gone, self._reopening = self._lost | self._reopening, set()
            told = [row for row in won if row["partition_id"] not in gone]
            self.won = {row["partition_id"] for row in told}
            return told

    async def _claim_below(
        self, rows: list[dict[str, Any]], kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        if not rows:
            return []
        return list(await self._call(self.store.claim_ownership, rows, **kwargs))

    async def give_back(self) -> None:
        """Release what was claimed and never opened, once the client has stopped.

        A client that is stopped between claiming and opening forgets the partition, and nobody else
        could claim it until the ownership expires.
        """
        try:
            # A running claim ends first; none follows it.
            async with holding(self._claiming, self._options.write_timeout):
                left = [{**row, "owner_id": RELEASED} for row in self._held.values()]
                self._held.clear()
        except TimeoutError as error:
            log.warning("what was claimed last may stay owned until that expires: %r", error)
            return
        if left:
            await self._partitions.in_background(self._release, left, {})

    async def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        scope = Scope(fully_qualified_namespace, eventhub_name, consumer_group)
        # Either client may open a partition again while it is still closing it: not before its last
        # checkpoint.
        await self._partitions.wait_closed()
        rows = await self._call(self.store.list_checkpoints, *scope, **kwargs)
        saved: dict[str, Stored] = {
            row["partition_id"]: (row.get("sequence_number"), row.get("offset")) for row in rows
        }
        shown = self.choice.show(saved)
        if not self.is_stopping:
            won = [key for key in self._held if key not in self.open_partitions]
            await self.validator.opening(won)
            shown = self.choice.show(saved)
        listed = []
        for partition_id, (number, offset) in shown.items():
            # An offset may have become invalid: a hub that became geo-replicated refuses a decimal
            # one. The client resumes by the number, if that is known.
            if isinstance(number, int) and number >= 0:
                offset = SequenceOffset(number)
            position = {"sequence_number": number, "offset": offset}
            listed.append({**scope.as_dict(), "partition_id": partition_id, **position})
        return listed

    async def update_checkpoint(self, checkpoint: Mapping[str, Any], **kwargs: Any) -> None:
        if self._options.save:
            await self.store.update_checkpoint(dict(checkpoint), **kwargs)
