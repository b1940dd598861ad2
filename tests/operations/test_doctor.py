"""Findings from snapshots that servers of tests do not show, and the reader on stores of others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import CheckpointStore
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.cli.records import RecordFiles
from eventhub_checkpoints.errors import (
    ConfigurationError,
    HubUnavailableError,
    StaleCheckpointError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.operations import (
    GroupSnapshot,
    Limits,
    Severity,
    examine_group,
    findings,
    planned,
)
from eventhub_checkpoints.operations.cost import PRICES, SMALLEST_SERVER
from eventhub_checkpoints.operations.doctor import status
from eventhub_checkpoints.operations.doctor.fixes import Action, Fix, carry_out, mended
from eventhub_checkpoints.operations.doctor.requests import cost
from eventhub_checkpoints.operations.groups import Group, Owner
from eventhub_checkpoints.operations.recorded_change import Command
from eventhub_checkpoints.receive import HubAddress, PartitionProperties
from eventhub_checkpoints.records import Ownership, Scope
from eventhub_checkpoints.stores.hook_results import Examination, Listing, OfficialFault, ScopeRows
from waiting import LIMIT

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def group(owners: dict[str, str], numbers: dict[str, int] | None = None) -> Group:
    """A group with live owners, and checkpoints at these sequence numbers."""
    return Group(
        SCOPE,
        {
            id_: {"partition_id": id_, "sequence_number": number, "offset": f"offset {number}"}
            for id_, number in (numbers or {}).items()
        },
        {id_: Owner(owner, 1.0, is_live=True) for id_, owner in owners.items()},
    )


def properties(count: int, last: int = 19) -> dict[str, PartitionProperties]:
    return {
        str(id_): PartitionProperties(str(id_), 0, last + 1, f"offset {last}", None)
        for id_ in range(count)
    }


def codes(snapshot: GroupSnapshot, limits: Limits | None = None) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in findings(snapshot, limits)}


SOUND = GroupSnapshot(
    SCOPE, group=group({"0": "a", "1": "b"}, {"0": 19, "1": 3}), properties=properties(2)
)


def test_nothing_is_found_in_a_sound_snapshot() -> None:
    assert findings(SOUND) == []
    assert status([]) == 0


@pytest.mark.parametrize(
    ("members", "is_unfair"),
    [
        ([3, 3], False),
        ([4, 2], False),
        ([5, 1], True),
        ([4, 3, 3], False),
        ([5, 3, 2], True),
        ([6], False),
    ],
)
def test_a_share_is_unfair_if_it_is_more_than_one_above_the_fair_one(members, is_unfair) -> None:
    owners = [f"member {at}" for at, count in enumerate(members) for _ in range(count)]
    owned = dict(zip(map(str, range(len(owners))), owners, strict=True))
    snapshot = GroupSnapshot(SCOPE, group=group(owned), properties=properties(len(owners)))
    assert ("unfair_share" in codes(snapshot)) == is_unfair


@pytest.mark.parametrize(
    ("skew", "severity"),
    [
        (4.0, None),
        (-4.0, None),
        (6.0, Severity.WARNING),
        (-6.0, Severity.WARNING),
        (91.0, Severity.ERROR),
        (-91.0, Severity.ERROR),
    ],
)
def test_a_skew_of_half_the_expiration_time_is_an_error(skew, severity) -> None:
    assert codes(replace(SOUND, clock_skew=skew)).get("clock_skew") == severity


@pytest.mark.parametrize(
    ("seconds", "severity"), [(3.0, None), (3.1, Severity.WARNING), (30.0, Severity.ERROR)]
)
def test_latency_is_compared_with_the_balancing_interval(seconds, severity) -> None:
    assert codes(replace(SOUND, list_seconds=seconds)).get("slow_list") == severity
    assert codes(replace(SOUND, claim_seconds=seconds)).get("slow_claim") == severity


def test_a_partition_of_no_hub_that_is_being_consumed_is_an_error() -> None:
    snapshot = replace(SOUND, properties=properties(1))
    assert codes(snapshot) == {"no_such_partition": Severity.ERROR}
    assert planned(snapshot) == []


def test_errors_of_the_store_and_the_hub_have_codes() -> None:
    failures: dict[str, Any] = {
        "probe": StoreError("a write failed"),
        "store": StoreUnavailableError("no answer"),
        "hub": HubUnavailableError("no answer"),
    }
    found = findings(GroupSnapshot(SCOPE, failures=failures))
    assert [each.code for each in found] == ["store_failed", "store_unreachable", "hub_unreachable"]
    assert status(found) == 2
    del failures["probe"]
    assert status(findings(GroupSnapshot(SCOPE, failures=failures))) == 3


def test_a_warning_does_not_hide_that_something_could_not_be_examined() -> None:
    snapshot = replace(SOUND, clock_skew=6.0, failures={"hub": HubUnavailableError("no answer")})
    assert status(findings(snapshot)) == 3


def test_evidence_names_ten_partitions_and_the_number_of_the_others() -> None:
    owners = {str(id_): "a" for id_ in range(0, 60, 2)}
    snapshot = GroupSnapshot(SCOPE, group=group(owners), properties=properties(60))
    [finding] = findings(snapshot)
    assert finding.code == "unowned"
    assert "30 partitions" in finding.evidence
    assert finding.evidence.endswith("17, 19 and 20 more")
    assert len(finding.partition_ids) == 30


def stored(owner: str, age: float) -> Examination:
    """Another spelling of the group with an owner of partition 0."""
    row = Ownership(SCOPE, "0", owner, "etag", 1000.0 - age)
    rows = ScopeRows(SCOPE, Listing([], 1000.0), Listing([], 1000.0))
    return Examination(rows, [replace(rows, ownerships=Listing([row], 1000.0))])


@pytest.mark.parametrize(
    ("owner", "age", "is_second"),
    [("x", 1, True), ("x", 200, False), ("", 1, False), ("a", 1, False)],
)
def test_only_another_live_owner_is_a_second_one(owner, age, is_second) -> None:
    found = codes(replace(SOUND, examination=stored(owner, age)))
    assert found.get("two_owners") == (Severity.ERROR if is_second else None)


def test_rows_with_another_prefix_are_named_with_it() -> None:
    [second] = stored("x", 1).spellings
    rows = ScopeRows(SCOPE, Listing([], 1000.0), Listing([], 1000.0))
    found = Examination(rows, [replace(second, prefix="team-a")])
    [owners, prefix] = findings(replace(SOUND, examination=found))
    assert (owners.code, prefix.code) == ("two_owners", "other_prefix")
    assert owners.remedy == f"stop the consumers that write team-a/{SCOPE}, or those that do not"
    assert prefix.evidence == (
        f"the group also has rows (1) under team-a/{SCOPE}, and this store has no prefix; "
        "consumers of the two do not see each other, and official SDKs and KEDA see only names "
        "without a prefix"
    )
    found = Examination(rows, [second])
    [_, prefix] = findings(replace(SOUND, examination=found, prefix="team-a"))
    assert f"under {SCOPE}, and this store has the prefix 'team-a';" in prefix.evidence


def test_official_stores_do_not_fail_at_rows_that_they_do_not_list() -> None:
    listing: Listing[Any] = Listing([], 1.0, ["a row"], [OfficialFault("0", "there is no ownerid")])
    rows = ScopeRows(SCOPE, listing, Listing([], 1.0))
    snapshot = replace(SOUND, backend="blob", examination=Examination(rows), checkpoint_rate=0.0)
    assert codes(snapshot) == {
        "unreadable_rows": Severity.ERROR,
        "official_store_fails": Severity.ERROR,
    }
    assert codes(replace(snapshot, prefix="team-a")) == {"unreadable_rows": Severity.WARNING}


def test_the_cost_on_blob_is_that_of_lists_claims_and_checkpoints() -> None:
    snapshot = replace(SOUND, backend="blob", checkpoint_rate=1.0)
    estimate = cost(snapshot, Limits())
    assert estimate is not None
    assert estimate.requests == {"lists": 2 / 33, "claims": 2 / 33, "checkpoints": 1.0}
    assert estimate.dollars == pytest.approx((1 + 4 / 33) * 262.8 * PRICES["blob"].dollars)
    assert estimate.dollars < SMALLEST_SERVER
    assert codes(snapshot) == {}
    assert codes(snapshot, Limits(budget=10)) == {"cost": Severity.WARNING}
    assert codes(snapshot, Limits(price=1.0)) == {"cost": Severity.WARNING}
    assert cost(SOUND, Limits()) is None


class FourMethods(CheckpointStore):
    """A store of another package: the SDK's four methods, and nothing else."""

    def __init__(self) -> None:
        self._store = MemoryCheckpointStore()

    def list_ownership(self, *names: Any, **_: Any) -> Any:
        return self._store.list_ownership(*names)

    def claim_ownership(self, ownership_list: Any, **_: Any) -> Any:
        return self._store.claim_ownership(ownership_list)

    def list_checkpoints(self, *names: Any, **_: Any) -> Any:
        return self._store.list_checkpoints(*names)

    def update_checkpoint(self, checkpoint: Any, **_: Any) -> None:
        self._store.update_checkpoint(checkpoint)


@pytest.fixture
def hub():
    with LocalHub({"orders": 2}) as running:
        for partition_id in running.partition_ids("orders"):
            running.publish("orders", partition_id, [b"event"] * 20)
        yield running


def address_of(hub: LocalHub) -> HubAddress:
    return HubAddress.from_connection_string(hub.connection_string("orders"))


def begin(store: Any, hub: LocalHub, number: int = 3) -> None:
    scope = address_of(hub).scope()
    for partition_id in ("0", "1"):
        row = {**scope.as_dict(), "partition_id": partition_id}
        # All events are equally long.
        last = hub.partition_properties("orders", partition_id).last_offset
        offset = str(int(last) // 19 * number)
        store.update_checkpoint({**row, "sequence_number": number, "offset": offset})
        assert store.claim_ownership([{**row, "owner_id": f"owner of {partition_id}"}])


@pytest.fixture
def mending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Command]:
    """Returns a command that mends a group of a store, and records what it deletes."""
    monkeypatch.setenv("EHCP_STATE_DIR", str(tmp_path))

    def command(store: Any) -> Command:
        return Command(
            name="doctor --fix",
            store=store,
            store_name="store",
            journal=RecordFiles(),
            executes=True,
            timeout=LIMIT,
        )

    return command


def test_a_store_of_another_package_is_examined_as_far_as_it_shows(hub, mending) -> None:
    store, address = FourMethods(), address_of(hub)
    begin(store, hub)
    snapshot = examine_group(store, address)
    assert findings(snapshot) == []
    assert any("FourMethods does not show them" in sentence for sentence in snapshot.unchecked)
    assert snapshot.claim_seconds is not None
    elsewhere = {**address.scope().as_dict(), "partition_id": "9", "offset": "1"}
    store.update_checkpoint({**elsewhere, "sequence_number": 1})
    snapshot = examine_group(store, address)
    [(fix, changed)], deleted = mended(mending(store), address, snapshot)
    assert fix.action is Action.DELETE
    assert "nothing changed: FourMethods cannot delete rows" in changed
    assert deleted is None


def test_the_official_blob_store_is_examined_too(hub, blob_container) -> None:
    text, name = blob_container.connection_string, blob_container.name
    with BlobCheckpointStore.from_connection_string(text, name) as store:
        begin(store, hub)
        snapshot = examine_group(store, address_of(hub))
    assert findings(snapshot) == []
    assert snapshot.backend == "blob"


def test_a_fix_does_not_touch_what_a_consumer_has_claimed_meanwhile(hub, mending) -> None:
    store, address = MemoryCheckpointStore(), address_of(hub)
    scope = address.scope()
    begin(store, hub)
    snapshot = examine_group(store, address, Limits(expires_after=1e-9))
    fixes = planned(snapshot)
    assert [fix.action for fix in fixes] == [Action.RELEASE, Action.RELEASE]
    [row] = [row for row in store.list_ownership(*scope) if row["partition_id"] == "0"]
    assert store.claim_ownership([{**row, "owner_id": "a newcomer"}])
    done, deleted = mended(mending(store), address, snapshot)
    changes = [changed for _, changed in done]
    assert deleted is None
    assert changes[0] == "partition 0: nothing released, another consumer has claimed it"
    assert changes[1].startswith("partition 1: released")
    owners = {row["partition_id"]: row["owner_id"] for row in store.list_ownership(*scope)}
    assert owners == {"0": "a newcomer", "1": ""}


def test_an_offset_is_not_added_over_a_later_checkpoint(hub) -> None:
    store, address = MemoryCheckpointStore(), address_of(hub)
    row = {**address.scope().as_dict(), "partition_id": "0"}
    store.update_checkpoint({**row, "sequence_number": 3, "offset": None})
    snapshot = examine_group(store, address)
    [fix] = planned(snapshot)
    assert fix == Fix(Action.ADD_OFFSET, "0", "checkpoint 3 without offset")
    consumer = MemoryCheckpointStore(store.rows)
    consumer.update_checkpoint({**row, "sequence_number": 7, "offset": "later"})
    with pytest.raises(StaleCheckpointError):
        carry_out(store, address, snapshot, fix)
    [stored_row] = consumer.list_checkpoints(*address.scope())
    assert (stored_row["sequence_number"], stored_row["offset"]) == (7, "later")


def test_an_offset_of_an_expired_event_is_not_planned(hub) -> None:
    store, address = MemoryCheckpointStore(), address_of(hub)
    row = {**address.scope().as_dict(), "partition_id": "0"}
    store.update_checkpoint({**row, "sequence_number": 3, "offset": None})
    hub.trim("orders", "0", 10)
    assert planned(examine_group(store, address)) == []


def test_a_group_that_does_not_exist_is_named() -> None:
    store = MemoryCheckpointStore()
    with LocalHub({"orders": 1}, consumer_groups=["one"]) as small:
        small.publish("orders", "0", [b"event"])
        snapshot = examine_group(
            store, HubAddress.from_connection_string(small.connection_string("orders"), "two")
        )
    assert isinstance(snapshot.failures["consumer_group"], ConfigurationError)


def test_a_skew_of_the_stores_clock_is_measured(hub) -> None:
    store, address = MemoryCheckpointStore(), address_of(hub)
    assert examine_group(store, address).clock_skew == 0
    store.rows.clock_shift = 100.0
    skew = examine_group(store, address).clock_skew
    assert skew == pytest.approx(100.0, abs=30)
    store.rows.clock_shift = -100.0
    skew = examine_group(store, address).clock_skew
    assert skew == pytest.approx(-100.0, abs=30)
