"""Consumers over a long time: a short run of `python -m soak`, and proof that it can fail."""

import ast
import asyncio
import gc
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub._pyamqp.aio._receiver_async import ReceiverLink as AioReceiverLink
from azure.eventhub._pyamqp.receiver import ReceiverLink
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from campaigns import IS_CAMPAIGN
from eventhub_checkpoints.localhub import LocalHub
from page_blocks import blocks
from soak import __main__ as command
from soak import delivery_tags
from soak.ledger import Ledger
from soak.official import tags_kept
from soak.real import Plan, started
from soak.simulated import run_day
from soak.trend import TOLERATED, trend


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_consumers_of_both_clients_lose_nothing_while_others_come_and_go() -> None:
    plan = Plan("sqlite", seconds=5, visit=4, every=1, interval=0.3)
    with started(plan) as soak:
        outcome = soak.run()
    assert outcome.problems == []
    assert outcome.lost == {"sync": 0, "aio": 0}
    assert outcome.visits > 0
    assert all(ledger.events > 0 for ledger in outcome.ledgers.values())
    assert {(who, measure) for who, measure, _ in outcome.trends} == {
        (who, measure) for who in ("sync", "aio") for measure in TOLERATED
    }


def test_a_leak_is_found_and_noise_or_a_peak_is_not() -> None:
    noise = [0.3 * (number * 7 % 5) for number in range(30)]
    leak = [(60.0 * at, 50 + 0.1 * at + noise[at]) for at in range(30)]
    assert not trend(leak, 0.02).is_flat
    assert trend(leak, 0.02).hourly == pytest.approx(6, rel=0.1)
    peaks = [(60.0 * at, 50 + noise[at] + 20 * (at in (12, 25))) for at in range(30)]
    assert trend(peaks, 0.02).is_flat
    warm = [(60.0 * at, 50 + noise[at] - 30 * (at < 4)) for at in range(30)]
    assert trend(warm, 0.02).is_flat


def test_a_single_socket_more_each_while_is_a_leak() -> None:
    assert not trend([(60.0 * at, 6 + at // 8) for at in range(30)], 0).is_flat
    assert trend([(60.0 * at, 6 + (at == 20)) for at in range(30)], 0).is_flat


def test_the_ledger_counts_what_is_missing_and_what_is_processed_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    ledger = Ledger(path)
    path.write_text("0 0 9\n1 0 4\n0 8 12\n1 6 6\n0 13")
    ledger.read()
    assert (ledger.events, ledger.twice) == (19, 2)
    assert ledger.missing({"0": 13, "1": 7}) == 1
    with path.open("a") as file:
        file.write(" 13\n1 5 6\n")
    ledger.read()
    assert (ledger.events, ledger.twice) == (21, 3)
    assert ledger.missing({"0": 14, "1": 7}) == 0


def test_a_store_that_no_other_process_reaches_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        command.main(["real", "--store", "memory"])
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.long  # memory is measured: other tests of this process would disturb it
def test_simulated_consumers_keep_the_same_memory() -> None:
    day = run_day(24.0 if IS_CAMPAIGN else 0.4, seed=1)
    if not IS_CAMPAIGN:
        assert (day.handovers, day.stalls) == (2 * 8, 3)
    first, *_, last = day.memory[8:]
    assert last[0] > first[0]
    # Other threads of this process allocate too; a leak of 28 bytes for each event is more.
    assert last[1] < first[1] * 1.2 + 100


@pytest.mark.long
def test_the_command_prints_the_seed_and_the_trend_of_a_day(capsys) -> None:
    command.main(["day", "--hours", "0.1", "--seed", "7"])
    printed = capsys.readouterr().out
    assert "seed 7: 2,880 events in 0.1 hours" in printed
    assert "| aio | KiB allocated |" in printed


EVENTS = 50


def receive_sync(connection: str) -> int:
    """Receive all events; return the number of tags kept while the link is open."""
    client = EventHubConsumerClient.from_connection_string(connection, "$Default")
    found: list[int] = []
    received: list[object] = []

    def on_batch(_: object, events: list[object]) -> None:
        received.extend(events)
        if len(received) == EVENTS:
            found.append(tags_kept())
            client.close()

    client.receive_batch(on_batch, partition_id="0", starting_position="-1")
    return found[0]


def receive_aio(connection: str) -> int:
    """Receive all events; return the number of tags kept while the link is open."""

    async def receive() -> int:
        found = asyncio.get_running_loop().create_future()
        received: list[object] = []

        async def on_batch(_: object, events: list[object]) -> None:
            received.extend(events)
            if len(received) == EVENTS:
                found.set_result(tags_kept())

        client = AioEventHubConsumerClient.from_connection_string(connection, "$Default")
        async with client:
            task = asyncio.create_task(
                client.receive_batch(on_batch, partition_id="0", starting_position="-1")
            )
            kept = await found
            task.cancel()
            await asyncio.wait([task])
        return kept

    return asyncio.run(receive())


@pytest.fixture
def forgetting() -> Iterator[None]:
    delivery_tags.forget_delivery_tags()
    yield
    for link in (ReceiverLink, AioReceiverLink):
        del link._received_delivery_tags


@pytest.fixture
def connection() -> Iterator[str]:
    gc.collect()
    with LocalHub({"orders": 1}) as hub:
        hub.publish("orders", "0", [b"event"] * EVENTS)
        yield hub.connection_string("orders")


@pytest.mark.parametrize("receive", [receive_sync, receive_aio])
def test_the_client_keeps_a_tag_of_every_event(connection, receive) -> None:
    before = tags_kept()
    assert receive(connection) - before >= EVENTS


@pytest.mark.parametrize("receive", [receive_sync, receive_aio])
def test_the_workaround_keeps_no_tags(connection, forgetting, receive) -> None:
    assert receive(connection) == 0


def test_users_are_shown_the_workaround_that_the_soak_uses() -> None:
    page = Path(__file__).parents[2] / "docs/explanation/performance.md"
    trees = [ast.parse(block.text) for block in blocks(page) if block.language == "python"]
    shown = {ast.unparse(node) for tree in trees for node in tree.body}  # lines are shorter there
    for part in (delivery_tags.NoTags, delivery_tags.forget_delivery_tags, tags_kept):
        assert ast.unparse(ast.parse(inspect.getsource(part))) in shown
