"""Hand-overs on every backend, and the contract of a store with them."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from backends import Variant
from eventhub_checkpoints import HandoverStore, aio
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.records import Scope

# A hand-over request is an ownership like any other, which every backend is certified for.
pytestmark = pytest.mark.parametrize("backend", ["memory", "postgres"], indirect=True)

EXPIRY = 60.0


@pytest.fixture
def group() -> Scope:
    """A consumer group that no other test uses."""
    return Scope(f"ns-{uuid.uuid4().hex[:12]}.servicebus.windows.net", "orders", "$Default")


@pytest.fixture
def member(
    opened: Callable[[Scope], Client], group: Scope, variant: Variant, loop: Loop
) -> Callable[[], Client]:
    """Makes consumers of the group, with hand-over."""
    kind: Any = aio.HandoverStore if variant == "aio" else HandoverStore

    def make() -> Client:
        return Client(kind(opened(group).store, expires_after=EXPIRY), group, loop)

    return make


def round_of(client: Client, me: str, *wanted: str) -> tuple[list[str], Any]:
    """One round of load balancing: what a client keeps open, and what it could release."""
    rows = [
        row
        for row in client.list_ownership()
        if row["owner_id"] == me or row["partition_id"] in wanted
    ]
    result = client.claim_ownership([{**row, "owner_id": me} for row in rows])
    return [row["partition_id"] for row in result], result


def test_a_partition_is_handed_over_and_its_request_is_seen_by_nobody_else(
    member: Callable[[], Client], opened: Callable[[Scope], Client], group: Scope
) -> None:
    owner, newcomer, plain = member(), member(), opened(group)
    owner.take("0", "owner")
    owner.take("1", "owner")
    assert round_of(newcomer, "newcomer", "0")[0] == []
    assert owners(plain) == {"0": "owner", "1": "owner"}
    # Its client closes partition 0, and finds it only when it releases.
    kept, result = round_of(owner, "owner")
    assert kept == ["1"]
    assert owner.store.is_handing_over(*group, "0")
    assert not owner.store.is_handing_over(*group, "1")
    assert round_of(newcomer, "newcomer")[0] == []
    (closed,) = [row for row in result if row["partition_id"] == "0"]
    owner.claim_ownership([{**closed, "owner_id": ""}])
    assert round_of(newcomer, "newcomer", "0")[0] == ["0"]
    assert owners(plain) == {"0": "newcomer", "1": "owner"}
    scopes = plain.call("list_scopes")
    assert group.folded in {scope.folded for scope in scopes}
    assert not any("wishes" in scope.consumer_group for scope in scopes)
    assert plain.call("list_ownership", *group.handover_requests)
    plain.call("delete_scope", *group)
    assert not list(plain.call("list_ownership", *group.handover_requests))


def owners(client: Client) -> dict[str, str]:
    return {row["partition_id"]: row["owner_id"] for row in client.list_ownership()}


def test_of_claims_at_the_same_time_none_wins_while_the_owner_lives_and_one_request_is_left(
    member: Callable[[], Client], opened: Callable[[Scope], Client], group: Scope
) -> None:
    owner, newcomers = member(), {f"newcomer{number}": member() for number in range(4)}
    owner.take("0", "owner")
    with ThreadPoolExecutor(len(newcomers)) as pool:
        rounds = [pool.submit(round_of, each, me, "0") for me, each in newcomers.items()]
        assert [each.result()[0] for each in rounds] == [[]] * len(newcomers)
    assert owners(owner) == {"0": "owner"}
    (request,) = opened(group).call("list_ownership", *group.handover_requests)
    requester, _, owner_id = request["owner_id"].partition(">")
    assert (requester in newcomers, owner_id) == (True, "owner")
