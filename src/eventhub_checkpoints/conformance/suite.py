"""The checks as a pytest class to inherit; nothing of pytest is imported here."""

from typing import Any, ClassVar

from eventhub_checkpoints.conformance.certify import Certifier, MakeStore, why_not_shown
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.contract import Check, NotRaced


class CheckpointStoreConformance:
    """Certifies a store: one test for each check of the contract.

    ```python
    class TestMyStore(CheckpointStoreConformance):
        lacks = ("put_raw", "stall", "shift_clock")

        @pytest.fixture
        def make_store(self):
            return MyCheckpointStore
    ```

    `make_store` is a fixture that gives a factory without arguments, of stores of either colour
    over one backend. Spawned processes call it too, so it has to be picklable: a function of a
    module, a class, or a `functools.partial` of one; a lambda is not, and fails the checks that
    race processes. A store for one process only declares it by `for_one_process = True`.

    A fixture `accessors` of the class may give `Accessors`; without one the store's own method
    `conformance_accessors` is called.

    A check that needs something that is not there says nothing about the store. It is no silent
    pass: it is a skip that names what it needs, unless the class declares it in `lacks`; a check
    that needs what is declared to be lacking is no test of the class. A declaration that is not
    true, because the thing is there, fails.

    Attributes:
        lacks: names of accessors, `"base"`, or `"processes"` (it is not certified then), that this
            store is known to do without.
    """

    lacks: ClassVar[tuple[str, ...]] = ()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make one test of each check."""
        if "check" in metafunc.fixturenames:
            checks = [one for one in CHECKS if not set(one.needs) & set(self.lacks)]
            metafunc.parametrize("check", checks, ids=[one.name for one in checks])

    def test_contract(self, check: Check, make_store: MakeStore, request: Any) -> None:
        """The store keeps one sentence of the contract."""
        with self._certifier(make_store, request) as certifier:
            try:
                certifier.run(check)
            except NotRaced as why:
                raise AssertionError(f"the store is not certified: {why}") from None

    def test_what_is_declared_as_lacking_is_lacking(
        self, make_store: MakeStore, request: Any
    ) -> None:
        """No check is left out that could be tried."""
        with self._certifier(make_store, request) as certifier, certifier.subject() as subject:
            left_out = [one for one in CHECKS if set(one.needs) & set(self.lacks)]
            wrongly = [one.name for one in left_out if not why_not_shown(one, subject)]
        assert not wrongly, f"`lacks` leaves out what could be shown: {wrongly}"

    def _certifier(self, make_store: MakeStore, request: Any) -> Certifier:
        given = hasattr(self, "accessors")
        return Certifier(make_store, request.getfixturevalue("accessors") if given else None)
