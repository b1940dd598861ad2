"""Public path: events of one partition as columns, received by the client's public API."""

import queue
import threading
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from azure.eventhub import EventData, EventHubConsumerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

from eventhub_checkpoints._shared.client import Failure, failure_of, reason
from eventhub_checkpoints.receive.address import STOP_CHECK, Stream
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.receive.columns import (
    IN_OTHER_COLUMNS,
    Columns,
    Events,
    TextMaps,
    as_text,
)
from eventhub_checkpoints.sdk.receiver import note_errors


class ClientEvents(Events):
    """Events of the official client."""

    def __init__(self, events: Sequence[EventData]) -> None:
        self._events = events
        # Each of these is a call of the client's.
        self._messages = [event.raw_amqp_message for event in events]
        self._annotations = [message.annotations or {} for message in self._messages]

    @property
    def bodies(self) -> list[bytes]:
        return [*map(body_bytes, self._messages)]

    @property
    def properties(self) -> TextMaps:
        return TextMaps.of(message.application_properties for message in self._messages)

    @property
    def systems(self) -> TextMaps:
        rows = zip(self._events, self._messages, self._annotations, strict=True)
        return TextMaps.of(
            {}
            # For most events: the client would copy all annotations, only to have them dropped.
            if message.properties is None and annotations.keys() <= IN_OTHER_COLUMNS
            else system_properties(event)
            for event, message, annotations in rows
        )

    def texts(self, annotation: bytes) -> list[str | None]:
        return [as_text(annotations.get(annotation)) for annotations in self._annotations]

    def integers(self, annotation: bytes) -> list[int | None]:
        return [annotations.get(annotation) for annotations in self._annotations]


def columns_of(events: Sequence[EventData], fields: Collection[str] | None = None) -> Columns:
    """Return the events as columns, one row each, in order; see `Columns.of`."""
    return Columns.of(ClientEvents(events), fields)


def body_bytes(message: AmqpAnnotatedMessage) -> bytes:
    """Return the payload: joined data sections, or an AMQP value as its string or its JSON."""
    body = message.body
    if message.body_type is AmqpMessageBodyType.DATA:
        return body if isinstance(body, bytes) else b"".join(body)
    if message.body_type is AmqpMessageBodyType.SEQUENCE:
        body = list(body)
    return body if isinstance(body, bytes) else (as_text(body) or "").encode()


def system_properties(event: EventData) -> Mapping[Any, Any]:
    """Return the system properties that have no column for themselves."""
    properties: Mapping[Any, Any] = event.system_properties
    return {key: value for key, value in properties.items() if key not in IN_OTHER_COLUMNS}


LISTS_AHEAD = 2
"""Number of lists of events that may wait, so that receiving and converting overlap a little."""


class EventStream(Stream):
    """Events of one partition, received by `EventHubConsumerClient.receive_batch`.

    Bound: `prefetch` events in the client, and `LISTS_AHEAD` lists of at most `prefetch`.

    Args:
        client: receives from this partition only; closed with the stream.
        partition_id: which partition.
        start: position as the client accepts it: a sequence number, an offset, or a time.
        inclusive: whether an event exactly at `start` is delivered.
        prefetch: events that the service may send ahead.
        until: receiving ends with the event before this sequence number; None for no end.
        owner_level: see `ReadSettings`.
        outage: for how long the client is let to reconnect; None: until the stream is closed.
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
        owner_level: int | None = None,
        outage: Outage | None = None,
    ) -> None:
        self._outage = outage
        self._closed = threading.Event()
        self._until = until
        self._inbox: queue.Queue[Sequence[EventData] | Exception] = queue.Queue(LISTS_AHEAD)
        self._client = client
        self._trouble = ""
        note_errors(client, self._note)
        self._request: dict[str, Any] = {
            "partition_id": partition_id,
            "starting_position": start,
            "starting_position_inclusive": inclusive,
            "prefetch": prefetch,
            "max_batch_size": prefetch,
            "owner_level": owner_level,
        }
        # Daemon: the client takes up to a second to close a link; no task should wait for that.
        threading.Thread(target=self._receive, name=f"receive-{partition_id}", daemon=True).start()

    @property
    def trouble(self) -> str:
        return self._trouble

    def next(self, timeout: float) -> Columns | None:
        events = self.next_events(timeout)
        return None if events is None else columns_of(events, self.portion.fields)

    def next_events(self, timeout: float) -> Sequence[EventData] | None:
        """Return what `next` returns, as events of the client."""
        try:
            events = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(events, Exception):
            raise events
        return events

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

    def _note(self, error: Exception) -> None:
        """Keep an error that the client retries, and let it wait; end where that does not help."""
        self._trouble = reason(error)
        wait: float | None = 0.0
        if failure_of(error) is Failure.REFUSED:
            wait = None
        elif self._outage is not None:
            wait = self._outage.pause(error)
        if wait is None:
            # The client would log a raised error, with a position that may hold a secret.
            self._put(error)
        else:
            self._closed.wait(wait)

    def _put_events(self, events: Sequence[EventData]) -> None:
        self._trouble = ""
        self._put(events)
        if self._until is not None and (events[-1].sequence_number or 0) >= self._until - 1:
            # Otherwise it would receive some thousand more events before the reader gets this far.
            self._client.close()

    def _put(self, item: Sequence[EventData] | Exception) -> None:
        while not self._closed.is_set():
            try:
                self._inbox.put(item, timeout=STOP_CHECK)
            except queue.Full:
                continue
            if isinstance(item, Exception):
                # The client would create a new receiver and go on; that decision is the reader's.
                self._client.close()
            return
