"""Runner of the conformance checks."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.conformance.contract import (
    BASE,
    ONE_PROCESS,
    PROCESSES,
    Check,
    Given,
    NotRaced,
    NotShown,
)
from eventhub_checkpoints.conformance.harness import Subject
from eventhub_checkpoints.conformance.processes import Racers
from eventhub_checkpoints.conformance.report import Outcome, Report, Verdict
from eventhub_checkpoints.errors import ConfigurationError

MakeStore = Callable[[], Any]


class Certifier:
    """Runner of checks on the stores of a factory; to be used in a `with` statement.

    Args:
        make_store: called without arguments; returns a sync or async store object, with each call
            one more object over the same backend. It may be a coroutine function. Two spawned
            processes unpickle and call it too, so it must be importable there: a function of a
            module, a class, or a `functools.partial` of one.
        accessors: the accessors, or a function that takes a store and returns them; by default
            those of the store's method `conformance_accessors`.

    Raises:
        ConfigurationError: this Python ignores assertions, so that every store would pass; or
            the main module calls this when it is imported.
    """

    def __init__(self, make_store: MakeStore, accessors: Given = None) -> None:
        if not __debug__:
            raise ConfigurationError(
                "the checks are assertions, which this Python leaves out; "
                "run it without -O and PYTHONOPTIMIZE"
            )
        self._make_store = make_store
        self._accessors = accessors
        self._loop = Loop()
        self._racers = Racers(make_store)

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._racers.stop()
        finally:
            self._loop.__exit__(*error)

    def subject(self) -> Subject:
        """Return the store for one check, with an unused scope."""
        return Subject(self._make_store, self._accessors, self._loop, self._racers)

    def run(self, check: Check) -> None:
        """Run one check.

        Raises:
            NotRaced: it races processes, and they cannot open the store.
            NotShown: it does not apply to this store.
            AssertionError: it failed; any other error is a failure too.
        """
        with self.subject() as subject:
            reason = why_not_shown(check, subject)
            if reason:
                was_to_race = PROCESSES in check.needs and reason != ONE_PROCESS
                raise (NotRaced if was_to_race else NotShown)(reason)
            check.function(subject)

    def outcome(self, check: Check) -> Outcome:
        """Run one check and return its outcome; never raises."""
        start = time.monotonic()
        verdict, reason = Verdict.PASSED, ""
        try:
            self.run(check)
        except NotShown as why:
            verdict, reason = Verdict.NOT_SHOWN, str(why)
        except AssertionError as error:
            verdict, reason = Verdict.FAILED, str(error)
        except Exception as error:
            verdict, reason = Verdict.FAILED, f"{type(error).__name__}: {error}"
        return Outcome(check, verdict, reason, time.monotonic() - start)


def why_not_shown(check: Check, subject: Subject) -> str:
    """Return why a check does not apply to a store; `""` if it can be run."""
    if BASE in check.needs and not subject.client.is_on_base:
        return "the store is not on our base class"
    if PROCESSES in check.needs:
        return why_not_raced(subject)
    missing = [one for one in check.needs if one != BASE and one not in subject.accessors.given]
    return f"needs {' and '.join(missing)}" if missing else ""


def why_not_raced(subject: Subject) -> str:
    """Return why processes cannot race a store; `""` if they can, and are now started."""
    if subject.client.is_for_one_process:
        return ONE_PROCESS
    try:
        subject.racers.start()
    except NotRaced as why:
        return str(why)
    return ""


def certify(
    make_store: MakeStore,
    accessors: Given = None,
    *,
    name: str = "the store",
    checks: Iterable[Check] = CHECKS,
    progress: Callable[[Outcome], None] | None = None,
) -> Report:
    """Run checks on a store, all of them by default, and return a report.

    Args:
        make_store: see `Certifier`.
        accessors: see `Certifier`.
        name: name of the store in the report.
        checks: the checks to run.
        progress: called after each check.
    """
    outcomes: list[Outcome] = []
    with Certifier(make_store, accessors) as certifier:
        for check in checks:
            outcomes.append(certifier.outcome(check))
            if progress is not None:
                progress(outcomes[-1])
    return Report(name, outcomes)
