"""A Checkpointer's watchdog: what has stalled and where, and what has not, with real clients."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, Scope, Stall, every
from simulated_time import LONGEST_POLL
from variants import EVERY_CLIENT, ONLY_LONG_SYNC, ONLY_SIMULATED
from waiting import LIMIT as LONGEST

LIMIT = 60.0
OFTEN = every(events=1)
Wait = Callable[..., Any]


class Site:
    """One checkpointer whose client has received an event, and its watchdog."""

    def __init__(
        self, stage: Any, clock: Any, wait: Wait, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.stage, self.clock, self.wait, self._caplog = stage, clock, wait, caplog
        self.store = stage.store()

    def start(self, *, finishes: bool = True, events: int = 1, **options: Any) -> Any:
        options = {"stalled_after": LIMIT, **options}
        self.checkpointer = self.stage.checkpointer(self.store, OFTEN, **options)
        self.watchdog = self.checkpointer._watchdog
        self.stage.publish(events)
        self.consumer = self.stage.start(self.store, self.checkpointer, finishes=finishes)
        self.wait(lambda: self.consumer.has("0", events))
        return self.consumer

    def settled(self) -> None:
        """What has arrived is finished, saved, and seen by the watchdog."""
        self.wait(lambda: not self.checkpointer.stats()["0"].lag_events)
        self.clock.look()

    def pass_time(self, limits: float) -> None:
        self.clock.pass_time(self.watchdog, limits)

    @property
    def stalled(self) -> str | None:
        return self.checkpointer.stats()["0"].stalled

    def logged(self) -> list[str]:
        records = [each for each in self._caplog.records if each.name == "eventhub_checkpoints"]
        return [each.getMessage() for each in records if "stalled" in each.getMessage()]


@pytest.fixture
def site(stage: Any, clock: Any, wait: Wait, caplog: pytest.LogCaptureFixture) -> Site:
    caplog.set_level(logging.WARNING, "eventhub_checkpoints")
    return Site(stage, clock, wait, caplog)


def test_a_mute_link_is_found_and_said_once(site: Site) -> None:
    site.start()
    site.settled()
    assert site.stage.hub.mute_receivers("orders") == 1
    site.stage.publish(2)
    site.pass_time(3)
    stats = site.checkpointer.stats()["0"]
    assert (stats.stalled, stats.stalls) == ("link", 1)
    assert stats.stalled_seconds >= LIMIT
    assert not site.checkpointer.healthy()
    (line,) = site.logged()
    assert line.startswith("partition 0 has stalled (link): the hub has events up to 2, and none")


@EVERY_CLIENT
@pytest.mark.parametrize("number", [None, 1])
def test_a_link_that_the_hub_refuses_again_and_again_is_found_and_said_once(
    site: Site, number: int | None, wait: Wait
) -> None:
    stage = site.stage
    stage.publish(3)
    site.store = stage.foreign_store() if number is None else stage.store()
    row = {"partition_id": "0", "sequence_number": number, "offset": "corrupt!"}
    scope = Scope(stage.namespace, "orders", "$Default")
    stage.finished(site.store.update_checkpoint({**scope.as_dict(), **row}))
    checkpointer = stage.checkpointer(site.store, OFTEN, stalled_after=LIMIT)
    site.checkpointer, site.watchdog = checkpointer, checkpointer._watchdog
    stage.start(site.store, checkpointer)
    wait(lambda: "0" in checkpointer.stats())
    if stage.is_simulated:
        site.pass_time(3)
    else:  # the attempts take real time
        wait(lambda: site.pass_time(0.2) or not checkpointer.healthy())
    assert (site.stalled, checkpointer.healthy()) == ("link", False)
    (line,) = site.logged()
    assert "accepts none of the client's attempts to read from position 'corrupt!'" in line


def test_a_handler_that_never_finishes_an_event_is_found(site: Site) -> None:
    consumer = site.start(finishes=False)
    site.clock.look()
    site.pass_time(1.4)
    assert site.stalled == "handler"
    assert not site.checkpointer.healthy()
    consumer.tracked["0"][0].done()
    site.settled()
    stats = site.checkpointer.stats()["0"]
    assert (stats.stalled, stats.stalled_seconds, stats.stalls) == (None, 0.0, 1)
    assert site.checkpointer.healthy()


def test_a_handler_that_hangs_before_it_tracks_its_event_is_found_with_its_line(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = site.start()
    site.settled()
    gate, entered = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        assert gate.wait(LONGEST)

    async def hang_aio() -> None:
        entered.set()
        while not gate.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(LONGEST_POLL)

    track = site.checkpointer.track

    def slow(context: Any, event: Any) -> Any:
        if site.stage.is_aio:
            return late(context, event)
        hang()
        return track(context, event)

    async def late(context: Any, event: Any) -> Any:
        await hang_aio()
        return await track(context, event)

    monkeypatch.setattr(site.checkpointer, "track", slow)
    site.stage.publish(3)
    site.wait(entered.is_set)
    site.pass_time(2)
    assert site.stalled == "handler"
    (line,) = site.logged()
    assert f"{__file__}, line" in line or "threading.py" in line or "tasks.py" in line
    gate.set()
    site.wait(lambda: consumer.has("0", 4))
    site.settled()
    assert site.stalled is None


def test_a_store_that_hangs_is_found(site: Site) -> None:
    site.store.is_open.clear()
    site.start()
    site.wait(lambda: site.store.begun)
    site.clock.look()
    site.pass_time(1.4)
    assert site.stalled == "store"
    assert not site.checkpointer.healthy()
    site.store.is_open.set()
    site.settled()
    assert (site.stalled, site.checkpointer.healthy()) == (None, True)


def test_a_hub_that_goes_away_is_found(site: Site) -> None:
    site.start()
    site.settled()
    site.stage.hub.refuse_connections()
    site.stage.hub.drop_connections()
    for _ in range(20):
        site.clock.jump(LIMIT / 5)
        site.clock.look()
    site.wait(lambda: site.stalled == "hub")
    site.stage.hub.refuse_connections(False)
    site.wait(lambda: site.stalled is None)


@ONLY_SIMULATED
def test_a_task_that_the_client_has_lost_is_found(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = site.start()
    site.settled()
    (processor,) = consumer.client._event_processors.values()

    async def nothing(*args: Any) -> None: ...

    async def vanish() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(processor, "_close_consumer", nothing)
            task = processor._tasks["0"]
            task.cancel()
            await asyncio.wait([task])

    site.stage.finished(vanish())
    site.clock.look()
    site.pass_time(1.4)
    assert site.stalled == "link"
    assert "stopped receiving" in site.logged()[0]
    # The client would wait for the task when it stops, and would not close its link.
    site.stage.finished(processor._consumers["0"].close())
    del processor._tasks["0"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@ONLY_LONG_SYNC
def test_a_thread_that_the_client_has_lost_is_found(site: Site) -> None:
    consumer = site.start()
    site.settled()
    # Not an Exception: the client does not handle it, and its thread ends with all partitions open.
    consumer.raises = SystemExit()
    site.stage.publish(1)
    site.wait(lambda: not consumer._thread.is_alive())
    site.stage.publish(1)
    site.settled()
    site.pass_time(2)
    assert site.stalled == "link"


def test_reopening_brings_a_mute_link_back(site: Site) -> None:
    consumer = site.start(on_stall="reopen")
    site.settled()
    site.stage.hub.mute_receivers("orders")
    site.stage.publish(3)
    site.pass_time(2)
    site.wait(lambda: consumer.has("0", 4))
    assert consumer.arrived["0"] == [0, 1, 2, 3], "nothing twice"
    assert consumer.closed == [("0", "OWNERSHIP_LOST")]
    site.settled()
    assert (site.stalled, site.checkpointer.healthy()) == (None, True)


def test_a_callable_is_passed_the_stall_once(site: Site) -> None:
    found: list[Stall] = []
    site.start(finishes=False, on_stall=found.append)
    site.clock.look()
    site.pass_time(3)
    site.wait(lambda: found)
    site.pass_time(1)
    (stall,) = found
    assert (stall.partition_id, stall.where) == ("0", "handler")


def test_a_callable_that_raises_changes_nothing(site: Site) -> None:
    def fails(stall: Stall) -> None:
        raise ValueError("mine")

    site.start(finishes=False, on_stall=fails)
    site.clock.look()
    site.pass_time(1.4)
    site.wait(lambda: "on_stall raised" in site._caplog.text)
    assert site.stalled == "handler"


def test_an_idle_hub_is_no_stall(site: Site) -> None:
    site.start()
    site.settled()
    site.pass_time(6)
    assert (site.stalled, site.logged(), site.checkpointer.healthy()) == (None, [], True)
    site.stage.publish(1)
    site.wait(lambda: site.consumer.has("0", 2))


def test_a_start_without_any_event_is_no_stall(site: Site) -> None:
    site.start(events=0)
    site.wait(lambda: site.consumer.opened)
    site.pass_time(4)
    assert (site.logged(), site.checkpointer.healthy()) == ([], True)


def test_a_slow_handler_that_works_is_no_stall(site: Site) -> None:
    consumer = site.start(finishes=False, events=6)
    site.clock.look()
    for number in range(6):
        site.pass_time(0.8)
        assert site.stalled is None
        consumer.tracked["0"][number].done()
        site.clock.look()
    assert site.logged() == []


def test_a_drain_is_no_stall(site: Site) -> None:
    consumer = site.start(finishes=False, drain_timeout=10 * LIMIT)
    site.clock.look()
    (session,) = site.checkpointer._sessions.open.values()
    closing = site.stage.begin_close(consumer)
    site.wait(lambda: session.ends_by is not None)
    site.pass_time(3)
    assert site.logged() == []
    consumer.tracked["0"][0].done()
    closing.result(LONGEST)


def test_another_start_after_a_rewind_is_no_stall(site: Site) -> None:
    consumer = site.start(events=5)
    site.settled()
    site.stage.close(consumer)
    keys = "fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id"
    names = {key: getattr(consumer.opened[0], key) for key in keys}
    row = {**names, "sequence_number": 1, "offset": None}
    site.stage.finished(site.store.inner.update_checkpoint(row, force=True))
    again = site.stage.start(site.store, site.checkpointer, finishes=True)
    site.wait(lambda: again.has("0", 3))
    site.settled()
    site.pass_time(3)
    assert (site.logged(), site.checkpointer.healthy()) == ([], True)


def test_without_a_time_nothing_is_watched(site: Site) -> None:
    site.start(finishes=False, stalled_after=None)
    site.clock.jump(10 * LIMIT)
    assert site.stalled is None
    assert not site.watchdog._background.is_alive


@pytest.mark.parametrize("option", [{"stalled_after": 0}, {"on_stall": "restart"}])
def test_an_impossible_option_is_refused(stage: Any, option: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        stage.checkpointer(stage.store(), **option)


def test_reopening_needs_a_store_of_this_package(stage: Any) -> None:
    with pytest.raises(ConfigurationError, match="needs a client with a store of this package"):
        stage.checkpointer(stage.foreign_store(), on_stall="reopen")
