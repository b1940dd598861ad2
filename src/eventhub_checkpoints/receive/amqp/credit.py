"""How many events the service may send ahead."""

from eventhub_checkpoints.receive.amqp.decoder import Columns

GROWTH = 20
"""The fast path keeps few events, so it lets more of them be on their way than `prefetch`."""

BYTES_AHEAD = 32 * 2**20


class Credit:
    """The credit of one link, topped up when half of it is used.

    It never reaches past the end of the range as far as sequence numbers tell, and not further
    than `BYTES_AHEAD` of bodies as large as those that came so far. What is on its way waits in
    the sockets until it is read, so this does not bound memory, but what is sent for nothing.

    Args:
        start: sequence number of the first event.
        until: of the first event that is not wanted.
        prefetch: the first credit, while the size of an event is unknown.
    """

    def __init__(self, start: int, until: int, prefetch: int) -> None:
        self._next, self._until = start, until
        self._first, self._most = prefetch, prefetch * GROWTH
        self._rows = self._size = 0
        self._outstanding = 0

    def used(self, deliveries: int) -> None:
        """So many deliveries have come."""
        self._outstanding -= deliveries

    def taken(self, columns: Columns) -> None:
        """These events were taken; the next one has the next number."""
        if columns:
            self._next = columns.numbers[-1] + 1
            self._rows += len(columns)
            self._size += columns.size

    def grant(self, waiting: int, *, urgent: bool = False) -> int | None:
        """What to grant now, counted from the last delivery; None for nothing new.

        Args:
            waiting: events that have come and were not taken.
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
