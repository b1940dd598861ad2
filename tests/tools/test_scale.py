"""Consumer groups on a simulated clock: the facts behind benchmarks/scale.md."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from azure.eventhub import LoadBalancingStrategy
from azure.eventhub._eventprocessor.ownership_manager import OwnershipManager
from azure.eventhub.aio._eventprocessor._ownership_manager import (
    OwnershipManager as AioOwnershipManager,
)

from benchmarks.scale import tables
from benchmarks.scale.backends import BACKENDS
from benchmarks.scale.group import OPEN_SECONDS, SCOPE
from benchmarks.scale.plots import write_chart
from benchmarks.scale.scenarios import SCENARIOS, Setup, run
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.operations.cost import blob_per_month, per_month
from simulated_time import seeded, simulate

SMALL = Setup("start", "redis", consumers=10, partitions=64, interval=10.0)
LONGEST_INTERVAL = 12.0
"""The SDK extends an interval by up to 20 %."""


def test_an_hour_passes_on_both_clocks() -> None:
    async def wait() -> tuple[float, float]:
        began = time.time(), time.monotonic()
        await asyncio.sleep(3600)
        return time.time() - began[0], time.monotonic() - began[1]

    assert simulate(wait, seed=1) == (3600, 3600)


def test_a_wait_that_nothing_can_end_is_an_error() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="cannot happen"):
        simulate(wait, seed=1)


def test_the_same_seed_gives_the_same_result() -> None:
    setup = replace(SMALL, scenario="rolling")
    facts = run(setup).facts()
    assert run(setup).facts() == facts
    assert run(replace(setup, seed=2)).facts() != facts | {"setup": {**facts["setup"], "seed": 2}}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_ends_with_each_partition_read_once(scenario, backend) -> None:
    outcome = run(replace(SMALL, scenario=scenario, backend=backend))
    consumers = {"join": 11, "fail-10%": 9}.get(scenario, 10)
    assert outcome.balanced_after is not None
    assert outcome.is_read_once
    assert outcome.smallest == 64 // consumers
    assert outcome.late_hand_overs == outcome.failed_rounds == outcome.refused == 0


@pytest.mark.parametrize("strategy", ["greedy", "balanced"])
@pytest.mark.parametrize("consumers", [2, 8])
def test_a_start_takes_a_round_for_each_partition_of_a_consumer(strategy, consumers) -> None:
    outcome = run(replace(SMALL, consumers=consumers, strategy=strategy))
    share = 64 // consumers
    assert outcome.balanced_after is not None
    assert (share - 2) * 10 < outcome.balanced_after < (share + 3) * LONGEST_INTERVAL


def test_greedy_reads_at_once_and_hands_over_while_balanced_leaves_partitions_unread() -> None:
    greedy, balanced = run(SMALL), run(replace(SMALL, strategy="balanced"))
    assert greedy.longest_gap < 4 < balanced.mean_gap
    assert greedy.takeovers == greedy.hand_overs > 40
    assert balanced.hand_overs == 0


def test_partitions_of_a_killed_consumer_are_unread_until_they_expire() -> None:
    outcome = run(replace(SMALL, scenario="fail-10%"))
    assert outcome.hand_overs - outcome.takeovers in (6, 7)  # those of the one that was killed
    assert 48 < outcome.longest_gap < 60 + 2 * LONGEST_INTERVAL


def test_a_batch_is_one_request_except_on_blob() -> None:
    blob, redis = run(replace(SMALL, backend="blob")), run(SMALL)
    assert redis.steady["claim"] == pytest.approx(10 / 11, rel=0.1)
    assert blob.steady["claim"] == pytest.approx(64 / 11, rel=0.1)
    assert blob.steady["list"] == pytest.approx(redis.steady["list"], rel=0.1)
    computed = blob_per_month(consumers=10, partitions=64, interval=10)
    assert per_month("blob", blob.steady) == pytest.approx(computed, rel=0.1)


HANDED = replace(SMALL, consumers=8, interval=1.0, expiration=12.0, drain=0.1, longest=150.0)
OPEN_BY = 1.2 * HANDED.interval + HANDED.drain + OPEN_SECONDS + 0.1
"""Longest pause of a partition that is handed over: a round, the drain, opening, and requests."""


@pytest.mark.parametrize(("consumers", "partitions"), [(4, 16), (8, 64)])
def test_a_start_with_hand_over_takes_little_longer_and_takes_from_nobody(
    consumers: int, partitions: int
) -> None:
    setup = replace(HANDED, consumers=consumers, partitions=partitions)
    plain, handed = run(setup), run(replace(setup, hands_over=True))
    assert plain.balanced_after is not None
    assert handed.balanced_after is not None
    assert handed.balanced_after < 1.5 * plain.balanced_after
    assert (handed.takeovers, handed.late_hand_overs, handed.is_read_once) == (0, 0, True)
    # No partition moves twice.
    assert handed.hand_overs == plain.hand_overs == partitions - partitions // consumers


def test_a_partition_that_is_handed_over_pauses_for_a_round_of_the_client_that_asked() -> None:
    outcome = run(replace(HANDED, scenario="join", hands_over=True))
    assert outcome.hand_overs == 7
    assert outcome.longest_gap < OPEN_BY


def test_a_group_with_hand_over_lists_requests_in_each_round_and_writes_none() -> None:
    steady = run(replace(HANDED, hands_over=True, lasting=60.0)).steady
    # Each consumer, once in a round of 1.1 s on average.
    for kind in ("list", "list hand-over requests", "claim"):
        assert steady[kind] == pytest.approx(8 / 1.1, rel=0.1)
    assert steady["claim hand-over requests"] < 0.2


@pytest.mark.parametrize("consumers", [2, 8])
def test_slow_rounds_move_no_group_of_partitions_from_consumer_to_consumer(consumers: int) -> None:
    """The first consumer opens all links and comes late, so its ownerships expire."""
    outcome = run(replace(HANDED, consumers=consumers, hands_over=True, load=25.0))
    assert outcome.takeovers > 0
    assert outcome.balanced_after is not None
    assert outcome.is_read_once
    # At most once as a whole, and then one by one: without end before.
    assert outcome.hand_overs < 2 * 64
    assert outcome.late_hand_overs == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_late_rounds_move_partitions_one_by_one_and_only_once(seed: int) -> None:
    """Each round of both consumers begins up to three times too late for an ownership to last."""
    late = 3 * HANDED.expiration
    setup = replace(HANDED, consumers=2, partitions=16, late=late, lasting=600.0, seed=seed)
    plain, handed = run(setup), run(replace(setup, hands_over=True))
    assert plain.balanced_after is None
    assert plain.hand_overs > 8 * 16
    assert handed.balanced_after is not None
    assert (handed.smallest, handed.largest, handed.is_read_once) == (8, 8, True)
    # At most once as a whole: who joins cannot know yet that the group is late.
    assert handed.hand_overs < 2 * 16
    assert handed.late_hand_overs == 0


@pytest.mark.parametrize("scenario", ["start", "rolling"])
def test_a_throttled_group_retries_and_loses_nothing(
    scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, "blob", replace(BACKENDS["blob"], limit=20))
    outcome = run(replace(SMALL, scenario=scenario, backend="blob"))
    assert outcome.refused > 0
    assert outcome.peak > 20
    assert outcome.is_read_once
    assert outcome.late_hand_overs == outcome.unconfirmed_claims == outcome.failed_rounds == 0


@pytest.mark.parametrize("strategy", list(LoadBalancingStrategy))
def test_the_sync_load_balancer_decides_as_the_simulated_one(strategy) -> None:
    """The simulation runs the asyncio load balancer; in turns, both own the same partitions."""
    partition_ids = [str(number) for number in range(32)]

    async def later() -> list[str]:
        return partition_ids

    hub = {"eventhub_name": SCOPE.eventhub_name, "_address": SimpleNamespace(hostname="ns")}
    stores = MemoryCheckpointStore(), AioMemoryCheckpointStore()
    clients = (
        SimpleNamespace(**hub, get_partition_ids=lambda: partition_ids),
        SimpleNamespace(**hub, get_partition_ids=later),
    )
    kinds = OwnershipManager, AioOwnershipManager
    owned = []
    for kind, client, store in zip(kinds, clients, stores, strict=True):
        managers = [
            kind(client, "$Default", f"owner-{number}", store, 60.0, strategy, None)
            for number in range(4)
        ]
        with seeded(1):
            owned.append([in_turn(managers) for _ in range(12)])
    assert owned[0] == owned[1]
    assert [len(partitions) for partitions in owned[0][-1]] == [8] * 4


def in_turn(managers: list[OwnershipManager | AioOwnershipManager]) -> list[set[str]]:
    async def finished(answer: object) -> list[str]:
        return answer if isinstance(answer, list) else await answer

    return [set(asyncio.run(finished(manager.claim_ownership()))) for manager in managers]


def test_a_table_replaces_what_was_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = (mark.format(name="starts") for mark in tables.MARKS)
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    tables.write_into(page, "starts", tables.starts([run(SMALL)]))
    written = page.read_text()
    assert "| 10 x 64 | greedy | redis |" in written
    assert "old" not in written
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    with pytest.raises(ValueError, match="has no place for costs"):
        tables.write_into(page, "costs", "")


def test_a_chart_draws_each_line(tmp_path: Path) -> None:
    lines = {"first": [(1.0, 10.0), (100.0, 1000.0)], "second & last": [(1.0, 0.0), (10.0, 20.0)]}
    write_chart(tmp_path / "chart.svg", "title", ("x", "y"), lines)
    svg = (tmp_path / "chart.svg").read_text()
    assert svg.count("<polyline") == 2
    assert svg.count("<circle") == 3  # a logarithmic axis has no 0
    assert "second &amp; last" in svg
