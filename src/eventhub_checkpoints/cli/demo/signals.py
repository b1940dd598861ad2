"""Ctrl-C and SIGTERM as one exception, raised once and never while a process is being started."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The user wants it to end. Not an `Exception`: no handler of a library may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """What the two signals do while the demo runs."""

    def __init__(self) -> None:
        self._held = False
        self._came: int | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise `Stopped` at the first signal in this block; ignore the ones after it.

        Ignored, for a second Ctrl-C must not cut short what ends all that was started.
        """
        before = {number: signal.signal(number, self._on_signal) for number in NUMBERS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let a signal wait for the end of this block.

        Between the start of a process and the note that it must be stopped, an exception would
        leave it running.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def check(self) -> None:
        """Raise `Stopped` if a signal came whose exception did not get through."""
        if self._came is not None:
            raise Stopped(self._came)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for each in NUMBERS:
            signal.signal(each, signal.SIG_IGN)
        self._came = number
        if not self._held:
            raise Stopped(number)
