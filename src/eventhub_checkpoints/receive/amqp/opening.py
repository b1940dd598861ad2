"""Opening of a link in the background: retries and credit."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.receive.amqp.decoder import Columns
from eventhub_checkpoints.receive.amqp.private_parts import OfficialLink


class Retries:
    """Counter of consecutive failures, and the delay before the next attempt.

    Args:
        settings: keywords of the client; those that begin with `retry_` are used, with the
            client's defaults for missing ones.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._total = int(settings.get("retry_total", 3))
        self._factor = float(settings.get("retry_backoff_factor", 0.8))
        self._longest = float(settings.get("retry_backoff_max", 120))
        self._fixed = settings.get("retry_mode", "exponential") == "fixed"
        self._failed = 0

    def succeeded(self) -> None:
        """Reset the failure count, because events arrived."""
        self._failed = 0

    def pause(self) -> float | None:
        """Return the seconds until the next attempt; None if there is none left."""
        self._failed += 1
        if self._failed > self._total:
            return None
        growth = 1.0 if self._fixed else float(2 ** (self._failed - 1))
        return min(self._factor * growth, self._longest)


GROWTH = 20
"""Factor over `prefetch`: the fast path buffers few events, so more may be in transit."""

BYTES_AHEAD = 32 * 2**20


class Credit:
    """Credit of one link, topped up when half of it is used.

    It does not extend past the end of the range, judged by sequence numbers, nor past
    `BYTES_AHEAD` of bodies, estimated by the size of those received. Events in transit wait in
    the sockets until they are read, so this bounds not memory but what is sent in vain.

    Args:
        start: sequence number of the first event.
        until: sequence number of the first event not wanted.
        prefetch: the first credit, while the size of an event is unknown.
    """

    def __init__(self, start: int, until: int, prefetch: int) -> None:
        self._next, self._until = start, until
        self._first, self._most = prefetch, prefetch * GROWTH
        self._rows = self._size = 0
        self._outstanding = 0

    def used(self, deliveries: int) -> None:
        """Count deliveries received."""
        self._outstanding -= deliveries

    def taken(self, columns: Columns) -> None:
        """Record that these events were taken; the next one has the next sequence number."""
        if columns:
            self._next = columns.numbers[-1] + 1
            self._rows += len(columns)
            self._size += columns.size

    def grant(self, waiting: int, *, urgent: bool = False) -> int | None:
        """Return the credit to grant now, counted from the last delivery; None for no change.

        Args:
            waiting: events received and not taken.
            urgent: a flow frame has to be sent anyway.
        """
        wanted = min(self._window(), max(0, self._until - self._next - waiting))
        due = wanted > self._outstanding and self._outstanding <= self._window() // 2
        if not (due or urgent):
            return None
        self._outstanding = max(wanted, self._outstanding)
        return self._outstanding

    def _window(self) -> int:
        if not self._rows:
            return self._first
        size = max(1, self._size // self._rows)
        return max(1, min(self._most, BYTES_AHEAD // size))


OPEN_TIMEOUT = 30.0
"""Seconds for connection, token and link together; a token may take a while to fetch."""


@dataclass(frozen=True, slots=True)
class Place:
    """Partition in which links are opened.

    Attributes:
        client: of the hub.
        consumer_group: the group that reads the events.
        partition_id: which partition.
    """

    client: EventHubConsumerClient
    consumer_group: str
    partition_id: str


class Opening:
    """Link being opened in a background thread.

    The client's handshake waits for ever for a server that accepts a connection and sends
    nothing, and it waits without an error where its token's link is refused.

    Attributes:
        deadline: when the attempt times out, by `time.monotonic`.
    """

    def __init__(self, place: Place, start: int) -> None:
        group, partition_id = place.consumer_group, place.partition_id
        self._link = OfficialLink(place.client, group, partition_id, start)
        self.deadline = time.monotonic() + OPEN_TIMEOUT
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_wanted = True
        self._error: Exception | None = None
        name = f"open-{partition_id}"
        threading.Thread(target=self._open, name=name, daemon=True).start()

    def result(self, timeout: float) -> OfficialLink | None:
        """Return the opened link; None if it takes longer than `timeout` (s).

        Raises:
            FastPathError: the client has changed.
            EventHubError: the attempt failed, or timed out.
        """
        if not self._ended.wait(timeout):
            if time.monotonic() < self.deadline:
                return None
            self.abandon()
            raise ConnectError(f"no link was attached within {OPEN_TIMEOUT:g} s")
        if self._error is not None:
            raise self._error
        return self._link

    def abandon(self) -> None:
        """Stop waiting; whatever is opened from now on is closed again."""
        with self._lock:
            self._is_wanted = False
            ended = self._ended.is_set()
        if ended:
            self._link.close()
        else:
            self._link.interrupt()

    def _open(self) -> None:
        error: Exception | None = None
        try:
            self._link.open(lambda: self._is_wanted)
        except Exception as caught:
            error = self._link.ended_by(caught)
        with self._lock:
            self._error = error
            self._ended.set()
            wanted = self._is_wanted
        if not wanted:
            self._link.close()
