"""The store that a processor's client is given: it says where partitions start."""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared._async.compat import Lock, holding
from eventhub_checkpoints.processing._async.handler_task import to_the_end
from eventhub_checkpoints.processing._async.position_validator import Vetting
from eventhub_checkpoints.processing.start_choice import Place, Steering
from eventhub_checkpoints.records import RELEASED, SequenceOffset

log = logging.getLogger("eventhub_checkpoints")
T = TypeVar("T")


class SteeringStore(CheckpointStore):
    """Shows a client the saved positions that it is to start at, and no others.

    Args:
        store: whose rows these are.
        steering: what is shown.
        vetting: is asked for each position before it is used.
        settled: waits until no partition is being closed.
        patience: seconds that a claim under way has to end when the processor stops.
        beside: calls a function beside the caller.

    Attributes:
        is_stopping: from then on nothing is claimed: a sync client still balances its load after
            it was closed.
        is_asked: whether the client has it, and asks who owns the partitions.
        asked_at: when it did so last.
        open_partitions: those that the client has open.
    """

    def __init__(
        self,
        store: CheckpointStore,
        steering: Steering,
        vetting: Vetting,
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
        """Ask the store below, and note since when it has not answered."""
        what = getattr(function, "__name__", "")
        try:
            found = await function(*args, **kwargs)
        except Exception:
            self._failing.setdefault(what, time.monotonic())
            raise
        self._failing.pop(what, None)
        return found

    def has_failed_for(self, seconds: float) -> bool:
        """Whether nothing could be claimed or listed for so long."""
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
            # A sync client closes partitions one after another, and the storage may be frozen.
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
                # What is open stays claimed until it is released, behind its last checkpoint.
                opened = self.open_partitions
                proposed = [row for row in proposed if row["partition_id"] in opened]
            won = await self._asked(proposed, kwargs)
            self._held |= {row["partition_id"]: dict(row) for row in won}
            # The client closes what it was not told that it has won, and opens it again next time.
            return [row for row in won if row["partition_id"] not in self._lost]

    async def _asked(
        self, proposed: list[dict[str, Any]], kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        if not proposed:
            return []
        return list(await self._ask(self._store.claim_ownership, proposed, **kwargs))

    async def give_back(self) -> None:
        """Release what was claimed and never opened, once the client has stopped.

        A client that is stopped between the two forgets it, and nobody else may have it then.
        """
        try:
            # A claim that is under way ends first; none follows it.
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
        # Either client may open a partition again while it still closes it: not before its last
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
    """Where a row says that a partition goes on."""
    return row.get("sequence_number"), row.get("offset")


def row_of(names: Mapping[str, str], place: Place) -> dict[str, Any]:
    """Return a row as a client reads it, which resumes by the sequence number where it is known.

    An offset may mean nothing any more: a hub that became geo-replicated refuses a decimal one.
    """
    sequence_number, offset = place
    if isinstance(sequence_number, int) and sequence_number >= 0:
        offset = SequenceOffset(sequence_number)
    return {**names, "sequence_number": sequence_number, "offset": offset}
