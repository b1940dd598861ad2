"""When positions are saved: a policy is a value; each claim of a partition gets a plan of it."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventhub_checkpoints._shared.configuration_tables import (
    Keys,
    checked_table,
    count,
    duration,
    unfit,
)
from eventhub_checkpoints._shared.settings import is_count, is_number, require
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.processing.plan import Due, EveryPlan, JointPlan, Plan, newest, oldest
from eventhub_checkpoints.processing.trailing import TrailingPlan

__all__ = ["Due", "Plan", "Policy", "all_of", "any_of", "every", "trailing"]

NEVER = sys.maxsize
"""Events that no claim reaches."""
SHORTEST, LONGEST = 0.001, 1e9
"""Seconds that a policy can count; a clock of floats tells shorter ones apart badly."""
IOTHUB_REACT: Keys = {
    "frequency": duration(1, 60),
    "countThreshold": count,
    "timeThreshold": duration(1, 3600),
}
DEFAULTS: Mapping[str, Any] = {"frequency": 15.0, "countThreshold": 2000, "timeThreshold": 300.0}
"""Source: toketi-iothubreact 0.9, `src/main/resources/reference.conf`."""


class Policy(ABC):
    """When the positions of a partition are saved; one policy serves any number of partitions."""

    @abstractmethod
    def begin(self, now: float) -> Plan:
        """The plan of one partition for one claim of it, which begins now."""

    @staticmethod
    def from_settings(settings: Mapping[str, Any]) -> "Policy":
        """The replay window that the settings of iothub-react mean.

        Args:
            settings: `frequency` (from 1s to 60s, by default 15s): how often it is checked
                whether events are too old; `countThreshold` (2000) and `timeThreshold` (from 1s
                to 1 hour, 5 minutes): how many events, and of what time, a restart repeats.

        Raises:
            ConfigurationError: a key is not known, or a value cannot be.

        Source: toketi-iothubreact 0.9, `config/CPConfiguration.scala`, which replaces what it
        cannot take by a default without a word.
        """
        if not isinstance(settings, Mapping):
            raise unfit("the table of settings", settings, f"one with {', '.join(IOTHUB_REACT)}")
        given = checked_table("", settings, IOTHUB_REACT)
        frequency, events, seconds = ({**DEFAULTS, **given}[name] for name in IOTHUB_REACT)
        if frequency > seconds:
            default = "" if "frequency" in given else ", its default"
            raise ConfigurationError(
                f"frequency is {frequency:g}s{default}; "
                f"expected at most timeThreshold, which is {seconds:g}s"
            )
        return trailing(events=events, seconds=seconds, check_every=frequency)


def every(*, events: int | None = None, seconds: float | None = None) -> Policy:
    """Save the newest position after so many events, or after so long, whichever is first.

    Both count from the last save. With `seconds`, the first event after an idle time that was
    longer is saved at once. At least one of the two is needed.

    Units: seconds, from 0.001.

    Raises:
        ConfigurationError: neither is given, or one cannot be.
    """
    if events is None and seconds is None:
        raise ConfigurationError("neither events nor seconds is given; expected one, or both")
    if events is not None:
        require_events(events)
    if seconds is not None:
        require_seconds("seconds", seconds)
    return Every(events, seconds)


def trailing(*, events: int, seconds: float, check_every: float | None = None) -> Policy:
    """Save a position that trails on purpose, so that a restart repeats the newest events.

    While writes take no time, never are more than `events` finished events unsaved, nor one that
    was finished more than `seconds` ago, at any rate. Saves are rarer than events: what the count
    makes due leaves half of `events` unsaved, and time is checked every `check_every` seconds.

    Args:
        check_every: at most `seconds`. What was finished in the last `seconds - check_every`
            stays unsaved, so an interval as long as `seconds` repeats little. By default half
            of `seconds`.

    Units: seconds, from 0.001.

    Raises:
        ConfigurationError: a value cannot be.
    """
    require_events(events)
    require_seconds("seconds", seconds)
    if check_every is None:
        return Trailing(events, seconds, max(seconds / 2, SHORTEST))
    require_seconds("check_every", check_every)
    require(
        "check_every", check_every, check_every <= seconds, f"at most seconds, which is {seconds!r}"
    )
    return Trailing(events, seconds, check_every)


def any_of(*policies: Policy) -> Policy:
    """Save when one of the policies would, and then the newest position that one asks for.

    Raises:
        ConfigurationError: there is no policy, or one is none.
    """
    return AnyOf(checked_policies("any_of", policies))


def all_of(*policies: Policy) -> Policy:
    """Save when all of the policies would, and then the oldest position that one asks for.

    Raises:
        ConfigurationError: there is no policy, or one is none.
    """
    return AllOf(checked_policies("all_of", policies))


def require_events(events: object) -> None:
    """Refuse what is no number of events."""
    require("events", events, is_count(events), "a whole number, 1 or more")


def require_seconds(name: str, value: Any) -> None:
    """Refuse what a plan cannot count in."""
    fits = is_number(value) and SHORTEST <= value <= LONGEST
    require(name, value, fits, f"seconds, from {SHORTEST:g} to {LONGEST:g}")


def checked_policies(name: str, policies: Sequence[object]) -> tuple[Policy, ...]:
    """At least one policy, and nothing else."""
    if not policies:
        raise ConfigurationError(f"{name} is given nothing; expected one policy or more")
    for policy in policies:
        require(f"a policy of {name}", policy, isinstance(policy, Policy), "every(...) or the like")
    return tuple(policy for policy in policies if isinstance(policy, Policy))


def spelled(name: str, **values: float | None) -> str:
    """How the caller could have written it."""
    given = (f"{key}={value!r}" for key, value in values.items() if value is not None)
    return f"{name}({', '.join(given)})"


@dataclass(frozen=True, slots=True, repr=False)
class Every(Policy):
    """See `every`."""

    events: int | None
    seconds: float | None

    def __repr__(self) -> str:
        return spelled("every", events=self.events, seconds=self.seconds)

    def begin(self, now: float) -> Plan:
        return EveryPlan(self.events or NEVER, self.seconds or math.inf, now)


@dataclass(frozen=True, slots=True, repr=False)
class Trailing(Policy):
    """See `trailing`."""

    events: int
    seconds: float
    check_every: float

    def __repr__(self) -> str:
        values = {"seconds": self.seconds, "check_every": self.check_every}
        return spelled("trailing", events=self.events, **values)

    def begin(self, now: float) -> Plan:
        return TrailingPlan(self.events, self.seconds, self.check_every, now)


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Policy):
    """See `any_of`."""

    policies: tuple[Policy, ...]

    def __repr__(self) -> str:
        return f"any_of({', '.join(map(repr, self.policies))})"

    def begin(self, now: float) -> Plan:
        return JointPlan([policy.begin(now) for policy in self.policies], newest)


@dataclass(frozen=True, slots=True, repr=False)
class AllOf(Policy):
    """See `all_of`."""

    policies: tuple[Policy, ...]

    def __repr__(self) -> str:
        return f"all_of({', '.join(map(repr, self.policies))})"

    def begin(self, now: float) -> Plan:
        return JointPlan([policy.begin(now) for policy in self.policies], oldest)


DEFAULT_POLICY = every(events=1000, seconds=10)
"""When what was processed is saved, where a program does not say so."""
