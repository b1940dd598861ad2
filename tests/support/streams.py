"""Events of the streams that readers receive."""

from eventhub_checkpoints.receive.address import Stream
from waiting import LIMIT


def numbers(stream: Stream, until: int) -> list[int]:
    """Return the sequence numbers that come until one of them, or until none comes for long."""
    found: list[int] = []
    while not found or found[-1] < until - 1:
        columns = stream.next(LIMIT)
        if columns is None:
            break
        found += columns.numbers
    return found
