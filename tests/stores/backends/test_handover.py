"""Hand-overs on every backend, and the contract of a store with them."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from backends import Variant
from eventhub_checkpoints import HandoverStore, MemoryCheckpointStore, aio
from eventhub_checkpoints.conformance import CHECKS, Verdict, certify
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.conformance.contract import PROCESSES
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows

EXPIRY = 60.0
AT_ONCE = 1e-9
"""Every ownership has expired when another asks for it, so nobody is asked."""
IN_ONE_PROCESS = [check for check in CHECKS if PROCESSES not in check.needs]
TAKES_FROM_A_LIVE_OWNER = {
    "a_zombies_checkpoint_is_refused",
    "a_zombie_of_the_first_checkpoint_is_refused",
    "a_checkpoint_above_a_strangers_is_stored",
    "a_new_owner_may_start_again_at_zero",
    "the_list_after_a_claim_clears_the_floor",
    "listed_rows_can_be_claimed_as_they_are",
    "a_late_release_spares_a_newer_claim",
}
"""Checks that begin with what a `HandoverStore` is there to prevent."""


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


def test_a_partition_is_handed_over_and_its_wish_is_seen_by_nobody_else(
    member: Callable[[], Client], opened: Callable[[Scope], Client], group: Scope
) -> None:
    owner, thief, plain = member(), member(), opened(group)
    owner.take("0", "owner")
    owner.take("1", "owner")
    assert round_of(thief, "thief", "0")[0] == []
    assert owners(plain) == {"0": "owner", "1": "owner"}
    # Its client closes partition 0, and finds it only when it releases.
    kept, result = round_of(owner, "owner")
    assert kept == ["1"]
    assert owner.store.is_handing_over(*group, "0")
    assert not owner.store.is_handing_over(*group, "1")
    assert round_of(thief, "thief")[0] == []
    (closed,) = [row for row in result if row["partition_id"] == "0"]
    owner.claim_ownership([{**closed, "owner_id": ""}])
    assert round_of(thief, "thief", "0")[0] == ["0"]
    assert owners(plain) == {"0": "thief", "1": "owner"}
    scopes = plain.call("list_scopes")
    assert group.folded in {scope.folded for scope in scopes}
    assert not any("wishes" in scope.consumer_group for scope in scopes)
    assert plain.call("list_ownership", *group.wishes)
    plain.call("delete_scope", *group)
    assert not list(plain.call("list_ownership", *group.wishes))


def owners(client: Client) -> dict[str, str]:
    return {row["partition_id"]: row["owner_id"] for row in client.list_ownership()}


@pytest.mark.parametrize("expires_after", [EXPIRY, AT_ONCE])
def test_a_wrapped_store_keeps_the_contract(expires_after: float, variant: Variant) -> None:
    """Also with hooks, rows and clocks out of reach: the store below has been certified itself."""
    rows = MemoryRows()

    def make() -> Any:
        return Closing(MemoryCheckpointStore(rows), expires_after=expires_after)

    async def make_aio() -> Any:
        return AioClosing(aio.MemoryCheckpointStore(rows), expires_after=expires_after)

    report = certify(make_aio if variant == "aio" else make, checks=IN_ONE_PROCESS)
    failed = {each.check.name for each in report.outcomes if each.verdict is Verdict.FAILED}
    assert failed == (TAKES_FROM_A_LIVE_OWNER if expires_after == EXPIRY else set()), report.text()
    assert sum(each.verdict is Verdict.PASSED for each in report.outcomes) > 60


class Closing(HandoverStore):
    """Closes the store below, which nobody else holds here."""

    def close(self) -> None:
        self.store.close()  # type: ignore[attr-defined]


class AioClosing(aio.HandoverStore):
    """The same, for asyncio."""

    async def close(self) -> None:
        await self.store.close()  # type: ignore[attr-defined]
