"""Stopping a processor: by anybody, at any time, in time or not."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import open_store
from eventhub_checkpoints.localhub import LocalHub
from simulated_hub import SimulatedClient
from variants import EVERY_CLIENT, ONLY_SIMULATED, ONLY_SYNC, REAL_CLIENTS
from waiting import LIMIT

Wait = Callable[..., Any]


def test_a_handler_that_runs_is_not_cancelled_by_a_stop(site: Any, wait: Wait, hold: Any) -> None:
    store = site.stage.store()
    site.publish(3)
    run = site.processor(store)
    run.deeds.hold("process_events", hold)
    run.call("start")
    wait(lambda: "process_events" in run.deeds.names())
    stopping = run.begin("stop")
    with pytest.raises(TimeoutError):
        stopping.result(0.5)
    hold.set()
    stopping.result(LIMIT)
    given = run.deeds.numbers()
    assert run.deeds.numbers("process_events ended") == given
    assert site.row(store) == given[-1]


def test_a_stop_in_time_only_may_be_called_again(site: Any, wait: Wait, hold: Any) -> None:
    store = site.stage.store()
    site.publish(1)
    run = site.processor(store)
    run.deeds.hold("process_events", hold)
    run.call("start")
    wait(lambda: "process_events" in run.deeds.names())
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"did not stop within 0\.2 s"):
            run.call("stop", 0.2)
    assert run.processor._receive_loop.is_running
    hold.set()
    run.call("stop")
    assert site.row(store) == 0
    assert site.owners(store) == {"0": ""}


@ONLY_SIMULATED
@pytest.mark.parametrize("swallows", [False, True])
def test_an_aio_handler_that_hangs_is_cut_off_and_what_it_had_is_read_again(
    site: Any, wait: Wait, swallows: bool
) -> None:
    store, ends = site.stage.store(), []

    def hangs(one: Any, events: list[Any]) -> Any:
        try:
            yield lambda: False
        except asyncio.CancelledError:
            ends.append("cancelled")
            if not swallows:
                raise

    site.publish(3)
    run = site.processor(store, drain_timeout=0.3)
    run.deeds.steps["process_events"] = hangs
    run.call("start")
    wait(lambda: "process_events" in run.deeds.names())
    run.call("stop", 10.0)
    assert ends == ["cancelled"]
    assert run.deeds.names().count("process_events") == 1
    assert site.row(store) is None
    assert site.owners(store) == {"0": ""}
    assert "close ended" in run.deeds.names()
    del run.deeds.steps["process_events"]
    run.call("start")
    wait(lambda: site.row(store) == 2)


@ONLY_SIMULATED
def test_a_stop_ends_a_client_that_has_lost_the_cancellation(
    site: Any, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, losses = threading.Event(), []

    async def lose_cancellation(client: Any) -> list[str]:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            losses.append(client)
        return ["0"]

    monkeypatch.setattr(SimulatedClient, "get_partition_ids", lose_cancellation)
    run = site.processor(site.stage.store())
    run.call("start")
    wait(has_begun.is_set)
    run.call("stop", 20.0)
    assert losses


def test_stopping_twice_or_side_by_side_or_before_anything_is_claimed(site: Any) -> None:
    store = site.stage.store()
    run = site.processor(store)
    run.call("stop")
    for _ in range(3):
        run.call("start")
        for future in [run.begin("stop") for _ in range(3)]:
            future.result(LIMIT)
        run.call("stop")
        assert not run.processor._receive_loop.is_running
    assert set(site.owners(store).values()) <= {""}


def test_waiting_ends_where_it_is_stopped_at_once(site: Any) -> None:
    run = site.processor(site.stage.store())
    run.call("start")
    waiting = run.begin("wait")
    run.call("stop")
    waiting.result(LIMIT)


@EVERY_CLIENT
def test_started_again_it_goes_on(site: Any, wait: Wait) -> None:
    store = site.stage.store()
    run = site.processor(store)
    for end in (3, 6, 9):
        site.publish(3)
        run.call("start")
        wait(lambda end=end: len(run.deeds.numbers("process_events ended")) == end)
        run.call("stop")
        assert site.row(store) == end - 1
    assert run.deeds.numbers() == list(range(9))


@pytest.mark.parametrize("where", ["initialize", "process_events", "process_error", "close"])
def test_a_method_that_stops_the_processor_is_not_waited_for_by_itself(
    site: Any, wait: Wait, where: str
) -> None:
    store = site.stage.store()
    run = site.processor(store)

    def stops(one: Any, *args: Any) -> Any:
        yield run.processor.stop()

    def raises(one: Any, *args: Any) -> Any:
        yield None
        raise OSError("no")

    if where == "process_error":
        run.deeds.steps["process_events"] = raises
    run.deeds.steps[where] = stops
    site.publish(1)
    running = run.begin("run")
    wait(lambda: "initialize" in run.deeds.names())
    if where == "close":
        wait(lambda: site.row(store) == 0)
        site.hub.detach_receivers("orders", condition="amqp:link:stolen")
    running.result(LIMIT)
    assert f"{where} ended" in run.deeds.names()
    assert "close ended" in run.deeds.names()
    assert site.owners(store) == {"0": ""}
    assert site.row(store) == (0 if where in ("process_events", "close") else None)


@ONLY_SYNC
def test_on_error_may_stop_a_sync_processor(site: Any, wait: Wait) -> None:
    store = site.stage.store()
    run = site.processor(store, on_error=lambda *_: run.processor.stop())
    store.error = OSError("storage is away")
    site.publish(1)
    running = run.begin("run")
    wait(lambda: store.begun)
    store.error = None
    running.result(LIMIT)
    assert site.row(store) == 0


def test_attempts_end_when_it_is_stopped(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    def raises(one: Any, events: list[Any]) -> Any:
        yield None
        raise OSError("no")

    site.publish(50)
    run = site.processor(store, attempts=1000)
    run.deeds.steps["process_events"] = raises
    run.call("start")
    wait(lambda: run.deeds.names().count("process_events") > 1)
    run.call("stop", 20.0)
    assert site.row(store) is None
    assert run.processor.stopped == {}


@pytest.mark.parametrize("where", ["in a handler", "beside", "while there is no room"])
def test_a_client_that_somebody_else_closes_stops_the_processor_soon(
    site: Any, wait: Wait, where: str
) -> None:
    store, is_full = site.stage.store(), where == "while there is no room"
    drain, client = 1 if is_full else 20, {"load_balancing_interval": 30}
    run = site.processor(store, max_pending=1, drain_timeout=drain, client=client)

    def handle(one: Any, events: list[Any]) -> Any:
        if is_full:
            one.checkpoints.track(events[0])
        if where == "in a handler":
            yield run.processor._client.close()
        yield None

    run.deeds.steps["process_events"] = handle
    site.publish(1)
    running = run.begin("run")
    wait(lambda: "process_events" in run.deeds.names())
    if where != "in a handler":
        wait(lambda: "process_events ended" in run.deeds.names())
        site.publish(1)
        site.loop.finished(run.processor._client.close())
    # What is left has a second; the SDK's client looks once a second whether all has ended.
    running.result(6 if site.stage.is_simulated else LIMIT)
    assert run.deeds.all("close ended") == [("SHUTDOWN",)]
    assert site.owners(store) == {"0": ""}


class HaltError(BaseException):
    """As `SystemExit`, which would end the event loop that these tests share."""


def test_an_error_that_is_no_exception_stops_all_in_order_and_is_raised_by_run(
    site: Any, wait: Wait, hold: Any
) -> None:
    store = site.stage.store()

    def exits(one: Any, events: list[Any]) -> Any:
        yield None
        if any(event.sequence_number == 2 for event in events):
            raise HaltError("now")

    site.publish(5)
    run = site.processor(store, max_batch_size=1)
    run.deeds.steps["process_events"] = exits
    with pytest.raises(HaltError, match="now"):
        run.call("run")
    assert run.deeds.numbers() == [0, 1, 2]
    assert site.row(store) == 1
    assert run.processor.stopped == {}
    assert "process_error" not in run.deeds.names()
    assert set(site.owners(store).values()) == {""}


@ONLY_SIMULATED
def test_running_ends_in_order_where_its_caller_is_cancelled(
    site: Any, wait: Wait, hold: Any
) -> None:
    store = site.stage.store()
    site.publish(3)
    run = site.processor(store)
    run.deeds.hold("process_events", hold)
    running = site.stage.begin(run.processor.run)
    wait(lambda: "process_events" in run.deeds.names())
    running.cancel()
    wait(lambda: run.processor._callbacks.is_stopping)
    assert "close" not in run.deeds.names()
    hold.set()
    wait(lambda: not run.processor._receive_loop.is_running)
    with pytest.raises(asyncio.CancelledError):
        running.result(LIMIT)
    given = run.deeds.numbers()
    assert site.row(store) == given[-1]
    assert set(site.owners(store).values()) == {""}


PROGRAM = """
import asyncio, sys, time
from functools import partial
from azure.eventhub{aio} import EventHubConsumerClient
from eventhub_checkpoints import every
from eventhub_checkpoints{aio} import EventProcessor, PartitionProcessor, open_store

class Slow(PartitionProcessor):
    {a}def process_events(self, events):
        print("begun", flush=True)
        {wait}(0.5)
        print("ended", events[-1].sequence_number, flush=True)

{a}def main():
    store = open_store(sys.argv[2], create_tables=True)
    client = partial(EventHubConsumerClient.from_connection_string, sys.argv[1], "$Default")
    {w}EventProcessor(client, Slow, store=store, policy=every(events=10**6)).run()
    print("returned", flush=True)
    {w}store.close()

{run}
"""
SPELLED = {
    "sync": {"aio": "", "a": "", "w": "", "wait": "time.sleep", "run": "main()"},
    "aio": {
        "aio": ".aio",
        "a": "async ",
        "w": "await ",
        "wait": "await asyncio.sleep",
        "run": "asyncio.run(main())",
    },
}


@REAL_CLIENTS
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_signal_has_run_return_when_the_last_is_saved(
    hub: LocalHub, variant: str, tmp_path: Path, number: int
) -> None:
    hub.publish("orders", "0", ["event"] * 5)
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    program = PROGRAM.format(**SPELLED[variant])
    arguments = [sys.executable, "-c", program, hub.connection_string("orders"), url]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        os.kill(child.pid, number)
        ended, returned = child.stdout.readline().split(), child.stdout.readline()
    assert (ended[0], returned, child.returncode) == ("ended", "returned\n", 0)
    with open_store(url) as store:
        (scope,) = store.list_scopes()
        (row,) = store.list_checkpoints(*scope)
        assert row["sequence_number"] == int(ended[1])
        assert {row["owner_id"] for row in store.list_ownership(*scope)} == {""}
