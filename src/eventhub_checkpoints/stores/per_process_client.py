"""A driver's client, in programs that fork and that move on to another event loop."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

Client = TypeVar("Client")


class PerProcessClient(Generic[Client]):
    """One client for each process and event loop.

    Args:
        make: gives the client; called again in a forked child, which must not use the parent's
            connections, and in another event loop.
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._inherited: list[Client] = []
        self._begin()

    def begin_anew(self) -> None:
        """Use a new client.

        The parent process's client is kept: a forked child that let go of it would take its
        connections out of the parent's event loop, whose epoll instance the two share.
        """
        if not self.is_of_this_process:
            self._inherited.append(self.now)
        self._begin()

    @property
    def is_of_this_process(self) -> bool:
        """Whether the client was made here, and not before a fork."""
        return self._process_id == os.getpid()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self.now = self._make()
