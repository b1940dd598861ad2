"""Reading that another thread can end, also while the hub is silent."""

import threading
import time
from datetime import datetime

from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.stream import Stream, StreamWrapper

STOP_CHECK = 0.1
"""How often (s) a silent stream looks whether anybody still reads."""


class StoppedError(Exception):
    """Nobody reads any more; it ends a thread and is shown to nobody."""


class StoppableAddress(Address):
    """An address whose streams raise `StoppedError` soon after `stopped` was set."""

    def __init__(self, address: Address, stopped: threading.Event) -> None:
        self.fully_qualified_namespace = address.fully_qualified_namespace
        self.eventhub_name = address.eventhub_name
        self.consumer_group = address.consumer_group
        self._address = address
        self._stopped = stopped

    def ask_partition_ids(self) -> list[str]:
        return self._address.ask_partition_ids()

    def ask_properties(self, partition_id: str) -> PartitionProperties:
        return self._address.ask_properties(partition_id)

    def try_properties(self, partition_id: str) -> PartitionProperties:
        return self._address.try_properties(partition_id)

    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        return self._address.ask_first(partition_id, start, inclusive, timeout)

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        if self._stopped.is_set():
            raise StoppedError
        stream = self._address.open_stream(partition_id, start, until, settings)
        return StoppableStream(stream, self._stopped)

    def __str__(self) -> str:
        return str(self._address)


class StoppableStream(StreamWrapper):
    """A stream that looks now and then whether anybody still reads."""

    def __init__(self, stream: Stream, stopped: threading.Event) -> None:
        super().__init__(stream)
        self._stopped = stopped

    def next(self, timeout: float) -> Columns | None:
        """As of any stream.

        Raises:
            StoppedError: nobody reads any more.
        """
        deadline = time.monotonic() + timeout
        while not self._stopped.is_set():
            left = deadline - time.monotonic()
            found = self._stream.next(max(0.0, min(STOP_CHECK, left)))
            if found is not None or left <= STOP_CHECK or self._stream.is_over:
                return found
        raise StoppedError
