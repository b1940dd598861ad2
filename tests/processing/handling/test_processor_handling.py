"""What a processor's methods and its checkpoints do while events flow."""

from collections.abc import Callable
from typing import Any

from eventhub_checkpoints import every
from variants import EVERY_CLIENT, ONLY_SIMULATED

Wait = Callable[..., Any]
ENDED = "process_events ended"
STOLEN = "amqp:link:stolen"


def raises(*errors: Exception) -> Any:
    """A method that raises these, one at each call, and then no more."""
    left = list(errors)

    def steps(one: Any, *args: Any) -> Any:
        yield None
        if left:
            raise left.pop(0)

    return steps


@EVERY_CLIENT
def test_nothing_is_processed_before_initialize_has_succeeded(site: Any, wait: Wait) -> None:
    store, error = site.stage.store(), OSError("no database")
    site.publish(3)
    run = site.processor(store)
    run.deeds.steps["initialize"] = raises(error)
    run.call("start")
    wait(lambda: site.row(store) == 2)
    names = [n for n in run.deeds.names() if n not in ("list", "claim", "update")]
    first = ["initialize", "process_error", "process_error ended", "close", "close ended"]
    assert names[:6] == [*first, "release"]
    assert names[6:8] == ["initialize", "initialize ended"]
    assert run.deeds.all("process_error") == [(error,)]
    assert run.deeds.numbers() == [0, 1, 2]


def test_events_wait_for_a_slow_initialize(site: Any, wait: Wait, elapse: Wait, hold: Any) -> None:
    store = site.stage.store()

    site.publish(3)
    run = site.processor(store)
    run.deeds.hold("initialize", hold)
    run.call("start")
    wait(lambda: "initialize" in run.deeds.names())
    elapse(5)
    assert run.deeds.numbers() == []
    hold.set()
    wait(lambda: site.row(store) == 2)
    names = [n for n in run.deeds.names() if n not in ("list", "claim", "update")]
    assert names[:3] == ["initialize", "initialize ended", "process_events"]
    assert names.count("initialize") == 1


def test_errors_of_errors_harm_nobody(site: Any, wait: Wait, caplog: Any) -> None:
    store, again = site.stage.store(), OSError("while it was told")
    told: list[Any] = []

    def on_error(partition_id: str | None, error: Exception) -> None:
        told.append((partition_id, error))
        raise LookupError("on_error itself")

    site.publish(3)
    run = site.processor(store, on_error=on_error)
    run.deeds.steps["process_events"] = raises(ValueError("first"))
    run.deeds.steps["process_error"] = raises(again)
    run.call("start")
    wait(lambda: site.row(store) == 2)
    assert told == [("0", again)]
    assert "on_error raised" in caplog.text


def test_trouble_of_load_balancing_goes_to_on_error_and_does_not_end_it(
    site: Any, wait: Wait
) -> None:
    store, trouble = site.stage.store(), OSError("storage is away")
    told: list[Any] = []

    def on_error(partition_id: str | None, error: Exception) -> None:
        told.append((partition_id, error))
        raise AttributeError("as one that asks for a partition")

    run = site.processor(store, on_error=on_error)
    lists, store.inner.list_ownership = store.inner.list_ownership, fails(trouble)
    run.call("start")
    wait(lambda: told.count((None, trouble)) > 1)
    store.inner.list_ownership = lists
    site.publish(3)
    wait(lambda: site.row(store) == 2)


def fails(error: Exception) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise error

    return call


def test_a_close_that_raises_is_told_and_the_partition_is_released(site: Any, wait: Wait) -> None:
    store, error = site.stage.store(), OSError("at the end")
    site.publish(3)
    run = site.processor(store, policy=every(events=10**6))
    run.deeds.steps["close"] = raises(error)
    run.call("start")
    wait(lambda: len(run.deeds.numbers(ENDED)) == 3)
    run.call("stop")
    assert run.deeds.all("process_error") == [(error,)]
    assert (site.row(store), site.owners(store)) == (2, {"0": ""})


@ONLY_SIMULATED
def test_an_aio_close_that_hangs_is_cut_off(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    def hangs(one: Any, reason: Any) -> Any:
        yield lambda: False

    site.publish(3)
    run = site.processor(store, policy=every(events=10**6), drain_timeout=0.3)
    run.deeds.steps["close"] = hangs
    run.call("start")
    wait(lambda: len(run.deeds.numbers(ENDED)) == 3)
    run.call("stop", 10.0)
    ((error,),) = run.deeds.all("process_error")
    assert isinstance(error, TimeoutError)
    assert (site.row(store), site.owners(store)) == (2, {"0": ""})


def test_a_handler_and_its_successor_do_not_overlap_when_receiving_fails(
    site: Any, wait: Wait, elapse: Wait, hold: Any
) -> None:
    store, running = site.stage.store(), []

    def steps(one: Any, events: list[Any]) -> Any:
        running.append(1)
        assert len(running) == 1
        if not hold.is_set():
            yield hold.is_set
        running.pop()

    site.publish(4)
    run = site.processor(store, client={"retry_total": 0})
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: running)
    site.hub.detach_receivers("orders", condition=STOLEN)
    elapse(3)
    assert len(run.deeds.made) == 1
    assert "release" not in run.deeds.names()
    hold.set()
    wait(lambda: site.row(store) == 3)
    wait(lambda: len(run.deeds.made) == 2)
    site.publish(2)
    wait(lambda: site.row(store) == 5)
    log = list(run.deeds.log)
    release = log.index(("release", "0"))
    again = log.index(("initialize", "0"), log.index(("initialize", "0")) + 1)
    assert not [e for e in log[release:again] if e[0] == "update"]
    assert run.deeds.numbers() == list(range(6))


def test_duplicates_behind_a_new_link_move_nothing_back(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    allowed = [30]

    def limited(one: Any, events: list[Any]) -> Any:
        yield lambda: len(run.deeds.numbers(ENDED)) <= allowed[0]

    site.publish(200)
    run = site.processor(store, max_batch_size=5)
    run.deeds.steps["process_events"] = limited
    run.call("start")
    for then in (80, 130, 200):
        wait(lambda: len(run.deeds.numbers(ENDED)) > allowed[0])
        site.hub.drop_connections()
        allowed[0] = then
    wait(lambda: site.row(store) == 199)
    saved = store.saved["0"]
    assert saved == sorted(saved)
    assert set(run.deeds.numbers(ENDED)) == set(range(200))


def test_processing_goes_on_while_storage_is_away(site: Any, wait: Wait) -> None:
    store = site.stage.store()
    site.publish(10)
    run = site.processor(store, unhealthy_after=0.3)
    run.call("start")
    wait(lambda: site.row(store) == 9)
    store.error = OSError("storage is away")
    for end in (20, 30, 40):
        site.publish(10)
        wait(lambda end=end: len(run.deeds.numbers(ENDED)) == end)
    wait(lambda: not run.processor.healthy())
    assert site.row(store) == 9
    store.error = None
    wait(lambda: site.row(store) == 39)
    wait(run.processor.healthy)
    assert run.deeds.numbers() == list(range(40))
    assert "close" not in run.deeds.names()
