"""Store that an EventProcessor passes to its client.

It shows the client the positions to start from, has it open partitions again, and keeps what it
claims in step with the end of the processor.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared._async.compat import Lock, holding
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.wrapping import require_wrappable
from eventhub_checkpoints.processing._async.position_validator import (
    ClientState,
    PositionValidator,
)
from eventhub_checkpoints.processing._async.receive_loop import to_the_end
from eventhub_checkpoints.processing.options import Options
from eventhub_checkpoints.processing.start_position import StartChoice, Stored
from eventhub_checkpoints.records import RELEASED, Scope, SequenceOffset

log = logging.getLogger("eventhub_checkpoints")

T = TypeVar("T")


class ClientRun(ClientState, Protocol):
    """Run of a client, from when it is created until it has stopped."""

    @property
    def is_stopping(self) -> bool:
        """Return whether nothing more is claimed; a sync client that is closed still tries."""

    def is_handing_over(self, *names: str) -> bool:
        """Return whether the client is handing a partition over."""

    async def wait_closed(self, partition_ids: Iterable[str]) -> None:
        """Wait until none of these partitions is being closed."""

    async def in_background(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Call a function in the background."""


class ProcessorStore(CheckpointStore):
    """Shows a client only the saved positions at which it is to start, and watches its claims.

    Args:
        store: the wrapped store.
        options: of the processor.
        choice: decides which positions are shown.
        validator: validates each position before it is used.
        run: the run of the client that uses this store.

    Attributes:
        store: see above.
        listed_at: when the client last listed ownerships; minus infinity if it has not yet.
        won: partitions that the client holds, as its last claim returned them.
    """

    def __init__(
        self,
        store: CheckpointStore,
        options: Options,
        choice: StartChoice,
        validator: PositionValidator,
        run: ClientRun,
    ) -> None:
        require_wrappable(self, store)
        self.store = store
        self._options = options
        self._choice = choice
        self._validator = validator
        self._run = run
        self.listed_at = -math.inf
        self._claiming = Lock()
        self._held: dict[str, dict[str, Any]] = {}
        self.won: set[str] = set()
        self._reopening: set[str] = set()
        self._failing: dict[str, float] = {}

    @property
    def is_used(self) -> bool:
        """Return whether the client uses it and has listed ownerships."""
        return self.listed_at != -math.inf

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
        """Return the names and times of calls since which the store below has not answered."""
        return frozenset(self._failing.copy().items())

    def reopen(self, partition_id: str) -> None:
        """Have the client close a partition, and open it again in its next round."""
        self._reopening.add(partition_id)

    def has_failed_for(self, seconds: float) -> bool:
        """Return whether claims or lists have failed or hung for this long."""
        now = time.monotonic()
        return any(now - since > seconds for since in list(self._failing.values()))

    async def list_ownership(self, *names: str, **kwargs: Any) -> Iterable[dict[str, Any]]:
        # Before the store answers: the client lists ownerships only after the hub has answered it.
        self.listed_at = time.monotonic()
        if not self._run.is_stopping:
            await self._validator.idle()
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
        if self._run.is_stopping:
            # A sync client closes partitions one after another, and the storage may hang.
            await self._run.in_background(self._release, rows, kwargs)
            return []
        return await to_the_end(self._claim_below, rows, kwargs)

    async def _release(self, rows: list[dict[str, Any]], kwargs: dict[str, Any]) -> None:
        try:
            await self._claim_below(rows, kwargs)
        except Exception as error:
            partition_ids = ", ".join(row["partition_id"] for row in rows)
            log.warning(
                "ownerships of partitions %s stay until they expire: %s",
                partition_ids,
                described(error),
            )

    async def _claim(
        self, rows: list[dict[str, Any]], kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        # `give_back` waits for the lock: a claim that runs when the processor stops may still win.
        async with self._claiming:
            if self._run.is_stopping:
                # Open partitions stay claimed until they are released, after their last checkpoint.
                open_partitions = self._run.open_partitions
                rows = [row for row in rows if row["partition_id"] in open_partitions]
            won = await self._claim_below(rows, kwargs)
            self._held |= {row["partition_id"]: dict(row) for row in won}
            # The client closes a partition missing from the result, and opens it again next time.
            refused = self._choice.refused & self._run.open_partitions
            closing = refused | self._reopening
            # Not emptied: the watchdog may have added a partition since, in another thread.
            self._reopening -= closing
            kept = [row for row in won if row["partition_id"] not in closing]
            self.won = {row["partition_id"] for row in kept}
            return kept

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
            log.warning(
                "ownerships that were claimed last may stay until they expire: %s",
                described(error),
            )
            return
        if left:
            await self._run.in_background(self._release, left, {})

    async def list_checkpoints(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        **kwargs: Any,
    ) -> Iterable[dict[str, Any]]:
        scope = Scope(fully_qualified_namespace, eventhub_name, consumer_group)
        # Either client may open a partition again while it is still closing it, but must not before
        # its last checkpoint is stored. A partition that is handed over is not opened, so that its
        # drain does not hold up the opening of others and the next renewals.
        reopened = [key for key in self.won if not self._run.is_handing_over(*scope, key)]
        await self._run.wait_closed(reopened)
        rows = await self._call(self.store.list_checkpoints, *scope, **kwargs)
        saved: dict[str, Stored] = {
            row["partition_id"]: (row.get("sequence_number"), row.get("offset")) for row in rows
        }
        shown = self._choice.show(saved)
        if not self._run.is_stopping:
            open_partitions = self._run.open_partitions
            await self._validator.opening([key for key in self._held if key not in open_partitions])
            shown = self._choice.show(saved)
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
