"""Ctrl-C and SIGTERM as one exception, raised once and never while a process is started."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Raised if the user stops the demo. Not an `Exception`, so that no library swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Handlers of the two signals while the demo runs."""

    def __init__(self) -> None:
        self._held = False
        self._came: int | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise `Stopped` on the first signal in this block; ignore the following ones.

        A second Ctrl-C must not interrupt the cleanup.
        """
        before = {number: signal.signal(number, self._on_signal) for number in NUMBERS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Defer a signal to the end of this block.

        Between the start of a process and the registration of its cleanup, an exception would leave
        it running.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def check(self) -> None:
        """Raise `Stopped` if a signal came whose exception was deferred or swallowed."""
        if self._came is not None:
            raise Stopped(self._came)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for each in NUMBERS:
            signal.signal(each, signal.SIG_IGN)
        self._came = number
        if not self._held:
            raise Stopped(number)
