"""What the author of a store may give, and where it is looked for."""

from typing import Any

from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore

from conformance_checks import not_kept
from eventhub_checkpoints.conformance import CHECKS, Accessors, Certifier, Verdict, certify
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.stores.memory.rows import MemoryRows

RAW = [check for check in CHECKS if check.name == "an_etag_is_never_used_again"]
LISTED = [check for check in CHECKS if check.name == "a_checkpoint_is_listed_as_stored"]
FAULTS = [check for check in CHECKS if check.name == "a_claim_is_asked_again"]


class Offering(InMemoryCheckpointStore):
    """A store from elsewhere that knows how its rows can be removed."""

    calls = 0

    def conformance_accessors(self) -> Accessors:
        Offering.calls += 1
        return Accessors(put_raw=lambda kind, scope, partition_id, fields: None)


def verdict(make_store: Any, accessors: Any, checks: Any) -> tuple[Verdict, str]:
    [outcome] = certify(make_store, accessors, checks=checks).outcomes
    return outcome.verdict, outcome.reason


def test_a_stores_own_accessors_are_used() -> None:
    assert verdict(Offering, None, RAW)[0] is not Verdict.NOT_SHOWN
    assert Offering.calls == 1


def test_accessors_can_be_made_for_a_store() -> None:
    made = verdict(MemoryCheckpointStore, lambda store: Accessors(put_raw=store.rows.put_raw), RAW)
    assert made[0] is not Verdict.NOT_SHOWN


def test_accessors_that_were_passed_replace_the_stores_own() -> None:
    rows = MemoryRows()
    found = verdict(lambda: MemoryCheckpointStore(rows), Accessors(), RAW)
    assert found == (Verdict.NOT_SHOWN, "needs put_raw")


def test_a_slow_backend_is_waited_for_before_each_list() -> None:
    waited: list[str] = []
    rows = MemoryRows()
    accessors = Accessors(settle=lambda: waited.append("settled"))
    found = verdict(lambda: MemoryCheckpointStore(rows), accessors, LISTED)
    assert found[0] is Verdict.PASSED
    assert waited == ["settled", "settled"], "one for each of the two lists"


def test_faults_are_not_shown_for_a_store_from_elsewhere() -> None:
    found = verdict(InMemoryCheckpointStore, None, FAULTS)
    assert found == (Verdict.NOT_SHOWN, "the store is not on our base class")


def test_the_suites_of_this_package_take_what_is_not_shown_for_a_failure() -> None:
    with Certifier(InMemoryCheckpointStore) as certifier:
        [line] = not_kept(certifier, FAULTS)
    assert line.startswith("a_claim_is_asked_again: not shown: ")
    assert line.endswith(" But: the store is not on our base class")


def test_a_backend_whose_lists_no_stall_holds_up_shows_nothing_of_them() -> None:
    """As one whose readers never wait for its writers."""
    stalled = [check for check in CHECKS if check.name == "a_stalled_list_ends"]
    found = verdict(MemoryCheckpointStore, Accessors(stall=lambda seconds: None), stalled)
    assert found == (Verdict.NOT_SHOWN, "this backend lists during a `stall`, and correctly")
