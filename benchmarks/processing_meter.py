"""Ways of consuming, and the meter of a consumer: events, time and writes."""

import json
import os
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

NONE, OFFICIAL, COALESCING, TRACKED = ("none", "official", "coalescing", "tracked")
"""An event at a time: no checkpoint; one for each by the official store; the same by ours, with
`CoalescingCheckpointStore` before it; each tracked by a `Checkpointer`."""
NONE_BATCHES, OFFICIAL_BATCHES, PROCESSOR = ("none-batches", "official-batches", "processor")
"""A batch at a time: no checkpoint; one for each batch by the official store; `EventProcessor`."""

HANDLERS = {
    NONE: "plain",
    OFFICIAL: "updated",
    COALESCING: "updated",
    TRACKED: "tracked",
    NONE_BATCHES: "plain_batch",
    OFFICIAL_BATCHES: "updated_batch",
}
"""The methods that are handlers of a client; an `EventProcessor` has its own."""
WAYS = (*HANDLERS, PROCESSOR)
OFF, API, SDK = TELEMETRY = ("off", "api", "sdk")
"""Without spans and metrics; with OpenTelemetry's API alone; with its SDK."""
BY_OFFICIAL = (OFFICIAL, OFFICIAL_BATCHES)
WITHOUT = (NONE, NONE_BATCHES)
BY_BATCH = (NONE_BATCHES, OFFICIAL_BATCHES)
FROM_THE_FIRST = {"starting_position": "-1"}


class Meter:
    """Counts events from the first on: to connect, and to claim a partition, is no consuming.

    Args:
        events: how many there are.
        has_checkpoints: whether they are checkpointed.
    """

    def __init__(self, events: int, has_checkpoints: bool) -> None:
        self._expected = self._events = self._left = events
        self._has_checkpoints = has_checkpoints
        self._writes = 0
        self._wall = self._cpu = 0.0

    def count_writes(self, store: Any) -> None:
        """Count what reaches a store, of whatever variant."""
        write = store.update_checkpoint

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._writes += 1
            return write(*args, **kwargs)

        store.update_checkpoint = counted

    def count(self, events: int = 1) -> bool:
        """Some more were processed; whether these were the last."""
        if not self._wall:
            self._events -= events
            self._writes = 0
            self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._left -= events
        return self._left <= 0

    def stop(self) -> None:
        """All is done, and saved."""
        self._spent = time.perf_counter() - self._wall, time.process_time() - self._cpu

    def end(self, stored: Iterable[Mapping[str, Any]]) -> NoReturn:
        """Print events, seconds on the clock and of the processor, and writes; end the process.

        Args:
            stored: the checkpoints that a store has now, of partitions read from the start.
        """
        saved = sum(row["sequence_number"] + 1 for row in stored)
        expected = (self._expected - self._left) * self._has_checkpoints
        assert saved == expected, f"checkpoints cover {saved} events instead of {expected}"
        print(json.dumps([self._events, *self._spent, self._writes]), flush=True)
        # To close takes the client up to a second, which is no consuming.
        os._exit(0)


def scope_of(context: Any) -> tuple[str, str, str]:
    """The names under which a store lists what a client has."""
    return context.fully_qualified_namespace, context.eventhub_name, context.consumer_group


def broken(_context: Any, error: BaseException) -> NoReturn:
    """End the process where a client would try again."""
    traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(1)
