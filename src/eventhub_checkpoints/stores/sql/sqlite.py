"""SQLite connections: lock timeouts, and releasing locks on close."""

import sqlite3
from typing import Any
from weakref import WeakSet

from eventhub_checkpoints._shared.deadline import seconds_left

LONGEST_WAIT = 3600.0
"""Seconds, for a call without a deadline."""
WAIT_SHARE = 0.9
"""Maximum share of a call's time that is spent waiting for a lock."""


class LettingGo(sqlite3.Connection):
    """Connection that releases the file's locks when it is closed.

    While one of its statements is unfinished, SQLite only marks a closed connection as such
    (`sqlite3_close_v2`), and keeps its transaction and its lock. A cancelled call leaves such
    statements in the frames of its traceback, until the garbage collector runs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Create a cursor, which is closed with the connection."""
        cursor = super().cursor(*args, **kwargs)
        self._cursors.add(cursor)
        return cursor

    def close(self) -> None:
        """Finish every statement, roll back what was not committed, and close."""
        for cursor in list(self._cursors):
            cursor.close()
        if self.in_transaction:
            self.rollback()
        super().close()


def flush_each_commit(connection: Any, record: Any) -> None:
    """Make each commit durable against a power failure; some builds of SQLite default to less."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def busy_milliseconds() -> int:
    """Return how long SQLite may wait for another program's lock.

    It is rounded down to one digit, so that a connection rarely needs a new setting.
    """
    left = int(1000 * WAIT_SHARE * min(seconds_left(), LONGEST_WAIT))
    digits = str(left)
    return int(digits[0].ljust(len(digits), "0"))
