"""One claim of one partition in the hands of a user's processor."""

import logging
import math
import time

from azure.eventhub import CloseReason, EventData
from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.client_check import called, check_handlers
from eventhub_checkpoints._shared._async.compat import Lock
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.processing._async.checkpoint_manager import CheckpointManager
from eventhub_checkpoints.processing._async.dispatcher import Giving, Handling
from eventhub_checkpoints.processing._async.session import Claim
from eventhub_checkpoints.processing.validation import require_handler

log = logging.getLogger("eventhub_checkpoints")


class Session:
    """The events of one claim, from the client to the user's processor and to the checkpoint.

    Attributes:
        context: the client's context of the partition.
        claim: what is finished and saved.
        waits_since: when it was ready for its first event; None: it is not yet.
    """

    def __init__(self, context: PartitionContext, claim: Claim, handling: Handling) -> None:
        self.context = context
        self.claim = claim
        self._handling = handling
        self._giving = Giving(context, claim, handling)
        self._opening = Lock()
        self._is_open = False
        self.waits_since: float | None = None
        self._failure: BaseException | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the partition is not processed any further."""
        return self.context.partition_id in self._handling.stopped

    @property
    def newest(self) -> float:
        """Sequence number of the newest event that has arrived."""
        return self._giving.work.newest

    @property
    def has_begun(self) -> bool:
        """Whether any event has arrived."""
        return self._giving.work.newest != -math.inf

    async def open(self) -> None:
        """Make the processor, once; events wait for that.

        A sync client delivers events in another thread than the one that opens the partition.
        """
        async with self._opening:
            if not (self._is_open or self.is_stopped):
                self._is_open = True
                await self._giving.runner.run(self._open)

    async def _open(self) -> None:
        error = await self._giving.tried(self._make)
        if isinstance(error, ConfigurationError):
            self._giving.fail(error)
        elif error is not None:
            await self._giving.tell(error)
        self._failure = error
        self.waits_since = time.monotonic()

    async def _make(self) -> None:
        checkpoints = CheckpointManager(self._giving.work)
        made = await called(self._handling.make, self.context, checkpoints)
        require_handler(made)
        check_handlers(made)
        self._giving.processor = made
        if hasattr(made, "initialize"):
            await called(made.initialize)

    async def receive(self, events: list[EventData]) -> None:
        """Process what the client delivers.

        Raises:
            Exception: what making or initializing the processor raised; the client closes the
                partition then, and claims it anew.
            CheckpointStoreError: too many events wait for one that was given up; likewise.
        """
        await self.open()
        # What a stopped partition delivers is left for whoever processes it next.
        if self._giving.is_ending or self.is_stopped:
            return
        if self._failure is not None:
            raise self._failure
        await self._giving.runner.run(self._giving.give, events)

    async def tell(self, error: Exception) -> None:
        """Tell the processor what the client says, unless that came from here and was told."""
        if error is not self._failure:
            await self._giving.tell(error)

    async def close(self, reason: CloseReason, drained_by: float) -> None:
        """Wait for what runs and what was left behind, and close the processor, in this order.

        Args:
            reason: what the processor is given.
            drained_by: until when events may finish, as `time.monotonic` has it.
        """
        giving, apart = self._giving, self._giving.work.apart
        seconds = self._handling.options.drain_timeout
        giving.is_over = True
        self.claim.changed()
        if not await giving.runner.end(drained_by - time.monotonic()):
            self._warn("the handler did not end, and was cut off")
        if not await self.claim.until(lambda: not apart, drained_by - time.monotonic()):
            self._warn(f"{len(apart)} events that were left behind are unfinished")
        if hasattr(giving.processor, "close"):
            await giving.runner.begin(self._close, reason)
            if not await giving.runner.end(seconds):
                await giving.tell(TimeoutError(f"close() did not end within {seconds:g} s"))

    async def _close(self, reason: CloseReason) -> None:
        error = await self._giving.tried(self._giving.processor.close, reason)
        if error is not None:
            await self._giving.tell(error)

    def _warn(self, what: str) -> None:
        log.warning("partition %s: %s", self.context.partition_id, what)
