"""What is begun ends, is saved, and only then the partition is another's."""

from collections.abc import Callable
from typing import Any

from eventhub_checkpoints import every
from eventhub_checkpoints.stores.memory.rows import MemoryRows
from variants import EVERY_CLIENT
from waiting import LIMIT

Wait = Callable[..., Any]


def test_what_runs_and_what_was_left_behind_end_before_it_is_closed_saved_and_released(
    site: Any, wait: Wait, elapse: Wait, hold: Any, variant: str, tell: Any
) -> None:
    store, left = site.stage.store(), []

    def steps(one: Any, events: list[Any]) -> Any:
        left.append(one.checkpoints.track(events[-1]))
        yield hold.is_set

    site.publish(5)
    run = site.processor(store, policy=every(events=10**6))
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: left)
    stopping = run.begin("stop")
    wait(lambda: run.processor._callbacks.is_stopping)
    assert "close" not in run.deeds.names()
    hold.set()
    wait(lambda: "process_events ended" in run.deeds.names())
    elapse(1)
    assert "close" not in run.deeds.names()
    run.deeds.log.append(("done", "0"))
    left[0].done()
    stopping.result(LIMIT)
    wanted = ("process_events ended", "done", "close", "close ended", "update", "release")
    order = [entry for entry in run.deeds.log if entry[0] in wanted]
    assert [entry[0] for entry in order] == list(wanted)
    last = order[0][-1]
    assert order[4] == ("update", "0", last) == ("update", "0", site.row(store))
    assert site.owners(store) == {"0": ""}
    tell("order at the store", f"{variant}, stop: " + ", ".join(map(str, order)))


@EVERY_CLIENT
def test_a_partition_whose_receiving_failed_is_saved_before_it_is_released(
    site: Any, wait: Wait, hold: Any, variant: str, tell: Any
) -> None:
    store = site.stage.store()
    site.publish(5)
    run = site.processor(store, policy=every(events=10**6))
    run.deeds.hold("process_events", hold)
    run.call("start")
    wait(lambda: "process_events" in run.deeds.names())
    site.hub.detach_receivers("orders", condition="amqp:link:stolen")
    if site.is_aio:
        wait(lambda: "process_error" in run.deeds.names())
    assert "close" not in run.deeds.names()
    hold.set()
    wait(lambda: "release" in run.deeds.names())
    wanted = ("process_events ended", "close", "close ended", "update", "release")
    order = [entry for entry in run.deeds.log if entry[0] in wanted][: len(wanted)]
    assert [entry[0] for entry in order] == list(wanted)
    assert order[1][2:] == ("OWNERSHIP_LOST",)
    tell("order at the store", f"{variant}, receiving failed: " + ", ".join(map(str, order)))
    site.publish(1)
    wait(lambda: 5 in run.deeds.numbers("process_events ended"))
    assert sorted(run.deeds.numbers("process_events ended")) == list(range(6))


def test_a_plain_store_is_not_written_for_a_partition_that_is_lost(
    site: Any, wait: Wait, hold: Any
) -> None:
    store = site.stage.foreign_store()
    site.publish(5)
    run = site.processor(store, policy=every(events=10**6))
    run.deeds.hold("process_events", hold)
    run.call("start")
    wait(lambda: "process_events" in run.deeds.names())
    site.hub.detach_receivers("orders", condition="amqp:link:stolen")
    hold.set()
    wait(lambda: "release" in run.deeds.names())
    assert "update" not in run.deeds.names()


def test_a_partition_is_not_opened_again_before_it_is_closed(
    site: Any, wait: Wait, elapse: Wait, hold: Any
) -> None:
    store = site.stage.store()
    site.publish(3)
    run = site.processor(store, policy=every(events=10**6))
    run.deeds.hold("close", hold)
    run.call("start")
    wait(lambda: len(run.deeds.numbers("process_events ended")) == 3)
    site.hub.detach_receivers("orders", condition="amqp:link:stolen")
    wait(lambda: "close" in run.deeds.names())
    site.publish(3)
    # A sync client balances its load meanwhile, and claims the partition that it still owns.
    elapse(3)
    assert run.deeds.names().count("initialize") == 1
    hold.set()
    wait(lambda: len(run.deeds.numbers("process_events ended")) == 6)
    run.call("stop")
    assert run.deeds.numbers() == list(range(6))
    assert store.saved["0"] == sorted(store.saved["0"])


def test_two_processors_that_take_partitions_from_each_other_lose_nothing(
    site: Any, wait: Wait, variant: str, tell: Any
) -> None:
    site.hub.add_partitions("orders", 1)
    rows = MemoryRows()
    stores = [site.stage.store(rows) for _ in range(2)]
    log: list[Any] = []

    def slow(one: Any, events: list[Any]) -> Any:
        looks = iter(range(5))
        yield lambda: next(looks, None) is None

    runs = []
    for store in stores:
        store.log = log
        run = site.processor(store, max_batch_size=7)
        run.deeds.steps["process_events"] = slow
        runs.append(run)
    for partition_id in "01":
        site.publish(100, partition_id)
    runs[0].call("start")
    wait(lambda: {one.partition_id for one in runs[0].deeds.made} == {"0", "1"})
    for turn in range(4):
        first, second = runs[turn % 2], runs[1 - turn % 2]
        before = len(second.deeds.made)
        second.call("start")
        wait(lambda n=before, run=second: len(run.deeds.made) > n)
        wait(lambda run=first: any(e[0] == "close ended" for e in run.deeds.log[-200:]))
        first.call("stop")
        wait(lambda n=before, run=second: len(run.deeds.made) > n + 1)
    wait(
        lambda: all(len(set(runs[0].deeds.numbers("process_events ended", p))) == 100 for p in "01")
    )
    runs[0].call("stop")
    finished: dict[str, set[int]] = {"0": set(), "1": set()}
    for name, partition_id, *what in (entry for entry in log if len(entry) > 2):
        if name == "process_events ended":
            finished[partition_id] |= set(what)
        elif name == "update":
            assert set(range(what[0] + 1)) <= finished[partition_id]
    given = {p: len(runs[0].deeds.numbers("process_events", p)) for p in "01"}
    assert {p: site.row(stores[0], p) for p in "01"} == {"0": 99, "1": 99}
    tell("events given with four changes of owners", f"{variant}: {given} for 100 each")
