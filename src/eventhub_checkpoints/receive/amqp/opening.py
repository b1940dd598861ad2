"""Opening a link beside the reader, who must not wait longer than it wants to."""

import threading
import time
from dataclasses import dataclass

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.receive.amqp.private_parts import OfficialLink

OPEN_TIMEOUT = 30.0
"""Seconds for connection, token and link together; the token may come from far away."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where links are opened.

    Attributes:
        client: of the hub.
        consumer_group: in which events are read.
        partition_id: which partition.
    """

    client: EventHubConsumerClient
    consumer_group: str
    partition_id: str


class Opening:
    """A link that a thread of its own opens.

    The client's handshake waits for ever for a server that accepts a connection and says
    nothing, and it waits in silence where its token's link is refused.

    Attributes:
        deadline: when it has taken too long, by `time.monotonic`.
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
        """The opened link; None if it takes longer than `timeout` (s).

        Raises:
            FastPathError: the client has changed.
            EventHubError: the attempt failed, or has taken too long.
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
        """Nobody waits any more: whatever is opened is closed again."""
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
