"""Run the conformance checks, as a function or as a pytest class; does not import pytest.

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Self

from eventhub_checkpoints._shared.error_messages import described, unmasked_message
from eventhub_checkpoints._shared.settings import require
from eventhub_checkpoints._shared.wrapping import declares
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.conformance.contract import (
    BASE,
    NOT_ON_BASE,
    ONE_PROCESS,
    PROCESSES,
    Accessors,
    AccessorsArgument,
    Check,
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
        make_store: called without arguments; returns a new sync or async store object over the same
            backend at each call. It may be a coroutine function. Two spawned processes unpickle
            and call it too, so it must be importable there: a function of a
            module, a class, or a `functools.partial` of one.
        accessors: the accessors, or a function that takes a store and returns them; by default
            those of the store's method `conformance_accessors`.
        loop: runs the calls of aio stores; by default an event loop in a thread.

    Raises:
        ConfigurationError: assertions are disabled, so that every store would pass; or the main
            module starts the checks when it is imported.
    """

    def __init__(
        self,
        make_store: MakeStore,
        accessors: AccessorsArgument = None,
        *,
        loop: Loop | None = None,
    ) -> None:
        if not __debug__:
            raise ConfigurationError(
                "the checks are assertions, which are disabled here; "
                "run Python without -O and PYTHONOPTIMIZE"
            )
        expected = "a function without arguments that returns a store, or the class of one"
        require("make_store", make_store, callable(make_store), expected)
        is_given = accessors is None or isinstance(accessors, Accessors) or callable(accessors)
        require("accessors", accessors, is_given, "Accessors, or a function of a store")
        self._make_store = make_store
        self._accessors = accessors
        self._loop = Loop() if loop is None else loop
        self._racers = Racers(make_store)
        self._opening = threading.Lock()

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
        with self._opening:  # a factory need not be thread-safe
            return Subject(self._make_store, self._accessors, self._loop, self._racers)

    def run(self, check: Check) -> None:
        """Run one check.

        Raises:
            NotRaced: the check races processes, and they cannot open the store.
            NotShown: the check does not apply to this store.
            AssertionError: the check failed; any other error is a failure too.
        """
        with self.subject() as subject:
            reason = why_not_shown(check, subject)
            if reason:
                applies = reason not in (ONE_PROCESS, NOT_ON_BASE)
                was_to_race = PROCESSES in check.needs and applies
                raise (NotRaced if was_to_race else NotShown)(reason)
            check.function(subject)

    def outcome(self, check: Check) -> Outcome:
        """Run one check and return its outcome; never raises."""
        start = time.monotonic()
        verdict, reason = Verdict.PASSED, ""
        try:
            self.run(check)
        except Exception as error:
            verdict = Verdict.NOT_SHOWN if isinstance(error, NotShown) else Verdict.FAILED
            has_message = isinstance(error, NotShown | AssertionError)
            reason = unmasked_message(error) if has_message else described(error)
        return Outcome(check, verdict, reason, time.monotonic() - start)

    def outcomes(self, checks: Sequence[Check]) -> Iterator[Outcome]:
        """Run checks and yield their outcomes, in the same order; never raises.

        When the first check that `waits` is due, all of them run, at the same time.
        """
        waiting = [check for check in checks if check.waits]
        waited: dict[str, Outcome] = {}
        for check in checks:
            if check.waits and not waited:
                with ThreadPoolExecutor(len(waiting)) as pool:
                    waited = {each.check.name: each for each in pool.map(self.outcome, waiting)}
            yield waited[check.name] if check.waits else self.outcome(check)


def why_not_shown(check: Check, subject: Subject) -> str:
    """Return why a check does not apply to a store; `""` if it can be run."""
    if BASE in check.needs and not subject.client.is_on_base:
        return NOT_ON_BASE
    if PROCESSES in check.needs:
        if declares(subject.client.store, "for_one_process"):
            return ONE_PROCESS
        try:
            subject.racers.start()
        except NotRaced as why:
            return str(why)
    missing = [
        need for need in check.needs if need not in (BASE, PROCESSES, *subject.accessors.names)
    ]
    return f"needs {' and '.join(missing)}" if missing else ""


def certify(
    make_store: MakeStore,
    accessors: AccessorsArgument = None,
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
    chosen = list(checks) if isinstance(checks, Iterable) else []
    is_list = isinstance(checks, Iterable) and all(isinstance(each, Check) for each in chosen)
    require("checks", checks, is_list, "a list of Check, such as CHECKS")
    start = time.monotonic()
    outcomes: list[Outcome] = []
    with Certifier(make_store, accessors) as certifier:
        for outcome in certifier.outcomes(chosen):
            outcomes.append(outcome)
            if progress is not None:
                progress(outcome)
    return Report(name, outcomes, time.monotonic() - start)


class CheckpointStoreConformance:
    """Base class of tests that certify a store: one test for each check of the contract.

    ```python
    class TestMyStore(CheckpointStoreConformance):
        lacks = ("put_raw", "stall", "shift_clock")

        @pytest.fixture
        def make_store(self):
            return MyCheckpointStore
    ```

    `make_store` is a fixture that returns a factory without arguments, of sync or async stores
    over one backend. Spawned processes call it too, so it has to be picklable: a function of a
    module, a class, or a `functools.partial` of one; a lambda is not, and fails the checks that
    race processes. A store whose rows other processes cannot access declares
    `for_one_process = True`.

    A fixture `accessors` of the class may return `Accessors`; without one, the store's method
    `conformance_accessors` is called.

    A check whose needs are not met is skipped, and the reason names the need. If the class
    declares the need in `lacks`, no test is generated for the check. A declared need that is met
    is a failure.

    Attributes:
        lacks: needs that this store does not meet: names of accessors, `"base"`, or `"processes"`
            (the store is then not certified).
    """

    lacks: ClassVar[tuple[str, ...]] = ()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Generate one test for each check."""
        if "check" in metafunc.fixturenames:
            checks = [check for check in CHECKS if not set(check.needs) & set(self.lacks)]
            metafunc.parametrize("check", checks, ids=[check.name for check in checks])

    def test_contract(self, check: Check, make_store: MakeStore, request: Any) -> None:
        """Check one sentence of the contract."""
        with self._certifier(make_store, request) as certifier:
            try:
                certifier.run(check)
            except NotRaced as why:
                raise AssertionError(f"the store is not certified: {why}") from None

    def test_what_is_declared_as_lacking_is_lacking(
        self, make_store: MakeStore, request: Any
    ) -> None:
        """Check that `lacks` does not exclude a check that could be run."""
        with self._certifier(make_store, request) as certifier, certifier.subject() as subject:
            excluded = [check for check in CHECKS if set(check.needs) & set(self.lacks)]
            wrongly = [check.name for check in excluded if not why_not_shown(check, subject)]
        assert not wrongly, f"`lacks` leaves out what could be shown: {wrongly}"

    def _certifier(self, make_store: MakeStore, request: Any) -> Certifier:
        accessors = request.getfixturevalue("accessors") if hasattr(self, "accessors") else None
        return Certifier(make_store, accessors)
