"""What a `HandoverStore` asks of the store below, and what it does when that fails."""

import asyncio
import re
from typing import Any

import pytest

from eventhub_checkpoints import (
    CoalescingCheckpointStore,
    ConfigurationError,
    HandoverStore,
    MemoryCheckpointStore,
    aio,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from forks import in_a_child

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


class Counted(MemoryCheckpointStore):
    """Counts requests, and can fail those of hand-over requests."""

    def __init__(self, rows: MemoryRows | None = None) -> None:
        super().__init__(rows)
        self.requests: list[str] = []
        self.fails = False

    def read_ownerships(self, scope: Scope) -> Any:
        self._count("list", scope)
        return super().read_ownerships(scope)

    def try_claim(self, proposal: Any) -> Any:
        self._count("claim", proposal.scope)
        return super().try_claim(proposal)

    def _count(self, what: str, scope: Scope) -> None:
        is_handover = scope.is_reserved
        self.requests.append(f"{what} hand-over requests" if is_handover else what)
        if is_handover and self.fails:
            raise ValueError("no answer")


def claim(owner: str, partition_id: str = "0", **rest: Any) -> dict[str, Any]:
    return {**SCOPE.as_dict(), "partition_id": partition_id, "owner_id": owner, **rest}


def one_round(store: Any, me: str, wants: bool = False) -> list[str]:
    rows = [row for row in store.list_ownership(*SCOPE) if wants or row["owner_id"] == me]
    result = store.claim_ownership([{**row, "owner_id": me} for row in rows])
    return [row["partition_id"] for row in result]


@pytest.fixture
def rows() -> MemoryRows:
    return MemoryRows()


def test_a_round_costs_one_more_list_and_a_hand_over_request_one_write(rows: MemoryRows) -> None:
    below, other = Counted(rows), Counted(rows)
    owner, newcomer = HandoverStore(below, expires_after=60), HandoverStore(other, expires_after=60)
    owner.claim_ownership([claim("owner")])
    below.requests.clear()
    assert one_round(owner, "owner") == ["0"]
    assert below.requests == ["list", "list hand-over requests", "claim"]
    assert one_round(newcomer, "newcomer", wants=True) == []
    assert other.requests == ["list", "list hand-over requests", "claim hand-over requests"]


@pytest.mark.parametrize(("proposed", "asked"), [("1", "12"), ("0123", "0123")])
def test_a_partition_is_asked_for_once_however_many_are_proposed(
    rows: MemoryRows, proposed: str, asked: str
) -> None:
    owner, below = Counted(rows), Counted(rows)
    owner.claim_ownership([claim("owner", key) for key in "0123"])
    newcomer = HandoverStore(below, expires_after=60)
    listed = {row["partition_id"]: row for row in newcomer.list_ownership(*SCOPE)}
    newcomer.claim_ownership([{**listed[key], "owner_id": "newcomer"} for key in proposed])
    assert below.requests[2:] == ["claim hand-over requests"] * len(asked)
    made = MemoryCheckpointStore(rows).list_ownership(*SCOPE.handover_requests)
    assert {row["partition_id"]: row["owner_id"] for row in made} == dict.fromkeys(
        asked, "newcomer>owner"
    )


def test_hand_over_requests_that_cannot_be_listed_stop_no_renewal_and_nothing_is_taken(
    rows: MemoryRows, caplog: pytest.LogCaptureFixture
) -> None:
    below, other = Counted(rows), Counted(rows)
    owner, newcomer = HandoverStore(below, expires_after=60), HandoverStore(other, expires_after=60)
    owner.claim_ownership([claim("owner")])
    below.fails = other.fails = True
    assert one_round(owner, "owner") == ["0"]
    assert one_round(newcomer, "newcomer", wants=True) == []
    assert "the hand-over requests of consumer group" in caplog.text
    other.fails = False
    assert one_round(newcomer, "newcomer", wants=True) == []
    assert "claim hand-over requests" in other.requests


def test_a_hand_over_request_that_cannot_be_written_is_logged_and_written_in_a_later_round(
    rows: MemoryRows, caplog: pytest.LogCaptureFixture
) -> None:
    below = Counted(rows)
    newcomer = HandoverStore(below, expires_after=60)
    MemoryCheckpointStore(rows).claim_ownership([claim("owner")])
    listed = list(newcomer.list_ownership(*SCOPE))
    below.fails = True
    assert list(newcomer.claim_ownership([{**listed[0], "owner_id": "newcomer"}])) == []
    assert "could not be asked" in caplog.text
    below.fails = False
    one_round(newcomer, "newcomer", wants=True)
    (request,) = MemoryCheckpointStore(rows).list_ownership(*SCOPE.handover_requests)
    assert request["owner_id"] == "newcomer>owner"


def test_a_release_that_did_not_reach_the_store_is_made_up_for(rows: MemoryRows) -> None:
    owner = HandoverStore(MemoryCheckpointStore(rows), expires_after=60)
    newcomer = HandoverStore(MemoryCheckpointStore(rows), expires_after=60)
    owner.claim_ownership([claim("owner")])
    one_round(newcomer, "newcomer", wants=True)
    assert one_round(owner, "owner") == []
    # A store that refuses an old etag, as the official one.
    owner.claim_ownership([claim("", etag="stale")])
    assert owner.is_handing_over(*SCOPE, "0")
    assert one_round(owner, "owner") == []
    (row,) = MemoryCheckpointStore(rows).list_ownership(*SCOPE)
    assert row["owner_id"] == ""
    assert one_round(newcomer, "newcomer", wants=True) == ["0"]


def handover_requests(rows: MemoryRows) -> list[str]:
    return [
        row["owner_id"]
        for row in MemoryCheckpointStore(rows).list_ownership(*SCOPE.handover_requests)
    ]


def test_a_hand_over_request_that_was_answered_is_withdrawn_with_the_next_one(
    rows: MemoryRows,
) -> None:
    below, other = Counted(rows), Counted(rows)
    owner, newcomer = HandoverStore(below, expires_after=60), HandoverStore(other, expires_after=60)
    owner.claim_ownership([claim("owner", key) for key in "01"])
    first, _ = newcomer.list_ownership(*SCOPE)
    newcomer.claim_ownership([{**first, "owner_id": "newcomer"}])
    assert handover_requests(rows) == ["newcomer>owner"]
    result = owner.claim_ownership(list(owner.list_ownership(*SCOPE)))
    assert [row["partition_id"] for row in result] == ["1"]
    owner.claim_ownership([{**row, "owner_id": ""} for row in result if row["partition_id"] == "0"])
    # What was released for it counts as its own, so it may want another one in the same round.
    assert one_round(newcomer, "newcomer", wants=True) == ["0"]
    other.requests.clear()
    assert one_round(newcomer, "newcomer", wants=True) == ["0"]
    assert other.requests == [
        "list",
        "list hand-over requests",
        "claim",
        "claim hand-over requests",
    ]
    assert handover_requests(rows) == ["", "newcomer>owner"]
    other.requests.clear()
    one_round(newcomer, "newcomer")
    assert other.requests == ["list", "list hand-over requests", "claim"]


def test_a_client_that_stops_withdraws_what_it_has_asked_for(
    rows: MemoryRows, caplog: pytest.LogCaptureFixture
) -> None:
    below = Counted(rows)
    owner, newcomer = (
        HandoverStore(MemoryCheckpointStore(rows), expires_after=60),
        HandoverStore(below, expires_after=60),
    )
    owner.claim_ownership([claim("owner")])
    one_round(newcomer, "newcomer", wants=True)
    assert handover_requests(rows) == ["newcomer>owner"]
    below.fails = True
    newcomer.withdraw()
    assert handover_requests(rows) == ["newcomer>owner"]
    below.fails = False
    newcomer.withdraw()
    assert handover_requests(rows) == [""]
    # A client that still balances its load while it stops asks for nothing more.
    one_round(newcomer, "newcomer", wants=True)
    assert handover_requests(rows) == [""]
    assert one_round(owner, "owner") == ["0"]
    below.requests.clear()
    HandoverStore(below, expires_after=60).withdraw()
    assert below.requests == []


def test_only_the_hand_over_requests_of_the_client_itself_are_withdrawn(rows: MemoryRows) -> None:
    first, second = (HandoverStore(MemoryCheckpointStore(rows), expires_after=60) for _ in "12")
    MemoryCheckpointStore(rows).claim_ownership([claim("owner", key) for key in "01"])
    for store, me, key in ((first, "first", "0"), (second, "second", "1")):
        listed = [row for row in store.list_ownership(*SCOPE) if row["partition_id"] == key]
        store.claim_ownership([{**row, "owner_id": me} for row in listed])
    first.withdraw()
    assert handover_requests(rows) == ["", "second>owner"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_the_parents_lock_is_held_begins_anew(
    rows: MemoryRows,
) -> None:
    owner = HandoverStore(MemoryCheckpointStore(rows), expires_after=60)
    newcomer = HandoverStore(MemoryCheckpointStore(rows), expires_after=60)
    owner.claim_ownership([claim("owner")])
    one_round(newcomer, "newcomer", wants=True)
    one_round(owner, "owner")
    assert owner.is_handing_over(*SCOPE, "0")

    def works_in_the_child() -> None:
        assert not owner.is_handing_over(*SCOPE, "0")
        assert one_round(owner, "child", wants=True) == []
        assert [row["partition_id"] for row in owner.claim_ownership([claim("child", "1")])] == [
            "1"
        ]

    with owner._group(SCOPE):
        assert in_a_child(works_in_the_child) == 0
    assert owner.is_handing_over(*SCOPE, "0")


class Slow(aio.MemoryCheckpointStore):
    """Takes its time for a write."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end, self.ended = asyncio.Event(), asyncio.Event(), False

    async def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.begun.set()
        await self.may_end.wait()
        self.ended = True
        return await super().write_checkpoint(checkpoint, seen)


def test_a_handler_that_is_cancelled_completes_its_write_first() -> None:
    async def cancelled() -> bool:
        below = Slow()
        store = aio.HandoverStore(below, expires_after=60)
        row = {**SCOPE.as_dict(), "partition_id": "0", "offset": "1", "sequence_number": 1}
        handler = asyncio.create_task(store.update_checkpoint(row))
        await below.begun.wait()
        handler.cancel()
        await asyncio.sleep(0)
        assert not handler.done()
        below.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await handler
        return below.ended

    assert asyncio.run(cancelled())


def test_a_store_that_cannot_be_wrapped_is_refused() -> None:
    store = HandoverStore(CoalescingCheckpointStore(MemoryCheckpointStore()), expires_after=60)
    with pytest.raises(ConfigurationError, match="HandoverStore must be the outermost"):
        HandoverStore(store, expires_after=60)
    right = re.escape("HandoverStore(CoalescingCheckpointStore(store)), not")
    with pytest.raises(ConfigurationError, match=right):
        CoalescingCheckpointStore(store)
    with pytest.raises(ConfigurationError, match="expires_after"):
        HandoverStore(store.store, expires_after=0)
    with pytest.raises(ConfigurationError, match="store is of type str"):
        HandoverStore("memory:", expires_after=60)  # type: ignore[arg-type]
