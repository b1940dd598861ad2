"""Outages of a hub: what is worth waiting for, for how long, and what the log says of it."""

import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.client import Failure, failure_of, reason
from eventhub_checkpoints._shared.connection_errors import why_unreached
from eventhub_checkpoints._shared.deadline import pause

log = logging.getLogger("eventhub_checkpoints")

LAST_ATTEMPT = 1.0
"""Seconds of the last attempt: one that is cut off sooner would hide why the others failed."""

T = TypeVar("T")


class Outage:
    """Attempts of one thing while a hub is away.

    A refusal is final. Everything else is tried again until the outage, which begins with the first
    failed attempt, has lasted too long. The log says once what is waited for and since when, and
    that it is over.

    Args:
        what: what is waited for, such as `partition 0 of NAMESPACE/HUB`.
        seconds: how long an outage may last.
        unreachable_timeout: the same for refused connections and unknown hosts; default: `seconds`.
        retry_total: maximum number of failures in a row; None: only time counts.

    Attributes:
        what: what is waited for.
    """

    def __init__(
        self,
        what: str,
        seconds: float,
        *,
        unreachable_timeout: float | None = None,
        retry_total: int | None = None,
    ) -> None:
        self.what, self._seconds, self._retry_total = what, seconds, retry_total
        self._unreachable_timeout = (
            seconds if unreachable_timeout is None else min(unreachable_timeout, seconds)
        )
        self._since: float | None = None
        self._failures = 0
        self._is_said = False

    @property
    def is_on(self) -> bool:
        """Return whether the last attempt failed."""
        return self._since is not None

    @property
    def seconds_left(self) -> float:
        """Return how long the next attempt may take; at least long enough to learn a reason."""
        lasted = 0.0 if self._since is None else time.monotonic() - self._since
        return max(self._seconds - lasted, min(self._seconds, LAST_ATTEMPT))

    def end(self) -> None:
        """Record a success."""
        if self._since is not None and self._is_said:
            log.info("%s: answers again after %.1f s", self.what, time.monotonic() - self._since)
        self._since, self._failures, self._is_said = None, 0, False

    def pause(self, error: Exception, began: float | None = None) -> float | None:
        """Return the seconds until the next attempt; None to give up.

        Args:
            error: why the attempt failed.
            began: when the attempt began, by `time.monotonic`; None: now.
        """
        failure, now = failure_of(error), time.monotonic()
        if self._since is None:
            self._since = now if began is None else began
        seconds = self._unreachable_timeout if why_unreached(error) else self._seconds
        wait = pause(self._failures, self._since + seconds - now, random.random())
        is_last = self._retry_total is not None and self._failures >= self._retry_total
        self._failures += 1
        if failure is Failure.REFUSED or is_last or wait is None:
            return None
        if not self._is_said:
            self._is_said = True
            began_at = datetime.fromtimestamp(time.time() - (now - self._since), UTC)
            log.warning(
                "%s: no answer since %s UTC; waiting for it, at most %g s: %s",
                *(self.what, f"{began_at:%H:%M:%S}", seconds, reason(error)),
            )
        return wait

    def wait_out(self, ask: Callable[[], T]) -> T:
        """Repeat a call of the client until it succeeds.

        Raises:
            EventHubError: what it raised last.
        """
        while True:
            began = time.monotonic()
            try:
                answer = ask()
            except EventHubError as error:
                wait = self.pause(error, began)
                if wait is None:
                    raise
                time.sleep(wait)
            else:
                self.end()
                return answer
