"""Sync stores that take longer than their limits, or give up too early; `aio_mutants`: aio ones."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sound import Sound, mutant

from eventhub_checkpoints._shared import deadline as _deadline
from eventhub_checkpoints._shared.settings import Settings
from eventhub_checkpoints.conformance.checks.bounds import BOUND
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.stores._sync.runner import HookRunner

OVERDUE = (
    "a_hung_list_ends",
    "a_hung_batch_ends",
    "a_hung_checkpoint_ends",
    "a_hung_release_ends",
    "a_stalled_list_ends",
    "a_stalled_claim_ends",
    "a_stalled_checkpoint_ends",
)
"""The checks that measure how long a call takes."""
SLOW, DAWDLING = 0.83 * BOUND, 2.83 * BOUND
"""Seconds after which a call is slow, and which a store may then dawdle away unnoticed, if what is
allowed beside the limit is no share of it: 0.5 and 1.7 s with a limit of 0.6 s."""

OWN_LIMIT = 0.2
"""Seconds that a call of a store with limits of its own may take."""


def three_times(settings: Settings) -> Settings:
    """Return settings with three times the limits."""
    return replace(
        settings,
        operation_timeout=3 * settings.operation_timeout,
        write_timeout=3 * settings.write_timeout,
    )


@mutant(*OVERDUE)
class TakesThreeTimesItsLimit(Sound):
    class Runner(HookRunner):
        @property
        def settings(self) -> Settings:
            return three_times(self._settings)

        @settings.setter
        def settings(self, settings: Settings) -> None:
            self._settings = settings


@mutant(*OVERDUE)
class DawdlesAfterASlowCall(Sound):
    """Quick as long as its backend is."""

    def dawdled(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        slow = threading.Event()
        timer = threading.Timer(SLOW, slow.set)
        timer.start()
        try:
            return method(*args, **kwargs)
        finally:
            timer.cancel()
            # Nobody ends this wait: it dawdles.
            threading.Event().wait(DAWDLING if slow.is_set() else 0.0)

    def list_ownership(self, *args: Any, **kwargs: Any) -> Any:
        return self.dawdled(super().list_ownership, *args, **kwargs)

    def claim_ownership(self, *args: Any, **kwargs: Any) -> Any:
        return self.dawdled(super().claim_ownership, *args, **kwargs)

    def list_checkpoints(self, *args: Any, **kwargs: Any) -> Any:
        return self.dawdled(super().list_checkpoints, *args, **kwargs)

    def update_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        return self.dawdled(super().update_checkpoint, *args, **kwargs)


@mutant(*OVERDUE)
class WaitsForEver(Sound):
    """Its driver never learns how much time is left."""

    class Runner(HookRunner):
        def call(self, hook: Any, *args: Any, **options: Any) -> Any:
            token = _deadline._deadline.set(float("inf"))
            try:
                return super().call(hook, *args, limit=10**6)
            finally:
                _deadline._deadline.reset(token)


@mutant("a_hung_claim_spares_the_others")
class GivesUpABatchForOneClaim(Sound):
    def claim_ownership(self, ownership_list: Any, **kwargs: Any) -> Any:
        before = self.counters["unconfirmed_claims"]
        won = super().claim_ownership(ownership_list)
        return won if self.counters["unconfirmed_claims"] == before else []


@mutant("a_short_stall_costs_nothing")
class IsImpatient(Sound):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, operation_timeout=0.1, write_timeout=0.1)


@mutant("calls_end_within_their_limits")
class TakesFourTimesItsOwnLimits(Sound):
    """Its hooks do not look at the time that is left."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, operation_timeout=OWN_LIMIT, write_timeout=OWN_LIMIT)

    def read_ownerships(self, scope: Any) -> Any:
        threading.Event().wait(4 * OWN_LIMIT)
        return super().read_ownerships(scope)

    def read_checkpoints(self, scope: Any) -> Any:
        threading.Event().wait(4 * OWN_LIMIT)
        return super().read_checkpoints(scope)

    def try_claim(self, proposal: Any) -> Any:
        threading.Event().wait(4 * OWN_LIMIT)
        return super().try_claim(proposal)

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        threading.Event().wait(4 * OWN_LIMIT)
        return super().write_checkpoint(checkpoint, seen)


@mutant("a_stalled_list_ends")
class ListsNothingWithoutAnAnswer(Sound):
    """To its client, no partition has an owner then."""

    def list_ownership(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().list_ownership(*args, **kwargs)
        except StoreUnavailableError:
            return []
