"""Checks as a base class for pytest; this module does not import pytest."""

from typing import Any, ClassVar

from eventhub_checkpoints.conformance.certify import Certifier, MakeStore, why_not_shown
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.contract import Check, NotRaced


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
    race processes. A store for one process only declares it by `for_one_process = True`.

    A fixture `accessors` of the class may return `Accessors`; without one the store's own method
    `conformance_accessors` is called.

    A check whose needs are not met does not count as passed: it is skipped with the name of the
    need. If the class declares the need in `lacks`, there is no test for the check. A declared need
    that is in fact met is a failure.

    Attributes:
        lacks: names of accessors, `"base"`, or `"processes"` (it is not certified then), that this
            store is known to do without.
    """

    lacks: ClassVar[tuple[str, ...]] = ()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Generate one test for each check."""
        if "check" in metafunc.fixturenames:
            checks = [one for one in CHECKS if not set(one.needs) & set(self.lacks)]
            metafunc.parametrize("check", checks, ids=[one.name for one in checks])

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
        """Check that `lacks` leaves out no check that could be run."""
        with self._certifier(make_store, request) as certifier, certifier.subject() as subject:
            left_out = [one for one in CHECKS if set(one.needs) & set(self.lacks)]
            wrongly = [one.name for one in left_out if not why_not_shown(one, subject)]
        assert not wrongly, f"`lacks` leaves out what could be shown: {wrongly}"

    def _certifier(self, make_store: MakeStore, request: Any) -> Certifier:
        given = hasattr(self, "accessors")
        return Certifier(make_store, request.getfixturevalue("accessors") if given else None)
