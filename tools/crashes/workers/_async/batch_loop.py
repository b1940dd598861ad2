"""Loop over the batches of a consumer group, as a program of a user has it."""

import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from azure.core.exceptions import AzureError
from azure.eventhub import CloseReason
from azure.eventhub.aio import PartitionContext
from azure.eventhub.exceptions import EventHubError

from crashes.workers._async.client import run_until_told
from crashes.workers._async.store import WatchedStore
from crashes.workers.diary import Claim, Diary, UnluckyError
from crashes.workers.orders import DRAIN_SECONDS, TURN_SECONDS, Orders
from eventhub_checkpoints._shared._async.compat import sleep
from eventhub_checkpoints.aio.arrow import ConsumedBatches, consume_batches
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.processing._async.handover import is_handing_over
from eventhub_checkpoints.processing._async.session import names_of

log = logging.getLogger(__name__)

OnOpen = Callable[[PartitionContext], Awaitable[None]]
OnClose = Callable[[PartitionContext, CloseReason], Awaitable[None]]

TROUBLE = (AzureError, CheckpointStoreError, EventHubError)
"""Errors after which a program is started again."""


class Row(NamedTuple):
    """Row of a batch, as the journal knows an event."""

    sequence_number: int


def rows_of(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of a batch."""
    yield from map(Row, batch.column("sequenceNumber").to_pylist())


class BatchLoop:
    """Loop over batches, which commits after some of them.

    It ends on SIGTERM as its orders say: in a `with` block, after the batch at hand and with a last
    commit, or by `close`.

    Args:
        orders: of the worker.
        diary: has its sessions.
        process: processes an event.
        store: of the group.
    """

    def __init__(
        self,
        orders: Orders,
        diary: Diary,
        process: Callable[[Row], Awaitable[None]],
        store: WatchedStore,
    ) -> None:
        self._orders, self._diary, self._process, self._store = orders, diary, process, store
        self._batches: ConsumedBatches | None = None
        self._is_told = False
        self._begin()

    def _begin(self) -> None:
        """Have no partition."""
        self._opened: dict[str, deque[Claim]] = defaultdict(deque)
        self._claims: dict[str, Claim] = {}
        self._is_leaving = False

    async def run(self) -> None:
        """Process until SIGTERM."""
        if self._orders.restarts:
            await run_until_told(self._run_again_and_again, self._stop)
            return
        while not self._is_told:
            try:
                await self._run_in_block()
            except TROUBLE as error:
                log.warning("the loop has ended: %s", error)
                await sleep(TURN_SECONDS)

    async def _run_in_block(self) -> None:
        async with self._joined() as batches:
            await self._loop(batches)
            self._is_told = self._is_leaving = True
            await self._commit(batches)
            for partition_id, claim in self._claims.items():
                if partition_id not in batches.lost:
                    claim.closing(CloseReason.SHUTDOWN)

    async def _run_again_and_again(self) -> None:
        while not self._is_told:
            batches = self._joined()
            try:
                await self._loop(batches)
            except (UnluckyError, *TROUBLE) as error:
                log.warning("the loop has ended: %s", error)
            self._is_leaving = True
            await batches.close()

    async def _stop(self) -> None:
        """Stop the loop from outside."""
        self._is_told = self._is_leaving = True
        if self._batches is not None:
            await self._batches.close()

    def _joined(self) -> ConsumedBatches:
        """Return the batches of a new member of the group."""
        self._begin()
        self._batches = batches = consume_batches(
            self._orders.connection,
            "$Default",
            store=self._store,
            on_assigned=self._on_assigned,
            on_lost=self._on_lost,
            handover=self._orders.hands_over,
            drain_timeout=DRAIN_SECONDS,
            **self._orders.batching,
        )
        # The user's functions are called later, between two batches.
        opened, closed = batches._opened, batches._closed
        watched = {
            "_opened": partial(self._open, opened),
            "_closed": partial(self._close, batches, closed),
        }
        vars(batches).update(watched)
        return batches

    async def _loop(self, batches: ConsumedBatches) -> None:
        left = self._orders.commits_after
        async for batch in batches:
            claim = self._claims[batch.column("partition")[0].as_py()]
            for row in rows_of(batch):
                claim.begun(row)
                await self._processed(row)
                claim.done(row)
            left -= 1
            if not left:
                await self._commit(batches)
                left = self._orders.commits_after

    async def _processed(self, row: Row) -> None:
        """Process a row, again if it fails and another loop would not begin.

        Raises:
            UnluckyError: it failed.
        """
        while True:
            try:
                await self._process(row)
            except UnluckyError:
                if self._orders.restarts:
                    raise
            else:
                return

    async def _commit(self, batches: ConsumedBatches) -> None:
        """Commit; if that fails, go on, or try again, as the orders say."""
        while True:
            try:
                await batches.commit()
            except TROUBLE as error:
                log.warning("not committed: %s", error)
                for claim in self._claims.values():
                    claim.uncommitted()
                if self._orders.max_unsaved is None or self._is_told:
                    return
                await sleep(TURN_SECONDS)
            else:
                return

    def _on_assigned(self, partition_id: str) -> None:
        self._claims[partition_id] = self._opened[partition_id].popleft()

    async def _on_lost(self, partition_id: str) -> None:
        """Commit what may be handed over."""
        if self._batches is not None and self._orders.hands_over:
            await self._commit(self._batches)
        del self._claims[partition_id]

    async def _open(
        self, opened: Callable[..., Awaitable[None]], context: PartitionContext
    ) -> None:
        claim = self._diary.open(context.partition_id, announces=True)
        self._opened[context.partition_id].append(claim)
        await opened(context)

    async def _close(
        self,
        batches: ConsumedBatches,
        closed: OnClose,
        context: PartitionContext,
        reason: CloseReason,
    ) -> None:
        claim = self._diary.open(context.partition_id, announces=False)
        asked = is_handing_over(batches._client.store, *names_of(context))
        claim.closing(CloseReason.OWNERSHIP_LOST, hands_over=asked and not self._is_leaving)
        try:
            await closed(context, reason)
        finally:
            claim.closed()
            self._diary.forget(claim)
