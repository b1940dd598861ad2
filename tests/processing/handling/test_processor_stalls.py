"""An event processor's watchdog: what has stalled and where, and what has not."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.eventhub.aio._eventprocessor.event_processor import EventProcessor as AioClientLoop

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore, every
from simulated_time import LONGEST_POLL
from variants import ONLY_LONG_SYNC, ONLY_SIMULATED
from waiting import LIMIT as LONGEST

LIMIT = 60.0
Steps = Iterator[Any]
HUB_PARTITIONS = 2


class Watch:
    """A processor of two partitions, and its watchdog on a clock that the test moves."""

    def __init__(self, site: Any, clock: Any, wait: Any, caplog: pytest.LogCaptureFixture) -> None:
        self.site, self.clock, self.wait, self._caplog = site, clock, wait, caplog
        self.store = site.stage.store()

    def start(self, **options: Any) -> Any:
        self.run = self.site.processor(self.store, **{"stalled_after": LIMIT, **options})
        self.processor = self.run.processor
        return self.run

    def begin(self, **options: Any) -> Any:
        """Start, with an event of each partition processed and saved."""
        run = self.start(**options)
        run.call("start")
        for partition_id in ("0", "1"):
            self.site.publish(1, partition_id)
            self.wait(lambda key=partition_id: self.site.row(self.store, key) == 0)
        self.clock.look()
        return run

    def pass_time(self, limits: float) -> None:
        self.clock.pass_time(self.processor._callbacks.watchdog, limits)

    @property
    def stalled(self) -> dict[str, str]:
        stats = self.processor.stats()
        return {key: each.stalled for key, each in stats.items() if each.stalled}

    def logged(self) -> list[str]:
        return [
            each.getMessage() for each in self._caplog.records if "stalled" in each.getMessage()
        ]


@pytest.fixture
def watch(site: Any, clock: Any, wait: Any, caplog: pytest.LogCaptureFixture) -> Watch:
    caplog.set_level(logging.WARNING, "eventhub_checkpoints")
    return Watch(site, clock, wait, caplog)


def test_a_mute_link_is_found_and_the_other_partition_works(watch: Watch) -> None:
    run = watch.begin()
    watch.site.hub.mute_receivers("orders", partition_id="0")
    watch.site.publish(2, "0")
    watch.site.publish(2, "1")
    watch.wait(lambda: run.deeds.numbers(partition_id="1") == [0, 1, 2])
    watch.clock.look()
    watch.pass_time(3)
    assert watch.stalled == {"0": "link"}
    assert not watch.processor.healthy()
    assert len(watch.logged()) == 1


@pytest.mark.parametrize("kind", ["own", "foreign"])
def test_reopening_brings_a_mute_link_back_over_any_store(watch: Watch, kind: str) -> None:
    if kind == "foreign":
        watch.store = watch.site.stage.foreign_store()
    run = watch.start(on_stall="reopen")
    watch.site.publish(1)
    run.call("start")
    watch.wait(lambda: watch.store.saved["0"] == [0])
    watch.clock.look()
    watch.site.hub.mute_receivers("orders", partition_id="0")
    watch.site.publish(3)
    watch.pass_time(2)
    watch.wait(lambda: watch.store.saved["0"][-1] == 3)
    assert run.deeds.numbers() == [0, 1, 2, 3], "nothing twice"
    watch.clock.look()
    assert (watch.stalled, watch.processor.healthy()) == ({}, True)


@pytest.mark.parametrize("method", ["initialize", "process_events"])
def test_a_method_that_hangs_is_found(watch: Watch, hold: threading.Event, method: str) -> None:
    run = watch.start()
    run.deeds.hold(method, hold)
    watch.site.publish(1)
    run.call("start")
    # A sync client opens its partitions in one thread, and may begin with either.
    ids = watch.wait(lambda: [id_ for id_ in ("0", "1") if run.deeds.all(method, id_)])
    watch.clock.look()
    watch.pass_time(1.4)
    assert watch.stalled[ids[0]] == "handler"
    assert not watch.processor.healthy()
    hold.set()
    watch.wait(lambda: watch.site.row(watch.store) == 0)
    watch.clock.look()
    assert ids[0] not in watch.stalled


@ONLY_LONG_SYNC
def test_a_partition_that_waits_for_the_handler_of_another_hangs_there(
    watch: Watch, hold: threading.Event
) -> None:
    run = watch.begin()
    run.deeds.hold("process_events", hold)
    watch.site.publish(1, "0")
    watch.wait(lambda: run.deeds.numbers() == [0, 1])
    watch.site.publish(1, "1")
    watch.pass_time(3)
    assert watch.stalled == {"0": "handler", "1": "handler"}
    assert any("waits for the handler of partition 0" in line for line in watch.logged())


@ONLY_LONG_SYNC
def test_a_partition_that_waits_for_handlers_that_work_is_no_stall(
    watch: Watch, hold: threading.Event
) -> None:
    run = watch.begin(max_batch_size=1)
    gates = [threading.Event() for _ in range(4)]

    def slow(one: Any, events: list[Any]) -> Any:
        yield gates[events[0].sequence_number].is_set

    run.deeds.steps["process_events"] = slow
    watch.site.publish(3, "0")
    watch.wait(lambda: run.deeds.numbers() == [0, 1])
    watch.site.publish(1, "1")
    for number in (1, 2, 3):
        watch.pass_time(0.8)
        assert watch.stalled == {}
        gates[number].set()
        watch.wait(lambda number=number: (number,) in run.deeds.all("process_events ended"))
        watch.clock.look()
    watch.wait(lambda: run.deeds.numbers(partition_id="1") == [0, 1])


@pytest.mark.parametrize("name", ["list_ownership", "update_checkpoint"])
def test_a_store_that_hangs_is_found(
    watch: Watch, hold: threading.Event, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    watch.begin()
    inner, hung = watch.store.inner, threading.Event()
    method = getattr(inner, name)

    def hang(*args: Any, **kwargs: Any) -> Any:
        hung.set()
        assert hold.wait(LONGEST)
        return method(*args, **kwargs)

    async def hang_aio(*args: Any, **kwargs: Any) -> Any:
        hung.set()
        while not hold.is_set():  # noqa: ASYNC110 - the test sets it
            await asyncio.sleep(LONGEST_POLL)
        return await method(*args, **kwargs)

    monkeypatch.setattr(inner, name, hang_aio if watch.site.is_aio else hang)
    watch.site.publish(1)
    watch.wait(hung.is_set)
    watch.clock.look()
    watch.pass_time(1.4)
    assert watch.stalled["0"] == "store"
    assert not watch.processor.healthy()
    hold.set()
    watch.wait(lambda: not watch.stalled)


@ONLY_SIMULATED
@pytest.mark.parametrize("on_stall", ["report", "reopen"])
def test_a_partition_that_is_held_and_never_opened_is_found(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, on_stall: str
) -> None:
    create, lost = AioClientLoop._create_tasks_for_claimed_ownership, []

    def lose(self: Any, *args: Any) -> None:
        create(self, *args)
        if not lost:
            lost.append("0")
            self._tasks["0"].cancel()  # before it has begun: the client never looks at it again

    monkeypatch.setattr(AioClientLoop, "_create_tasks_for_claimed_ownership", lose)
    run = watch.start(on_stall=on_stall)
    watch.site.publish(1)
    run.call("start")
    watch.wait(lambda: watch.processor._callbacks.store.won == {"0", "1"})
    watch.wait(lambda: "1" in watch.processor.stats())
    watch.clock.look()
    watch.pass_time(1.4)
    (line,) = watch.logged()
    assert "partition 0 has stalled (link): the client has stopped receiving" in line
    if on_stall == "report":
        assert not watch.processor.healthy()
    else:
        watch.wait(lambda: run.deeds.numbers() == [0])
        watch.clock.look()
        assert watch.processor.healthy()


def test_an_idle_hub_is_no_stall(watch: Watch) -> None:
    run = watch.begin()
    watch.pass_time(5)
    assert (watch.logged(), watch.processor.healthy()) == ([], True)
    watch.site.publish(1)
    watch.wait(lambda: run.deeds.numbers() == [0, 1])


def test_a_start_without_any_event_is_no_stall(watch: Watch) -> None:
    watch.start().call("start")
    watch.wait(lambda: len(watch.processor.stats()) == 2)
    watch.pass_time(4)
    assert (watch.logged(), watch.processor.healthy()) == ([], True)


def test_a_processor_that_saves_rarely_is_no_stall(watch: Watch) -> None:
    run = watch.start(policy=None)
    watch.site.publish(3)
    run.call("start")
    watch.wait(lambda: run.deeds.numbers("process_events ended") == [0, 1, 2])
    watch.clock.look()
    watch.pass_time(3)
    assert (watch.logged(), watch.processor.healthy()) == ([], True)


def test_a_slow_handler_that_returns_in_time_is_no_stall(
    watch: Watch, hold: threading.Event
) -> None:
    run = watch.start(max_batch_size=1, policy=every(events=1))
    gates = [threading.Event() for _ in range(4)]

    def slow(one: Any, events: list[Any]) -> Any:
        yield gates[events[0].sequence_number].is_set

    run.deeds.steps["process_events"] = slow
    watch.site.publish(4)
    run.call("start")
    for number in range(4):
        watch.wait(lambda number=number: (number,) in run.deeds.all("process_events"))
        watch.clock.look()
        watch.pass_time(0.8)
        assert watch.logged() == []
        gates[number].set()


def test_a_drain_is_no_stall(watch: Watch, hold: threading.Event) -> None:
    run = watch.start(drain_timeout=20 * LIMIT)
    run.deeds.hold("process_events", hold)
    watch.site.publish(1)
    run.call("start")
    watch.wait(lambda: run.deeds.numbers() == [0])
    watch.clock.look()
    stopping = run.begin("stop")
    watch.wait(lambda: watch.processor._callbacks.is_stopping)
    for _ in range(10):
        watch.clock.jump(LIMIT / 2)
        watch.clock.look()
    assert watch.logged() == []
    hold.set()
    stopping.result(LONGEST)


def test_a_client_that_was_closed_while_a_handler_works_is_no_stall(
    watch: Watch, hold: threading.Event
) -> None:
    run = watch.start(drain_timeout=20 * LIMIT)
    run.deeds.hold("process_events", hold)
    watch.site.publish(1)
    run.call("start")
    watch.wait(lambda: run.deeds.numbers() == [0])
    watch.clock.look()
    closing = watch.site.stage.begin(watch.processor._client.close)
    watch.clock.look()
    sessions = watch.processor._callbacks.sessions.open.values()
    watch.wait(lambda: all(session.source.is_drained for session in sessions))
    for _ in range(10):
        watch.clock.jump(LIMIT / 2)
        watch.clock.look()
    assert watch.logged() == []
    hold.set()
    closing.result(LONGEST)


def test_a_partition_that_is_stopped_at_an_event_is_reported_as_that_alone(watch: Watch) -> None:
    run = watch.start(attempts=1)

    def fail(one: Any, events: list[Any]) -> Any:
        yield None
        raise ValueError("never")

    run.deeds.steps["process_events"] = fail
    watch.site.publish(2)
    run.call("start")
    watch.wait(lambda: watch.processor.stopped)
    watch.clock.look()
    watch.pass_time(3)
    assert (watch.logged(), watch.stalled) == ([], {})


@pytest.mark.parametrize("option", [{"stalled_after": -1}, {"on_stall": None}])
def test_an_impossible_option_is_refused(site: Any, option: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        site.processor(site.stage.store(), **option)


def test_a_store_lets_go_of_a_partition_for_one_round() -> None:
    store, names = MemoryCheckpointStore(), ("ns.servicebus.windows.net", "orders", "$Default")
    keys = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
    scope: Callable[[], dict[str, Any]] = lambda: dict(zip(keys, names, strict=True))  # noqa: E731
    first = store.claim_ownership([{**scope(), "partition_id": "0", "owner_id": "me"}])
    store.reopen(*names, "0")
    assert store.claim_ownership(first) == []
    (row,) = store.list_ownership(*names)
    assert row["owner_id"] == "me", "nobody else can take it meanwhile"
    assert store.claim_ownership([row])[0]["owner_id"] == "me"
