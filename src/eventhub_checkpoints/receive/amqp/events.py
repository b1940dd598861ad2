"""One partition's events by the client's public API: it pushes, and columns are asked for."""

import queue
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from azure.eventhub import EventData, EventHubConsumerClient

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.amqp.event_columns import columns_of
from eventhub_checkpoints.receive.stream import Stream

LISTS_AHEAD = 2
"""How many lists of events may wait, so that receiving and converting overlap a little."""

STOP_CHECK = 0.1
"""How often (s) a thread with a full inbox looks whether anybody still reads."""


class EventStream(Stream):
    """The events of one partition, received by `EventHubConsumerClient.receive_batch`.

    Bound: `prefetch` events in the client, and `LISTS_AHEAD` lists of at most `prefetch`.

    Args:
        client: receives from this partition only, and is closed with the stream.
        partition_id: which partition.
        start: what the client takes: a sequence number, an offset, or a time.
        inclusive: whether an event exactly at `start` is delivered.
        prefetch: events that the service may send ahead.
        until: receiving ends with the event before this sequence number; None goes on.
    """

    def __init__(
        self,
        client: EventHubConsumerClient,
        partition_id: str,
        start: int | str | datetime,
        *,
        inclusive: bool = True,
        prefetch: int = 300,
        until: int | None = None,
    ) -> None:
        self._closed = threading.Event()
        self._until = until
        self._inbox: queue.Queue[Sequence[EventData] | Exception] = queue.Queue(LISTS_AHEAD)
        self._client = client
        self._request: dict[str, Any] = {
            "partition_id": partition_id,
            "starting_position": start,
            "starting_position_inclusive": inclusive,
            "prefetch": prefetch,
            "max_batch_size": prefetch,
        }
        # Daemon: closing a link takes the client up to a second, which no task should wait for.
        threading.Thread(target=self._receive, name=f"receive-{partition_id}", daemon=True).start()

    def next(self, timeout: float) -> Columns | None:
        try:
            events = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(events, Exception):
            raise events
        return columns_of(events)

    def close(self) -> None:
        self._closed.set()
        self._client.close()

    def _receive(self) -> None:
        try:
            self._client.receive_batch(
                lambda _context, events: self._put_events(events),
                on_error=lambda _context, error: self._put(error),
                **self._request,
            )
        except Exception as error:
            self._put(error)

    def _put_events(self, events: Sequence[EventData]) -> None:
        self._put(events)
        if self._until is not None and (events[-1].sequence_number or 0) >= self._until - 1:
            # Else it would receive some thousand events more until its reader has come so far.
            self._client.close()

    def _put(self, found: Sequence[EventData] | Exception) -> None:
        while not self._closed.is_set():
            try:
                self._inbox.put(found, timeout=STOP_CHECK)
            except queue.Full:
                continue
            if isinstance(found, Exception):
                # The client would make a new receiver and go on; the reader decides that.
                self._client.close()
            return
