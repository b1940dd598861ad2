"""Driver clients in programs that fork or change their event loop."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

Client = TypeVar("Client")


class PerProcessClient(Generic[Client]):
    """One client for each process and event loop.

    Args:
        make: creates the client; called again in a forked child, which must not use the parent's
            connections, and in another event loop.
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._inherited: list[Client] = []
        self._begin()

    def begin_anew(self) -> None:
        """Use a new client.

        The parent process's client is kept: if a forked child dropped it, its connections would be
        removed from the parent's event loop, whose epoll instance the two share.
        """
        if not self.is_of_this_process:
            self._inherited.append(self.now)
        self._begin()

    @property
    def is_of_this_process(self) -> bool:
        """Return whether the client was created in this process, and not before a fork."""
        return self._process_id == os.getpid()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self.now = self._make()
