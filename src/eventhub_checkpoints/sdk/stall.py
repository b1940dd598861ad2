"""When a link of the fast path that makes no progress counts as stalled.

A private attribute of the client that keeps its name and changes its meaning raises no error: the
link is open, and the credit, the window or the frames that it stands for are not what the hub
counts. A connection that died without an error looks the same. The public API helps in both cases.
"""

from collections.abc import Callable
from concurrent.futures import Future

STALLED = 5.0
"""Seconds without progress, although there is something to do, after which a link has stalled."""


class Silence:
    """Silence of a receiving link, which is idle or has stalled.

    After half of `STALLED`, the hub is asked which event is its newest. If the link should have
    delivered it, it has as long again to do so: the event may have arrived just now. If not, the
    hub is asked again after twice the time.

    Args:
        ask: returns the sequence number of the newest event, -1 if there is none; any error counts
            as no answer.
        now: seconds of a clock that never goes back, as in the methods.
    """

    def __init__(self, ask: Callable[[], Future[int]], now: float) -> None:
        self._ask = ask
        self.end(now)

    def end(self, now: float) -> None:
        """Record that something arrived, or that nothing was to arrive."""
        self._since, self._patience = now, STALLED / 2
        self._answer: Future[int] | None = None
        self._newest: int | None = None

    def newest_withheld(self, following: int, now: float) -> int | None:
        """Return the hub's newest event if the link has stalled, by its sequence number; else None.

        Args:
            following: sequence number after the last one received.
            now: seconds of the same clock; the link was read just before.
        """
        if self._newest is not None:
            return self._newest if now >= self._since + self._patience else None
        if self._answer is None:
            if now >= self._since + self._patience:
                self._answer = self._ask()
            return None
        if self._answer.done():
            newest = -1 if self._answer.exception() else self._answer.result()
            self._since, self._answer = now, None
            if newest >= following:
                self._newest, self._patience = newest, STALLED / 2
            else:
                self._patience *= 2
        return None
