# Not derived: edit this file and its async twin together.
"""Thread in which the client of a group works on one partition."""

import threading
from collections.abc import Callable

from eventhub_checkpoints.sdk.stack import line_of_thread


class Worker:
    """Runs a function in a thread.

    Args:
        name: of the thread.
        function: what it runs.
        args: its arguments.
    """

    def __init__(self, name: str, function: Callable[..., None], *args: object) -> None:
        # Daemon: a handler that hangs must not block the program's exit.
        self._thread = threading.Thread(target=function, name=name, args=args, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Return whether the function has ended."""
        return not self._thread.is_alive()

    def handler(self) -> str | None:
        """Return the file, line and function that the thread has reached; None: it has ended."""
        return line_of_thread(self._thread.ident)

    def interrupt(self) -> None:
        """Do nothing: what runs in a thread cannot be interrupted."""

    def wait(self) -> None:
        """Wait until the function has ended."""
        self._thread.join()
